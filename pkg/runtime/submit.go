package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Submit answers one wait in one conditional update: still open, same kind, same
// nonce. The first answer wins; the same one again gets the first reply, a
// different one is refused with already_answered, a wrong kind with wrong_kind,
// one after the deadline with expired. After the last answer a resume is sent.
func (r *Runtime) Submit(ctx context.Context, p SubmitParams) (Submitted, error) {
	out, err := r.submit(ctx, p)
	if err != nil {
		return Submitted{}, AsError(err)
	}
	return out, nil
}

func (r *Runtime) submit(ctx context.Context, p SubmitParams) (Submitted, error) {
	s, err := r.need(ctx, p.Key)
	if err != nil {
		return Submitted{}, err
	}
	defer func() { r.keep(s) }()
	for try := 1; ; try++ {
		items, err := r.items(ctx, p.Key, store.KindWait, "")
		if err != nil {
			return Submitted{}, err
		}
		item, err := findWait(p.Key, items, p.Answer)
		if err != nil {
			return Submitted{}, err
		}
		record := *item.Wait
		answer, err := r.checkAnswer(s, record, p)
		if err != nil {
			return Submitted{}, err
		}
		if record.State != session.WaitOpen {
			return r.settled(ctx, s, p, record, answer)
		}
		if d := record.Wait.Deadline; d != nil && !r.cfg.Now().Before(d.At) {
			if err := r.expire(ctx, p.Key, item); err != nil {
				return Submitted{}, err
			}
			return Submitted{}, r.tooLate(p.Key, record)
		}
		if s.Status != session.StatusSuspended && s.Status != session.StatusInterrupted {
			return Submitted{}, r.sessionOver(s)
		}
		record.State, record.Answer, record.Held, record.Due = session.WaitAnswered, &answer, p.HoldResume, nil
		if !p.HoldResume {
			record.Due = ptr(r.cfg.Now().Add(engine.AnsweredGrace).UTC())
		}
		_, err = r.cfg.Store.Update(ctx, p.Key, store.WaitItem(record, item.Rev))
		if errors.Is(err, store.ErrConflict) && try < maxTries {
			continue // somebody was first: look who
		}
		if err != nil {
			return Submitted{}, err
		}
		return r.continued(ctx, s, p, answer, false)
	}
}

// continued reads what is still open, after our own update, and sends the resume
// when nothing is.
func (r *Runtime) continued(ctx context.Context, s *session.Session, p SubmitParams, answer session.Answer, repeated bool) (Submitted, error) {
	out := Submitted{Answer: answer, Repeated: repeated, Continuation: ContinuationStored}
	waits, err := r.waits(ctx, p.Key)
	if err != nil {
		return out, err
	}
	out.Open = openWaits(waits)
	if len(out.Open) > 0 {
		out.Continuation = ContinuationWaiting
		return out, nil
	}
	if p.HoldResume {
		return out, nil
	}
	out.Continuation = ContinuationResumed
	return out, r.sendResume(ctx, s)
}

// sendResume sends for the entry that leaves the suspension, if the session is
// still in it. The caller owns s.
func (r *Runtime) sendResume(ctx context.Context, s *session.Session) error {
	s, err := r.refresh(ctx, s)
	if err != nil || s.Status != session.StatusSuspended {
		return err
	}
	return r.send(ctx, session.NewWake(s.Key, s.Next(), session.WakeResume))
}

// settled answers for a wait that is not open any more.
func (r *Runtime) settled(ctx context.Context, s *session.Session, p SubmitParams, record session.WaitRecord, answer session.Answer) (Submitted, error) {
	if record.Answer != nil && record.State != session.WaitExpired && record.Answer.Kind != session.AnswerExpiry {
		if sameAnswer(*record.Answer, answer) {
			return r.continued(ctx, s, p, *record.Answer, true)
		}
		e := refuse(CodeAlreadyAnswered, p.Key, "%s was answered before, differently, by %s at %s. The first answer counts", label(record.Wait), record.Answer.Who, record.Answer.When.Format("2006-01-02 15:04:05 MST"))
		e.Answer = record.Answer
		return Submitted{}, e
	}
	return Submitted{}, r.tooLate(p.Key, record)
}

func (r *Runtime) tooLate(key session.Key, record session.WaitRecord) error {
	if record.State == session.WaitClosed {
		return refuse(CodeSessionEnded, key, "%s was given up before this answer came: the session went on without it", label(record.Wait))
	}
	at := ""
	if d := record.Wait.Deadline; d != nil {
		at = " at " + d.At.Format("2006-01-02 15:04:05 MST")
	}
	return refuse(CodeExpired, key, "%s expired%s; what its deadline declared has happened instead", label(record.Wait), at)
}

func (r *Runtime) sessionOver(s *session.Session) error {
	e := refuse(CodeSessionEnded, s.Key, "it is %s and waits for nothing", s.Status)
	e.Status = s.Status
	return e
}

// label names a wait for people.
func label(w session.Wait) string {
	if w.Call != "" {
		return string(w.Kind) + " of " + w.Call + " (" + w.Tool + ")"
	}
	return string(w.Kind) + " " + w.ID
}

// answers says which kind of answer a kind of wait takes.
func answers(kind session.WaitKind) session.AnswerKind {
	switch kind {
	case session.WaitClientTool:
		return session.AnswerClientTool
	case session.WaitApproval:
		return session.AnswerApproval
	case session.WaitQuestion:
		return session.AnswerReply
	case session.WaitInput:
		return session.AnswerMessage
	case session.WaitChild:
		return session.AnswerChild
	case session.WaitUnknown:
		return session.AnswerVerdict
	}
	return ""
}

// findWait finds the wait an answer is for: the one it names, else an open one of
// its kind, else the newest settled one of its kind.
func findWait(key session.Key, items []store.Item, a session.Answer) (store.Item, error) {
	var found store.Item
	named := false
	for _, item := range items {
		w := item.Wait.Wait
		if a.Wait != "" && w.ID != a.Wait || (a.Wait == "" || a.ToolCallID != "") && w.Call != a.ToolCallID {
			continue // named by both, it is what both name
		}
		named = true
		if answers(w.Kind) != a.Kind || a.QuestionID != "" && w.Question != nil && w.Question.ID != a.QuestionID {
			continue
		}
		if found.Wait == nil || better(item.Wait, found.Wait) {
			found = item
		}
	}
	switch {
	case found.Wait != nil:
		return found, nil
	case named:
		return found, refuse(CodeWrongKind, key, "what waits there does not take an answer of kind %q", a.Kind)
	case a.Wait != "":
		return found, refuse(CodeWaitNotFound, key, "there is no wait %q", a.Wait)
	case a.ToolCallID != "":
		return found, refuse(CodeWaitNotFound, key, "no call %q waits or waited for an answer", a.ToolCallID)
	}
	return found, refuse(CodeWaitNotFound, key, "it does not wait for a message")
}

func better(a, b *session.WaitRecord) bool {
	if (a.State == session.WaitOpen) != (b.State == session.WaitOpen) {
		return a.State == session.WaitOpen
	}
	return a.Wait.OpenedAt.After(b.Wait.OpenedAt)
}

// sameAnswer reports whether two answers decide the same. Who gave it, when, and
// the words of a reason do not count.
func sameAnswer(a, b session.Answer) bool {
	sameBool := a.Approved == nil && b.Approved == nil || a.Approved != nil && b.Approved != nil && *a.Approved == *b.Approved
	sameText := a.Text == nil && b.Text == nil || a.Text != nil && b.Text != nil && *a.Text == *b.Text
	return a.Kind == b.Kind && sameBool && sameText && sameJSON(a.EditedInput, b.EditedInput) && sameJSON(a.Result, b.Result) &&
		a.Error == b.Error && slices.Equal(a.Selected, b.Selected) && a.Message == b.Message && a.Verdict == b.Verdict
}

func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || session.Digest(a) == session.Digest(b)
}

func (r *Runtime) waits(ctx context.Context, key session.Key) ([]session.WaitRecord, error) {
	items, err := r.items(ctx, key, store.KindWait, "")
	if err != nil {
		return nil, err
	}
	records := make([]session.WaitRecord, len(items))
	for i, item := range items {
		records[i] = *item.Wait
	}
	slices.SortFunc(records, func(a, b session.WaitRecord) int { return compareWaits(a.Wait, b.Wait) })
	return records, nil
}

func openWaits(records []session.WaitRecord) []session.Wait {
	var open []session.Wait
	for _, record := range records {
		if record.State == session.WaitOpen {
			open = append(open, record.Wait)
		}
	}
	return open
}

func countOpen(records []session.WaitRecord) int { return len(openWaits(records)) }

// held reports whether the last answer was only to be stored: then somebody else
// decides when to go on. Answers given before it, held or not, do not count.
func held(records []session.WaitRecord) bool {
	var last *session.WaitRecord
	for i, w := range records {
		if w.State != session.WaitAnswered && w.State != session.WaitExpired {
			continue
		}
		later := last == nil || w.Answer.When.After(last.Answer.When)
		if later || w.Answer.When.Equal(last.Answer.When) && !w.Held {
			last = &records[i]
		}
	}
	return last != nil && last.Held
}
