package toolrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// What a wait has beside its arguments is bounded.
const (
	maxPreviewBytes = 16 << 10
	maxClaimBytes   = 2 << 10
	maxDiffBytes    = 5 << 10 // of each of the two texts
	maxLine         = 200     // of a title, a name, a label
	maxLinks        = 10
	maxURL          = 2000
	diffContext     = 3 // lines that are the same, around what is not
)

// Explain puts beside the arguments of the approvals that plans open what a person is shown: the tool's
// preview, and as the agent's claim the text of the reply that proposed the calls. find returns a tool
// of this program; room reports whether the entry has room for so many bytes.
func Explain(plans []engine.CallPlan, reply *llm.Message, find func(name string) (tool.Tool, bool), room func(bytes int) bool) {
	for i := range plans {
		p := &plans[i]
		if p.Do != engine.DoWait || p.Wait.Kind != session.WaitApproval {
			continue
		}
		if t, ok := find(p.Call.Name); ok {
			p.Wait.Preview = Preview(t, p.Arguments)
		}
		if reply != nil {
			p.Wait.Claim = claim(reply.Text())
		}
		if p.Wait.Preview == nil && p.Wait.Claim == "" {
			continue
		}
		if !room(engine.EncodedSize(p.Wait.Preview) + engine.EncodedSize(p.Wait.Claim)) {
			p.Wait.Claim = ""
			if p.Wait.Preview != nil {
				p.Wait.Preview = failed(errors.New("there is no room for it beside what else the step brings"))
			}
		}
		p.Wait.ShownDigest = journal.ShownDigest(p.Wait)
	}
}

// claim bounds what an agent says about its calls.
func claim(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if len(text) <= maxClaimBytes {
		return text
	}
	return fmt.Sprintf("%s… [cut: it has %d bytes]", strings.ToValidUTF8(text[:maxClaimBytes], ""), len(text))
}

// Preview returns what a tool shows of a call with these arguments, as they are for its function; nil
// for a tool that shows nothing. One that cannot be made, or is not as it must be, says so, and its
// risk is high: what nobody could look at is not asked for less carefully.
func Preview(t tool.Tool, arguments json.RawMessage) *session.Preview {
	made, shows, err := t.Preview(arguments)
	if !shows {
		return nil
	}
	if err == nil {
		err = checkPreview(made)
	}
	if err != nil {
		return failed(err)
	}
	if made.Title == "" && made.Risk == "" && made.Money == nil && made.Diff == nil && len(made.Links) == 0 {
		return nil
	}
	made.Title = line(made.Title)
	links := make([]session.Link, 0, len(made.Links))
	for _, l := range made.Links {
		links = append(links, session.Link{Label: line(l.Label), URL: l.URL})
	}
	if made.Links = links; len(links) == 0 {
		made.Links = nil
	}
	diff := made.Diff
	for most := maxDiffBytes; ; most /= 2 {
		if made.Diff = nil; diff != nil {
			cut := cutDiff(*diff, most)
			made.Diff = &cut
		}
		switch {
		case engine.EncodedSize(made) <= maxPreviewBytes:
			return &made
		case diff == nil || most < 100:
			return failed(fmt.Errorf("it has over %d bytes", maxPreviewBytes))
		}
	}
}

func failed(err error) *session.Preview {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	return &session.Preview{Failed: strings.ToValidUTF8(text[:min(len(text), 500)], ""), Risk: session.RiskHigh}
}

// line is one line of a preview.
func line(text string) string {
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "))
	if len(runes) <= maxLine {
		return string(runes)
	}
	return string(runes[:maxLine-1]) + "…"
}

var (
	amountPattern   = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,9})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

func checkPreview(p session.Preview) error {
	switch p.Risk {
	case "", session.RiskLow, session.RiskMedium, session.RiskHigh:
	default:
		return fmt.Errorf("its risk is %q: use low, medium or high", p.Risk)
	}
	if m := p.Money; m != nil && (!amountPattern.MatchString(m.Amount) || !currencyPattern.MatchString(m.Currency)) {
		return fmt.Errorf(`its money is %q %q: use an amount like "12.50" and a currency of three letters like "EUR"`, m.Amount, m.Currency)
	}
	if p.Failed != "" {
		return errors.New(p.Failed)
	}
	if len(p.Links) > maxLinks {
		return fmt.Errorf("it has %d links: at most %d are shown", len(p.Links), maxLinks)
	}
	for _, l := range p.Links {
		at, err := url.Parse(l.URL)
		if err != nil || len(l.URL) > maxURL || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
			return fmt.Errorf("a link is not an http or https address of at most %d bytes: %q", maxURL, l.URL)
		}
	}
	return nil
}

// cutDiff bounds the texts of a diff. Of long ones the lines at the beginning and at the end that are
// the same are left out first.
func cutDiff(d session.Diff, most int) session.Diff {
	d.Name, d.Cut = line(d.Name), false
	d.Before, d.After = strings.ToValidUTF8(d.Before, "\uFFFD"), strings.ToValidUTF8(d.After, "\uFFFD")
	if len(d.Before) <= most && len(d.After) <= most {
		return d
	}
	before, after := strings.SplitAfter(d.Before, "\n"), strings.SplitAfter(d.After, "\n")
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	from := max(same-diffContext, 0)
	before, after, same = before[from:], after[from:], 0
	for same < min(len(before), len(after)) && before[len(before)-1-same] == after[len(after)-1-same] {
		same++
	}
	off := max(same-diffContext, 0)
	cut := func(lines []string) string {
		text := strings.Join(lines[:len(lines)-off], "")
		return strings.ToValidUTF8(text[:min(len(text), most)], "")
	}
	return session.Diff{Name: d.Name, Before: cut(before), After: cut(after), Cut: true}
}
