package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// preview shows what the tool says of a call, as a block nobody can fake.
func preview(p *session.Preview, indent string, width int) string {
	if p == nil {
		return ""
	}
	if p.Failed != "" {
		return indent + "the tool's preview failed, so take its risk for high: " + screen.Short(p.Failed, nameRoom) + "\n"
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, screen.Sprintf(format, args...)) }
	if p.Title != "" {
		add("%s", p.Title)
	}
	if p.Risk != "" {
		add("risk: %s", string(p.Risk))
	}
	if p.Money != nil {
		add("money: %s %s", p.Money.Amount, p.Money.Currency)
	}
	for _, l := range p.Links {
		add("%s", strings.TrimSpace(l.Label+"  "+l.URL))
	}
	if d := p.Diff; d != nil {
		what := "changes"
		if d.Name != "" {
			what += " " + screen.CleanLine(d.Name)
		}
		if d.Cut {
			what += " (cut: the texts are longer than this)"
		}
		lines = append(lines, what+":")
		lines = append(lines, changes(d.Before, d.After)...)
	}
	return indent + "preview by the tool:\n" + screen.QuoteBlock(strings.Join(lines, "\n"), indent, width)
}

// around is how many lines that are the same stand around those that are not.
const around = 3

// changes are the lines of two texts from the first to the last that differ, with those around them.
func changes(before, after string) []string {
	old, made := textLines(before), textLines(after)
	head, tail := 0, 0
	for head < min(len(old), len(made)) && old[head] == made[head] {
		head++
	}
	for tail < min(len(old), len(made))-head && old[len(old)-1-tail] == made[len(made)-1-tail] {
		tail++
	}
	var lines []string
	add := func(mark string, of []string) {
		for _, line := range of {
			lines = append(lines, mark+line)
		}
	}
	add("  ", old[max(head-around, 0):head])
	add("- ", old[head:len(old)-tail])
	add("+ ", made[head:len(made)-tail])
	add("  ", old[len(old)-tail:min(len(old)-tail+around, len(old))])
	if head == len(old) && head == len(made) {
		return []string{"(nothing)"}
	}
	return lines
}

func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// claim shows what the agent says of a call, below what it is.
func claim(text, indent string, width int) string {
	if text == "" {
		return ""
	}
	return indent + "the agent's claim:\n" + screen.QuoteBlock(text, indent, width)
}

// Claimed reports whether the agent's last message stands as its claim beside what a session waits for.
func Claimed(s client.Session) bool {
	return slices.ContainsFunc(Pending(s), func(w client.Wait) bool {
		return w.Claim != "" && strings.HasPrefix(strings.TrimSpace(s.Text), strings.TrimSuffix(w.Claim, claimCut(w.Claim)))
	})
}

// OwnText is what a wait for a message says beside the agent's last message, such as why a policy has the task wait.
func OwnText(s client.Session, w client.Wait) string {
	if w.Kind != session.WaitInput || strings.TrimSpace(w.Text) == strings.TrimSpace(s.Text) {
		return ""
	}
	return w.Text
}

// claimCut is the note at the end of a claim that was cut.
func claimCut(claim string) string {
	if i := strings.LastIndex(claim, "… [cut: "); i >= 0 && strings.HasSuffix(claim, "]") {
		return claim[i:]
	}
	return ""
}

// What is longer than this is summed up in lists.
const (
	longLines = 24
	longBytes = 2000
	headLines = 8
	tailLines = 4
)

// SumUp returns arguments as people read them: long ones by their size, their fields, and their first
// and last lines.
func SumUp(raw json.RawMessage) (text string, whole bool) {
	text = screen.PrettyJSON(raw)
	lines := strings.Split(text, "\n")
	if len(lines) <= longLines && len(text) <= longBytes {
		return text, true
	}
	for i, line := range lines {
		lines[i] = screen.Short(strings.TrimRight(line, " "), 160)
		if indent := len(line) - len(strings.TrimLeft(line, " ")); indent > 0 {
			lines[i] = line[:indent] + lines[i]
		}
	}
	if len(lines) > headLines+tailLines {
		left := fmt.Sprintf("… %d lines are left out here …", len(lines)-headLines-tailLines)
		lines = slices.Concat(lines[:headLines], []string{left}, lines[len(lines)-tailLines:])
	}
	return Size(raw) + "\n" + strings.Join(lines, "\n"), false
}

// Size says how long arguments are, and which fields they have.
func Size(raw json.RawMessage) string {
	size := screen.Count(int64(len(raw)), "byte")
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
		return size
	}
	names := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	return size + ", " + screen.Count(int64(len(fields)), "field") + ": " + screen.Short(names, nameRoom)
}
