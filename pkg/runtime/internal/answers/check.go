// Package answers checks the answers that callers give.
//
// It finds the wait an answer is for (find.go), checks the answer (check.go) or message (input.go),
// and compares it with the answer that came before (given.go). It writes nothing but the audit of what
// was refused (audit.go).
package answers

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime/internal/away"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Config is what checking answers needs; all of it is required.
type Config struct {
	Sessions *stored.Sessions
	Store    store.Store
	Registry *agent.Registry
	Now      func() time.Time
	// Away says who stands in for whom.
	Away *away.Away
	// StepBytes bounds what one entry keeps of the answers it takes in.
	StepBytes int
	Log       *slog.Logger
}

// Checker checks answers. Its methods are safe for concurrent use.
type Checker struct {
	cfg      Config
	refusals refusals
}

// New returns a checker.
func New(cfg Config) *Checker { return &Checker{cfg: cfg} }

// answerFields holds the fields that belong to each kind of answer from a caller, by their names
// over HTTP. The fields that name the wait are allowed with every kind.
var answerFields = map[session.AnswerKind][]string{
	session.AnswerClientTool: {"result", "error"},
	session.AnswerApproval:   {"approvalId", "approved", "reason", "editedInput", "standing"},
	session.AnswerReply:      {"id", "selected", "text"},
	session.AnswerMessage:    {"message"},
	session.AnswerVerdict:    {"verdict", "reason", "result"},
}

// CheckFields refuses an answer with fields of two kinds, whatever wait it is for. If such a
// field were kept, a reader could not tell which of the two the caller meant.
func CheckFields(key session.Key, a session.Answer) error {
	own, known := answerFields[a.Kind]
	if !known {
		return nil // no wait takes it from a caller
	}
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"approvalId", a.ApprovalID != ""},
		{"id", a.QuestionID != ""},
		{"approved", a.Approved != nil},
		{"reason", a.Reason != ""},
		{"editedInput", a.EditedInput != nil},
		{"standing", a.Standing != nil},
		{"result", a.Result != nil},
		{"error", a.Error != ""},
		{"selected", a.Selected != nil},
		{"text", a.Text != nil},
		{"message", a.Message != nil},
		{"verdict", a.Verdict != ""},
		{"status", a.Status != ""},
		{"outcome", a.Outcome != ""},
	} {
		if field.given && !slices.Contains(own, field.name) {
			return refusal.New(codes.InvalidInput, key, "%s does not belong to an answer of kind %s, which has %s", field.name, a.Kind, strings.Join(own, ", "))
		}
	}
	switch {
	case a.Selected != nil && a.Text != nil:
		return refusal.New(codes.InvalidInput, key, "selected and text do not go together: selected answers a question that has choices, text one that has none")
	case a.Verdict == session.VerdictNotHappened && a.Result != nil:
		return refusal.New(codes.InvalidInput, key, "result does not go with the verdict %s: what did not happen has none; a reason says more", a.Verdict)
	}
	return nil
}

// Check checks an answer against its wait and completes it: author, time, origin.
func (c *Checker) Check(key session.Key, record journal.WaitRecord, a session.Answer, by Caller) (session.Answer, error) {
	w := record.Wait
	if journal.SealOf(&record) == journal.SealBroken || journal.LostSeal(&record) {
		return a, refusal.New(codes.Corrupt, key, "the record of %s is not as it was written: it was changed in the store, and takes no answer. `adjourn audit %s --verify` says more", Label(w), key.ID)
	}
	if err := CheckWho(key, w, by); err != nil {
		return a, err
	}
	if by.ByLink {
		if err := checkByLink(key, w, a); err != nil {
			return a, err
		}
	}
	a.Wait, a.ToolCallID = w.ID, w.Call
	a.Who, a.From, a.When = by.Who, by.From, c.cfg.Now().UTC()
	a.For, a.Escalated = InPlaceOf(record, by), session.Escalated(record.Acts)
	a.Reason = strings.TrimSpace(a.Reason)
	a.Audit, a.Votes, a.Digest, a.ShownDigest, a.Preview = "", nil, stored.Decided(w, a), w.ShownDigest, nil
	for _, text := range []*string{&a.Reason, &a.Error, a.Text} {
		if text != nil && !utf8.ValidString(*text) {
			return a, refusal.New(codes.InvalidAnswer, key, "%s: the answer is not valid UTF-8 text", Label(w))
		}
	}
	err := c.checkContent(record, key, &a)
	if err == nil {
		err = c.checkStanding(key, record, &a, by)
	}
	if err != nil {
		if refused := (*refusal.Error)(nil); errors.As(err, &refused) {
			return a, refused // it has its own code: a message that is empty or too long
		}
		return a, refusal.New(codes.InvalidAnswer, key, "%s: %v", Label(w), err)
	}
	return a, nil
}

// checkShown refuses an answer, other than a no, to a wait whose record does not show what its digests say.
func checkShown(key session.Key, w session.Wait, a session.Answer) error {
	switch w.Kind {
	case session.WaitApproval:
		if a.Approved == nil || !*a.Approved {
			return nil
		}
	case session.WaitClientTool, session.WaitUnknown:
	case session.WaitQuestion, session.WaitInput, session.WaitChild:
		return nil
	}
	if journal.Digest(w.Arguments) == w.Digest && journal.ShownDigest(w) == w.ShownDigest {
		return nil
	}
	return refusal.New(codes.ApprovalMismatch, key, "%s: what is shown of it is not what was asked: its record was changed. Nothing was decided", Label(w))
}

func (c *Checker) checkContent(record journal.WaitRecord, key session.Key, a *session.Answer) error {
	w := record.Wait
	if err := checkShown(key, w, *a); err != nil {
		return err
	}
	switch w.Kind {
	case session.WaitApproval:
		if err := c.checkApproval(record, a); err != nil {
			return err
		}
		return checkVote(key, w, *a)
	case session.WaitClientTool:
		switch {
		case (a.Result == nil) == (a.Error == ""):
			return fmt.Errorf("give either a result or an error")
		case a.Result != nil:
			return checkValue("the result", a.Result)
		}
	case session.WaitQuestion:
		a.QuestionID = w.Question.ID
		return toolrun.CheckReply(*w.Question, *a, toolrun.ReplyFields{Text: "text, a string", Selected: "selected, an array of ids"})
	case session.WaitInput:
		if err := CheckInput(key, a.Message); err != nil {
			return err
		}
	case session.WaitUnknown:
		if a.Verdict != session.VerdictHappened && a.Verdict != session.VerdictNotHappened {
			return fmt.Errorf("the verdict is %q or %q", session.VerdictHappened, session.VerdictNotHappened)
		}
		if a.Result != nil {
			return checkValue("the result", a.Result)
		}
	case session.WaitChild:
		return fmt.Errorf("only the child itself answers this")
	}
	return nil
}

func (c *Checker) checkApproval(record journal.WaitRecord, a *session.Answer) error {
	w := record.Wait
	switch {
	case a.Approved == nil:
		return fmt.Errorf("say approved true or false")
	case a.ApprovalID != "" && a.ApprovalID != w.Nonce:
		return fmt.Errorf("approvalId is not that of the approval that waits: look again at what is to be approved")
	case a.EditedInput == nil:
		return nil
	case !*a.Approved:
		return fmt.Errorf("edited input goes with an approval, not with a denial")
	}
	t, ok := c.cfg.Registry.Tool(record.Agent, w.Tool)
	if !ok {
		return fmt.Errorf("the tool %q is not in this program, so edited input cannot be checked", w.Tool)
	}
	if err := toolrun.CheckEdited(t, a.EditedInput); err != nil {
		return err
	}
	a.Preview = toolrun.Preview(t, a.EditedInput)
	return nil
}

// checkValue names what a person gave that cannot go into the journal.
func checkValue(what string, raw json.RawMessage) error {
	if err := journal.CheckValue(raw); err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	return nil
}

// CheckSize refuses an answer that has more than its share of the entry that takes it
// in; all waits of a suspension have the same. So what was taken fits, whatever else is
// answered at the same moment. One that is small always fits.
func (c *Checker) CheckSize(key session.Key, record journal.WaitRecord, answer session.Answer, waits int) error {
	size, most := engine.EncodedSize(answer), max(engine.SmallAnswer, c.cfg.StepBytes/max(waits, 1))
	if size <= most {
		return nil
	}
	return refusal.New(codes.InputTooLarge, key, "%s: the answer has %d bytes in JSON, and %d are the most beside what else the session waits for. Put large data where a tool can read it", Label(record.Wait), size, most)
}
