package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/session"
)

// mostApprovals is how many approvals of an unknown file are shown with their
// arguments; how many more there are is said.
const mostApprovals = 5

// Trusts shows a data file that its user has never worked on, and asks whether to.
// Only a yes is one; without anybody to ask it is a no.
func (p *Person) Trusts(ctx context.Context, u place.Unknown) (bool, error) {
	if !p.There() {
		return false, nil
	}
	p.print(p.unknown(u))
	yes, _, err := p.yes(ctx, "Work on it, and do not ask again?", "Please answer y or n. To look first, answer n: inbox, notices, show, runs, checkpoints, audit, export, link, permissions and sessions only read it, and ask nothing.\n")
	return yes, err
}

// yes asks until it is told yes or no, where Enter is a no, and says in between what
// is understood. Who leaves has said neither.
func (p *Person) yes(ctx context.Context, question, understood string) (yes, left bool, err error) {
	for {
		text, err := p.prompt(ctx, question+" [y]es, [N]o: ")
		if errors.Is(err, errLeft) {
			return false, true, nil
		}
		if err != nil {
			return false, false, err
		}
		switch strings.ToLower(text) {
		case "y", "yes":
			return true, false, nil
		case "", "n", "no":
			return false, false, nil
		}
		p.print(understood)
	}
}

func (p *Person) unknown(u place.Unknown) string {
	var b strings.Builder
	line := func(indent, format string, args ...any) {
		b.WriteString(screen.QuoteBlock(fmt.Sprintf(format, args...), indent, p.width()))
	}
	b.WriteString("\n" + p.bold("You have not worked on this data file before.") + "\n")
	line("  ", "%s", screen.CleanLine(u.Path))
	if u.Owner != "" {
		line("  ", "belongs to %s, written last at %s", screen.CleanLine(u.Owner), u.Written.Format(time.DateTime))
	} else {
		line("  ", "written last at %s", u.Written.Format(time.DateTime))
	}
	if u.Log {
		line("", "You know the file, but not the log beside it (-wal), which no command of yours has left there and which counts as what is in the file. Did another program that works on it end without closing it?")
	}
	line("", "In it, as whoever wrote it says:")
	line("  ", "%s", runningNote(u.Running, u.More))
	line("  ", "%s", atLeast(int64(len(u.Waiting)), u.More)+" that "+isMany(len(u.Waiting), "waits", "wait")+" for somebody")
	if len(u.Approved) > 0 {
		line("  ", "%s approved already, and would run if it has not:", atLeastOf(int64(len(u.Approved)), "call", u.More))
	}
	for i, given := range u.Approved {
		if i == mostApprovals {
			line("    ", "and %s more", screen.Count(int64(len(u.Approved)-i), "call"))
			break
		}
		line("    ", "%s, approved by %s (session %s)", screen.CleanLine(given.Tool), screen.CleanLine(given.By), screen.CleanLine(given.Session.ID))
		line("      ", "%s", screen.Compact(given.Arguments, 300))
	}
	if u.Keys != "" {
		line("", "Beside it lies %s: whose keys stand there is let in by adjourn dev, under the names that stand there.", screen.CleanLine(u.Keys))
	}
	b.WriteString("If it came with somebody else's folder (a clone, an archive), say no.\n")
	return b.String()
}

// most names of sessions that are shown.
const mostNames = 5

func runningNote(running []session.Key, more bool) string {
	n := len(running)
	text := atLeast(int64(n), more) + " that would go on at once"
	var names []string
	for _, key := range running[:min(n, mostNames)] {
		names = append(names, screen.CleanLine(key.ID))
	}
	if n > mostNames {
		names = append(names, "…")
	}
	if n > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text
}

func atLeast(n int64, more bool) string { return atLeastOf(n, "session", more) }

func atLeastOf(n int64, thing string, more bool) string {
	if more {
		return "at least " + screen.Count(n, thing)
	}
	return screen.Count(n, thing)
}

func isMany(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
