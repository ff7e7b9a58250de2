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
		if p.Answer.Wait == "" {
			// Not for what was opened while this was read: nobody has seen it.
			items = slices.DeleteFunc(items, func(item store.Item) bool {
				seq, _ := waitNumbers(item.ID)
				return seq > s.Version
			})
		}
		item, err := findWait(p.Key, items, p.Answer)
		if err != nil {
			return Submitted{}, err
		}
		record := *item.Wait
		p.Answer.Wait = item.ID // looking again is about this one
		answer, err := r.checkAnswer(s, record, p)
		if err != nil {
			return Submitted{}, err
		}
		if record.State != session.WaitOpen {
			if err := r.settled(p.Key, record, answer); err != nil {
				return Submitted{}, err
			}
			out := Submitted{Answer: *record.Answer, Repeated: true}
			out.Continuation, out.Open, err = r.goOn(ctx, s, p.HoldResume)
			return out, err
		}
		err = r.timely(ctx, s, item)
		if err == nil {
			_, err = r.cfg.Store.Update(ctx, p.Key, answered(item, answer, p.HoldResume, onlyOpen(items, item)))
		}
		if errors.Is(err, store.ErrConflict) && try < maxTries {
			continue // somebody was first: look who
		}
		if err != nil {
			return Submitted{}, err
		}
		out := Submitted{Answer: answer}
		out.Continuation, out.Open, err = r.goOn(ctx, s, p.HoldResume)
		return out, err
	}
}

// timely refuses an answer to an open wait that comes too late: after the wait's
// deadline, which it keeps, or when the session waits no more. A conflict is an
// answer that came before the deadline, perhaps this very one.
func (r *Runtime) timely(ctx context.Context, s *session.Session, item store.Item) error {
	if d := item.Wait.Wait.Deadline; d != nil && !r.cfg.Now().Before(d.At) {
		if err := r.expire(ctx, s.Key, item); err != nil {
			return err
		}
		return r.tooLate(s.Key, *item.Wait)
	}
	if s.Status != session.StatusSuspended && s.Status != session.StatusInterrupted {
		return r.sessionOver(s)
	}
	return nil
}

// answered is an open wait with its answer. only says that no other wait was open
// before: a held answer is then known to be the last. After any other one the sweep
// goes on with the session when whoever gave it dies before it can.
func answered(item store.Item, answer session.Answer, hold, only bool) store.Item {
	record := *item.Wait
	record.State, record.Answer, record.Held, record.HeldLast, record.Due = session.WaitAnswered, &answer, hold, hold && only, nil
	if !record.HeldLast {
		record.Due = ptr(answer.When.Add(engine.AnsweredGrace))
	}
	return store.WaitItem(record, item.Rev)
}

// onlyOpen reports whether of these waits a wait is the only open one. Waits are
// opened with their suspension and only close after that, so what is the only open
// one before it is answered is answered last.
func onlyOpen(items []store.Item, item store.Item) bool {
	return !slices.ContainsFunc(items, func(other store.Item) bool {
		return other.ID != item.ID && other.Wait.State == session.WaitOpen
	})
}

// goOn reads what is still open, after our own update, and sends the resume when
// nothing is, unless this answer or the last one is held. The answers of an
// interrupted session are stored: only resuming it goes on with them.
func (r *Runtime) goOn(ctx context.Context, s *session.Session, hold bool) (Continuation, []session.Wait, error) {
	waits, err := r.waits(ctx, s.Key)
	if err != nil {
		return ContinuationStored, nil, err
	}
	switch open := openWaits(waits); {
	case len(open) > 0:
		return ContinuationWaiting, open, nil
	case hold, held(waits):
		return ContinuationStored, nil, nil
	}
	s, err = r.refresh(ctx, s)
	switch {
	case err != nil:
		return ContinuationStored, nil, err
	case s.Status == session.StatusInterrupted:
		return ContinuationStored, nil, nil
	case s.Status == session.StatusSuspended:
		err = r.send(ctx, session.NewWake(s.Key, s.Next(), session.WakeResume))
	}
	return ContinuationResumed, nil, err
}

// settled refuses an answer to a wait that is not open any more, unless it says
// what was answered before.
func (r *Runtime) settled(key session.Key, record session.WaitRecord, answer session.Answer) error {
	if record.Answer != nil && record.State != session.WaitExpired && record.Answer.Kind != session.AnswerExpiry {
		if sameAnswer(*record.Answer, answer) {
			return nil
		}
		e := refuse(CodeAlreadyAnswered, key, "%s was answered before, differently, by %s at %s. The first answer counts", label(record.Wait), record.Answer.Who, record.Answer.When.Format("2006-01-02 15:04:05 MST"))
		e.Answer = record.Answer
		return e
	}
	return r.tooLate(key, record)
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

// findWait finds the wait an answer is for: the one it names, be it by the approval's
// nonce, else an open one of its kind, else the newest settled one of its kind. A reply
// that names the call alone is refused when the call has asked more than that.
func findWait(key session.Key, items []store.Item, a session.Answer) (store.Item, error) {
	var found store.Item
	var named *session.Wait
	for _, item := range items {
		w := item.Wait.Wait
		shown := a.Kind == session.AnswerApproval && w.Nonce != "" && w.Nonce == a.ApprovalID // nothing else has it
		switch {
		case a.Wait != "" && w.ID != a.Wait, a.ToolCallID != "" && w.Call != a.ToolCallID:
			continue // named by both, it is what both name
		case a.Wait == "" && a.ToolCallID == "" && w.Call != "" && !shown:
			continue // named by neither, it is no call's
		}
		named = &w
		if answers(w.Kind) != a.Kind || a.QuestionID != "" && w.Question != nil && w.Question.ID != a.QuestionID {
			continue
		}
		if shown {
			return item, nil
		}
		if found.Wait == nil || better(item.Wait, found.Wait) {
			found = item
		}
	}
	switch {
	case found.Wait != nil && a.Kind == session.AnswerReply && a.Wait == "" && a.QuestionID == "":
		return found, MoreThanOnce(key, waitRecords(items), *found.Wait)
	case found.Wait != nil:
		return found, nil
	case named != nil && answers(named.Kind) == a.Kind:
		return found, refuse(CodeWrongKind, key, "what waits there is another question, %q", named.Question.ID)
	case named != nil:
		return found, refuse(CodeWrongKind, key, "what waits there takes an answer of kind %q, not %q", answers(named.Kind), a.Kind)
	case a.Wait != "" && a.ToolCallID != "":
		return found, refuse(CodeWaitNotFound, key, "there is no wait %q of a call %q", a.Wait, a.ToolCallID)
	case a.Wait != "":
		return found, refuse(CodeWaitNotFound, key, "there is no wait %q", a.Wait)
	case a.ToolCallID != "":
		return found, refuse(CodeWaitNotFound, key, "no call %q waits or waited for an answer", a.ToolCallID)
	case a.Kind != session.AnswerMessage:
		return found, refuse(CodeWaitNotFound, key, "nothing that waits is named: an answer of kind %q names its wait or its call", a.Kind)
	}
	return found, refuse(CodeWaitNotFound, key, "it does not wait for a message")
}

func better(a, b *session.WaitRecord) bool {
	if (a.State == session.WaitOpen) != (b.State == session.WaitOpen) {
		return a.State == session.WaitOpen
	}
	aSeq, _ := waitNumbers(a.Wait.ID)
	bSeq, _ := waitNumbers(b.Wait.ID)
	return aSeq > bSeq // not by their times: clocks of workers differ
}

// sameAnswer reports whether two answers decide the same. Who gave it, when, and
// the words of a reason do not count.
func sameAnswer(a, b session.Answer) bool {
	sameBool := a.Approved == nil && b.Approved == nil || a.Approved != nil && b.Approved != nil && *a.Approved == *b.Approved
	sameText := a.Text == nil && b.Text == nil || a.Text != nil && b.Text != nil && *a.Text == *b.Text
	return a.Kind == b.Kind && sameBool && sameText && sameJSON(a.EditedInput, b.EditedInput) && sameJSON(a.Result, b.Result) &&
		a.Error == b.Error && slices.Equal(a.Selected, b.Selected) && sameParts(a.Message, b.Message) && a.Verdict == b.Verdict
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
	return waitRecords(items), nil
}

// waitRecords returns the records of waits, in the order they were opened.
func waitRecords(items []store.Item) []session.WaitRecord {
	records := make([]session.WaitRecord, len(items))
	for i, item := range items {
		records[i] = *item.Wait
	}
	slices.SortFunc(records, func(a, b session.WaitRecord) int { return compareWaits(a.Wait, b.Wait) })
	return records
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

// held reports whether a session that waits for nothing any more stays where it is:
// because its last answer was only to be stored, or all of them were. Which one was
// the last is known from what a held answer found open, never from times: clocks differ.
func held(records []session.WaitRecord) bool {
	answers, all := 0, true
	for _, w := range records {
		switch {
		case w.State != session.WaitAnswered && w.State != session.WaitExpired:
			continue
		case w.HeldLast:
			return true
		}
		answers++
		all = all && w.Held
	}
	return all && answers > 0
}
