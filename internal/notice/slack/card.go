package slack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/visible"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const timeForm = "2006-01-02 15:04 MST"

// card is that of an open wait, as its record is now; where the record is gone, as its notice tells it.
func (c *Channel) card(m notice.Message, w journal.NoticeWait, record *journal.WaitRecord) (message, error) {
	card := message{Text: asks(m, w)}
	card.Blocks = []any{section(card.Text)}
	is, deadline := session.Wait{}, w.Deadline
	if record != nil {
		is, deadline = record.Wait, record.Wait.Deadline
		if len(record.Acts) > 0 {
			card.Blocks = append(card.Blocks, section(acts(record.Acts)))
		}
	}
	if deadline != nil {
		card.Blocks = append(card.Blocks, section("Until "+deadline.At.UTC().Format(timeForm)+", then: "+then(is.Kind, *deadline)))
	}
	whole := false
	if c.cfg.Arguments && is.Kind == session.WaitApproval {
		var shown []any
		shown, whole = shows(is)
		card.Blocks = append(card.Blocks, shown...)
	}
	buttons, err := c.buttons(m, w, is, whole)
	if len(buttons) > 0 {
		card.Blocks = append(card.Blocks, map[string]any{"type": "actions", "elements": buttons})
	}
	return card, err
}

// then says what happens when nobody answers a wait in time. Whoever is asked to approve reads whether silence
// does.
func then(kind session.WaitKind, d session.Deadline) string {
	switch {
	case d.Escalate != nil:
		after := d.Escalate.After.String()
		d.Escalate = nil
		return "escalate for " + after + ", then: " + then(kind, d)
	case kind == session.WaitApproval && d.Outcome == session.ExpireDefault && string(bytes.TrimSpace(d.Value)) == "true":
		return "it is approved"
	case kind == session.WaitApproval && d.Outcome == session.ExpireDefault:
		return "it is denied"
	}
	return string(d.Outcome)
}

// acts say what was done to a wait without deciding it, each on a line.
func acts(all []session.WaitAct) string {
	lines := make([]string, len(all))
	for i, a := range all {
		lines[i] = done(string(a.Kind), a.To, a.Who)
	}
	return cut(strings.Join(lines, "\n"))
}

// done says in a line what somebody did.
func done(what, to, by string) string {
	text := upper(what)
	if to != "" {
		text += " to " + visible.Line(to)
	}
	if by != "" {
		text += " by " + visible.Line(by)
	}
	return text
}

// acted says what was done to a wait that is still open.
func acted(what journal.NoticeType, w journal.NoticeWait) string {
	if what == journal.NoticeReminded {
		return "Still waiting"
	}
	if what == journal.NoticeEscalated {
		return "Escalated, others may answer too"
	}
	return done(strings.TrimPrefix(string(what), "wait."), w.To, w.By)
}

// ended says how a wait has ended.
func ended(w journal.NoticeWait) string {
	by := w.By
	if w.Decision == journal.DecisionExpired {
		by = ""
	}
	how := done(string(w.Decision), "", by)
	if w.When != nil {
		how += ", " + w.When.UTC().Format(timeForm)
	}
	return how
}

func upper(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// maxText is how many characters Slack takes in one block of text.
const maxText = 3000

// cut shortens a text to what Slack takes in a block.
func cut(text string) string {
	runes := []rune(text)
	if len(runes) <= maxText {
		return text
	}
	const note = "…\n(cut: open the session to see all of it)"
	return string(runes[:maxText-utf8.RuneCountInString(note)]) + note
}

// shows are the blocks that show what is to be approved, and whether that is all of it.
func shows(w session.Wait) (blocks []any, whole bool) {
	whole = true
	add := func(text string) {
		short := cut(text)
		whole = whole && short == text
		blocks = append(blocks, section(short))
	}
	if p := w.Preview; p != nil {
		var lines []string
		for _, line := range []struct{ name, value string }{{"", p.Title}, {"Risk: ", string(p.Risk)}, {"The preview failed: ", p.Failed}} {
			if line.value != "" {
				lines = append(lines, line.name+visible.Line(line.value))
			}
		}
		if p.Money != nil {
			lines = append(lines, "Money: "+visible.Line(p.Money.Amount+" "+p.Money.Currency))
		}
		if len(lines) > 0 {
			add(strings.Join(lines, "\n"))
		}
		whole = whole && p.Diff == nil
	}
	add("Arguments: " + string(visible.JSON(w.Arguments)))
	return blocks, whole
}

// mayApprove reports whether one click may approve a call: of high risk, or of one that is not known, none.
func mayApprove(w session.Wait) bool {
	p := w.Preview
	return p == nil || p.Failed == "" && (p.Risk == "" || p.Risk == session.RiskLow || p.Risk == session.RiskMedium)
}

func (c *Channel) buttons(m notice.Message, w journal.NoticeWait, is session.Wait, whole bool) ([]any, error) {
	var all []any
	if c.cfg.Decides && is.Kind == session.WaitApproval && is.Nonce != "" && (c.cfg.SignedIn || !is.NeedsSignIn()) {
		value, err := json.Marshal(asked{Tenant: m.Key.Tenant, Session: m.Key.ID, Wait: w.ID, Nonce: is.Nonce})
		if err != nil {
			return nil, err
		}
		if whole && mayApprove(is) {
			all = append(all, map[string]any{"type": "button", "action_id": approveID, "text": plain("Approve"), "value": string(value)})
		}
		all = append(all, map[string]any{"type": "button", "action_id": rejectID, "text": plain("Reject"), "value": string(value)})
	}
	if link := m.Link(w.ID); link != "" {
		all = append(all, map[string]any{"type": "button", "action_id": "open", "text": plain("Open"), "url": link})
	}
	return all, nil
}

// asks says what a card is about. It is plain text, which Slack does not read as markup.
func asks(m notice.Message, w journal.NoticeWait) string {
	text := fmt.Sprintf("%s: %s", cmp.Or(m.Notice.Agent, "An agent"), strings.ReplaceAll(string(w.Kind), "_", " "))
	if w.Tool != "" {
		text += " of " + w.Tool
	}
	return text + " (session " + m.Key.ID + ", " + w.ID + ")"
}

func plain(text string) map[string]any { return map[string]any{"type": "plain_text", "text": text} }

func section(text string) map[string]any {
	return map[string]any{"type": "section", "text": plain(text)}
}
