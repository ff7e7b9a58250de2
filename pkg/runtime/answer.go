package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// answerFields holds the fields that belong to each kind of answer from a caller, by their names
// over HTTP. The fields that name the wait are allowed with every kind.
var answerFields = map[session.AnswerKind][]string{
	session.AnswerClientTool: {"result", "error"},
	session.AnswerApproval:   {"approvalId", "approved", "reason", "editedInput"},
	session.AnswerReply:      {"id", "selected", "text"},
	session.AnswerMessage:    {"message"},
	session.AnswerVerdict:    {"verdict", "reason", "result"},
}

// checkFields refuses an answer with fields of two kinds, whatever wait it is for. If such a
// field were kept, a reader could not tell which of the two the caller meant.
func checkFields(key session.Key, a session.Answer) error {
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
			return refuse(CodeInvalidInput, key, "%s does not belong to an answer of kind %s, which has %s", field.name, a.Kind, strings.Join(own, ", "))
		}
	}
	switch {
	case a.Selected != nil && a.Text != nil:
		return refuse(CodeInvalidInput, key, "selected and text do not go together: selected answers a question that has choices, text one that has none")
	case a.Verdict == session.VerdictNotHappened && a.Result != nil:
		return refuse(CodeInvalidInput, key, "result does not go with the verdict %s: what did not happen has none; a reason says more", a.Verdict)
	}
	return nil
}

// checkAnswer checks an answer against its wait and completes it: author, time, origin.
func (r *Runtime) checkAnswer(record journal.WaitRecord, p SubmitParams) (session.Answer, error) {
	a, w := p.Answer, record.Wait
	if err := checkWho(p.Key, w, p.Caller); err != nil {
		return a, err
	}
	a.Wait, a.ToolCallID = w.ID, w.Call
	a.Who, a.From, a.When = p.Caller.Who, p.Caller.From, r.cfg.Now().UTC()
	a.Reason = strings.TrimSpace(a.Reason)
	a.Audit, a.Digest = "", stored.Decided(w, a)
	for _, text := range []*string{&a.Reason, &a.Error, a.Text} {
		if text != nil && !utf8.ValidString(*text) {
			return a, refuse(CodeInvalidAnswer, p.Key, "%s: the answer is not valid UTF-8 text", label(w))
		}
	}
	if err := r.checkContent(record, p.Key, &a); err != nil {
		if refused := (*Error)(nil); errors.As(err, &refused) {
			return a, refused // it has its own code: a message that is empty or too long
		}
		return a, refuse(CodeInvalidAnswer, p.Key, "%s: %v", label(w), err)
	}
	return a, nil
}

// checkWho refuses a caller who may not answer a wait.
func checkWho(key session.Key, w session.Wait, c Caller) error {
	if mayAnswer(w, c) {
		return nil
	}
	return refuse(CodeNotAllowed, key, "%s may be answered by %s only, not by %q", label(w), strings.Join(w.Who, ", "), c.Who)
}

func (r *Runtime) checkContent(record journal.WaitRecord, key session.Key, a *session.Answer) error {
	w := record.Wait
	switch w.Kind {
	case session.WaitApproval:
		return r.checkApproval(record, a)
	case session.WaitClientTool:
		switch {
		case (a.Result == nil) == (a.Error == ""):
			return fmt.Errorf("give either a result or an error")
		case a.Result != nil:
			return checkValue("the result", a.Result)
		}
	case session.WaitQuestion:
		a.QuestionID = w.Question.ID
		return toolrun.CheckReply(*w.Question, *a)
	case session.WaitInput:
		if err := checkInput(key, a.Message); err != nil {
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

func (r *Runtime) checkApproval(record journal.WaitRecord, a *session.Answer) error {
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
	t, ok := r.cfg.Registry.Tool(record.Agent, w.Tool)
	if !ok {
		return fmt.Errorf("the tool %q is not in this program, so edited input cannot be checked", w.Tool)
	}
	return toolrun.CheckEdited(t, a.EditedInput)
}

// checkValue names what a person gave that cannot go into the journal.
func checkValue(what string, raw json.RawMessage) error {
	if err := journal.CheckValue(raw); err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	return nil
}

// checkAnswerSize refuses an answer that has more than its share of the entry that takes it
// in; all waits of a suspension have the same. So what was taken fits, whatever else is
// answered at the same moment. One that is small always fits.
func (r *Runtime) checkAnswerSize(key session.Key, record journal.WaitRecord, answer session.Answer, waits int) error {
	size, most := engine.EncodedSize(answer), max(engine.SmallAnswer, r.cfg.StepBytes/max(waits, 1))
	if size <= most {
		return nil
	}
	return refuse(CodeInputTooLarge, key, "%s: the answer has %d bytes in JSON, and %d are the most beside what else the session waits for. Put large data where a tool can read it", label(record.Wait), size, most)
}
