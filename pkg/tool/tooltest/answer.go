package tooltest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// answer adds the answers that the test has for the waits; false if any has none, for
// then the call goes on waiting.
func (r *run) answer(waits []session.Wait) bool {
	var open []tool.Question
	all := true
	var wrong []error
	for i, w := range waits {
		w.ID = fmt.Sprintf("w%d-1", len(r.call.Waits)+3)
		a := session.Answer{Wait: w.ID, ToolCallID: r.call.ID}
		var given bool
		var err error
		if w.Kind == session.WaitQuestion {
			given, err = r.reply(w, &a)
		} else {
			given, err = r.decide(w, &a)
		}
		if err != nil {
			wrong, given = append(wrong, err), false
		}
		if r.call.Waits = append(r.call.Waits, w); given {
			r.call.Answers = append(r.call.Answers, a)
			continue
		}
		if all = false; w.Kind == session.WaitQuestion {
			open = append(open, r.result.Open[i])
		}
	}
	r.result.Open = open
	if len(wrong) > 0 {
		r.result.Err = &answerError{wrong: errors.Join(wrong...), waits: r.result.Err}
	}
	return all
}

// answerError is an answer of the test that is wrong, so that the call still waits. It does
// not say what to set, for that is set.
type answerError struct{ wrong, waits error }

func (e *answerError) Error() string   { return e.wrong.Error() }
func (e *answerError) Unwrap() []error { return []error{e.wrong, e.waits} }

// reply answers a question.
func (r *run) reply(w session.Wait, a *session.Answer) (bool, error) {
	q := *w.Question
	reply, has := r.c.Answers[q.ID]
	a.Kind, a.QuestionID = session.AnswerReply, q.ID
	for _, before := range r.call.Answers {
		if before.QuestionID != q.ID {
			continue
		}
		if before.Kind == session.AnswerExpiry && before.Outcome != session.ExpireDefault {
			return false, nil // it is asked again
		}
		return false, r.changed(before, w)
	}
	switch {
	case has:
		if len(q.Choices) > 0 && reply.Text == "" {
			a.Selected = append([]string{}, reply.Selected...)
		}
		if len(q.Choices) == 0 && reply.Selected == nil {
			a.Text = &reply.Text
		}
		if err := toolrun.CheckReply(q, *a, toolrun.ReplyFields{Text: "Text", Selected: "Selected, ids of its choices"}); err != nil {
			return false, fmt.Errorf("the answer to question %q does not fit it: %w", q.ID, err)
		}
		return true, nil
	case slices.Contains(r.c.Expired, q.ID):
		return true, expire(w, a, fmt.Sprintf("question %q has no deadline that could pass: set its Expiry", q.ID))
	}
	return false, nil
}

// changed says how a question differs from the one that was answered.
func (r *run) changed(a session.Answer, now session.Wait) error {
	i := slices.IndexFunc(r.call.Waits, func(w session.Wait) bool { return w.ID == a.Wait })
	was := r.call.Waits[i]
	return fmt.Errorf("question %q changed after it was answered, so it waits again: it was %s, and is %s; what changes between runs goes through tool.Once",
		a.QuestionID, shown(was), shown(now))
}

// shown is what a person saw of a question, and who may answer it.
func shown(w session.Wait) string {
	text := fmt.Sprintf("%q", w.Question.Text)
	if len(w.Question.Choices) > 0 {
		text += fmt.Sprintf(" with the choices %q", w.Question.Choices)
	}
	if len(w.Who) > 0 {
		text += fmt.Sprintf(" for %q", w.Who)
	}
	return text
}

// decide answers an approval, or what a person is asked about a run whose end is not known.
func (r *run) decide(w session.Wait, a *session.Answer) (bool, error) {
	c, approval := r.c, w.Kind == session.WaitApproval
	if r.decided[w.Kind] {
		return false, nil // its deadline says that it is asked again
	}
	switch {
	case approval && (c.Approved || c.Rejected):
		a.Kind, a.Approved, a.Digest, a.ShownDigest = session.AnswerApproval, &c.Approved, w.Digest, w.ShownDigest
		if c.Rejected {
			a.Reason = c.Reason
		}
		if r.edited != nil {
			if err := toolrun.CheckEdited(r.t, r.edited); err != nil {
				r.decided[w.Kind] = true
				return false, err
			}
			a.EditedInput, a.Digest = r.edited, journal.Digest(r.edited)
		}
	case !approval && c.Verdict != nil:
		if err := r.verdict(a); err != nil {
			r.decided[w.Kind] = true
			return false, err
		}
	case c.DecisionExpired:
		if err := expire(w, a, "the decision has no deadline that could pass: set Expiry in the tool's Spec"); err != nil {
			r.decided[w.Kind] = true
			return false, err
		}
	default:
		return false, nil
	}
	r.decided[w.Kind] = true
	return true, nil
}

func (r *run) verdict(a *session.Answer) (err error) {
	v := r.c.Verdict
	a.Kind, a.Verdict, a.Reason = session.AnswerVerdict, session.VerdictNotHappened, v.Reason
	if !v.Happened && v.Result != nil {
		return errors.New("the verdict is that the run had no effect, and has a result")
	}
	if v.Happened {
		a.Verdict = session.VerdictHappened
		if a.Result, err = encode(v.Result); err == nil && a.Result != nil {
			err = journal.CheckValue(a.Result)
		}
	}
	if err != nil {
		return fmt.Errorf("the result of the verdict: %w", err)
	}
	return nil
}

// expire is the answer of a deadline that has passed.
func expire(w session.Wait, a *session.Answer, without string) error {
	if w.Deadline == nil {
		return errors.New(without)
	}
	a.Kind, a.Outcome = session.AnswerExpiry, w.Deadline.Outcome
	if a.Outcome == session.ExpireDefault {
		a.Result = w.Deadline.Value
		if w.Kind == session.WaitApproval {
			a.Digest = w.Digest
		}
	}
	return nil
}
