package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Submit answers one wait in one conditional update: still open, same kind, same
// nonce. The first answer wins; the same one again gets the first reply, a
// different one is refused with already_answered, a wrong kind with wrong_kind,
// one after the deadline with expired. After the last answer a resume is sent.
//
// It reads HEAD and the waits of one suspension, however long the session is. A repeated request
// returns the first answer; the open waits, and whether the session continues, are as of now.
func (r *Runtime) Submit(ctx context.Context, p SubmitParams) (Submitted, error) {
	out, err := r.submit(ctx, p)
	if err != nil {
		return Submitted{}, AsError(err)
	}
	return out, nil
}

func (r *Runtime) submit(ctx context.Context, p SubmitParams) (Submitted, error) {
	if err := checkFields(p.Key, p.Answer); err != nil {
		return Submitted{}, err
	}
	q, err := newRequest(p.Key.Tenant, p.Caller, verbSubmit, p.IdempotencyKey, p.Key.ID, p.Answer, p.HoldResume)
	if err != nil {
		return Submitted{}, err
	}
	return once(ctx, r, p.Key, &q, func(did json.RawMessage) (Submitted, error) {
		d, err := readDone(did)
		if err != nil {
			return Submitted{}, err
		}
		return r.submittedBefore(ctx, p.Key, d)
	}, func() (Submitted, error) {
		return r.submitOnce(ctx, &p, &q)
	})
}

// submitOnce reads and writes once. It stores the wait's name in the parameters, so that the next
// read is about the same wait. A conflict means that another writer was first.
func (r *Runtime) submitOnce(ctx context.Context, p *SubmitParams, q *request) (Submitted, error) {
	a, err := r.loadSuspension(ctx, p.Key)
	if err != nil {
		return Submitted{}, err
	}
	item, err := r.findWait(ctx, a, p.Answer)
	if err != nil {
		return Submitted{}, err
	}
	p.Answer.Wait = item.ID
	record := *item.Wait
	isOpen := record.State == session.WaitOpen
	answer, err := r.checkAnswer(record, *p)
	switch {
	case err != nil:
	case isOpen:
		if err = r.checkInTime(ctx, a.head, item); err == nil {
			err = r.checkAnswerSize(p.Key, record, answer, len(a.items))
		}
	default:
		err = r.checkSettled(p.Key, record, answer)
	}
	if err != nil {
		return Submitted{}, aboutWait(item.ID, err)
	}
	out := Submitted{Answer: answer}
	writes, err := q.record(r.cfg.Now(), p.Key, a.head.StatusSeq, done{Wait: item.ID, Held: p.HoldResume, Repeated: !isOpen})
	if err != nil {
		return Submitted{}, err
	}
	if isOpen {
		writes = append(writes, withAnswer(item, answer, p.HoldResume, onlyOpen(a.items, item)))
	} else {
		out.Answer, out.Repeated = *record.Answer, true
	}
	if err := r.sessions.Update(ctx, p.Key, writes); err != nil {
		return Submitted{}, err
	}
	out.Continuation, out.Open, err = r.continuation(ctx, p.Key, p.HoldResume)
	return out, err
}

// submittedBefore is the answer to a request that was carried out before.
func (r *Runtime) submittedBefore(ctx context.Context, key session.Key, d done) (Submitted, error) {
	item, err := r.sessions.Item(ctx, key, store.KindWait, d.Wait)
	if err != nil {
		return Submitted{}, err
	}
	if item.Wait == nil || item.Wait.Answer == nil {
		return Submitted{}, refuse(CodeSessionNotFound, key, "there is no such session any more")
	}
	out := Submitted{Answer: *item.Wait.Answer, Repeated: d.Repeated, Replayed: true}
	out.Continuation, out.Open, err = r.continuation(ctx, key, d.Held)
	return out, err
}

// checkInTime refuses an answer to an open wait that comes too late: after the wait's
// deadline, which it keeps, or when the session waits no more. A conflict is an
// answer that came before the deadline, perhaps this very one.
func (r *Runtime) checkInTime(ctx context.Context, head journal.Head, item store.Item) error {
	if r.sessions.Overdue(*item.Wait) {
		if err := r.sessions.Expire(ctx, head.Key, item); err != nil {
			return err
		}
		return r.tooLate(head.Key, *item.Wait)
	}
	if head.Status != session.StatusSuspended && head.Status != session.StatusInterrupted {
		return refuseAt(CodeSessionEnded, head.Key, head.Status, "it is %s and waits for nothing", head.Status)
	}
	return nil
}

// withAnswer is an open wait with its answer. only says that no other wait was open before: an
// answer that is only stored is then known to be the last one. After any other answer the sweep
// continues the session if the caller's process dies before it does so.
func withAnswer(item store.Item, answer session.Answer, hold, only bool) store.Item {
	record := *item.Wait
	record.State, record.Answer, record.Held, record.HeldLast, record.Due = session.WaitAnswered, &answer, hold, hold && only, nil
	if !record.HeldLast {
		record.Due = new(answer.When.Add(engine.AnsweredGrace))
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

// continuation reads what is still open, after our own update, and sends the resume when
// nothing is, unless this answer or the last one is held. The answers of an
// interrupted session are stored: only resuming it goes on with them.
func (r *Runtime) continuation(ctx context.Context, key session.Key, hold bool) (Continuation, []session.Wait, error) {
	a, err := r.loadSuspension(ctx, key)
	if err != nil {
		return ContinuationStored, nil, err
	}
	if a.head.Status != session.StatusSuspended && a.head.Status != session.StatusInterrupted {
		return ContinuationResumed, nil, nil // it has gone on
	}
	waits := stored.WaitRecords(a.items)
	switch open := stored.OpenWaits(waits); {
	case len(open) > 0:
		return ContinuationWaiting, open, nil
	case a.head.Status == session.StatusInterrupted, hold, stored.StaysSuspended(waits):
		return ContinuationStored, nil, nil
	}
	return ContinuationResumed, nil, r.sessions.Send(ctx, journal.NewWake(key, stored.LeavingSeq(a.head), journal.WakeResume))
}

// checkSettled refuses an answer to a wait that is not open any more, unless it says
// what was answered before.
func (r *Runtime) checkSettled(key session.Key, record journal.WaitRecord, answer session.Answer) error {
	if !settledByPeople(record) {
		return r.tooLate(key, record)
	}
	if sameAnswer(*record.Answer, answer) {
		return nil
	}
	return answeredDifferently(key, record)
}

// settledByPeople reports whether a person or a program answered a wait (it did not expire).
func settledByPeople(record journal.WaitRecord) bool {
	return record.Answer != nil && record.State != session.WaitExpired && record.Answer.Kind != session.AnswerExpiry
}

func answeredDifferently(key session.Key, record journal.WaitRecord) *Error {
	e := refuse(CodeAlreadyAnswered, key, "%s was answered before, differently, by %s at %s. The first answer counts", label(record.Wait), record.Answer.Who, record.Answer.When.Format("2006-01-02 15:04:05 MST"))
	e.Answer = record.Answer
	return e
}

func (r *Runtime) tooLate(key session.Key, record journal.WaitRecord) error {
	if record.State == session.WaitClosed {
		return refuse(CodeSessionEnded, key, "%s was closed before this answer came: the session continued without it", label(record.Wait))
	}
	at := ""
	if d := record.Wait.Deadline; d != nil {
		at = " at " + d.At.Format("2006-01-02 15:04:05 MST")
	}
	return refuse(CodeExpired, key, "%s expired%s; what its deadline declared has happened instead", label(record.Wait), at)
}

// answerKind says which kind of answer a kind of wait takes.
func answerKind(kind session.WaitKind) session.AnswerKind {
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

// findWait finds the wait an answer names: by its id, an approval also by its nonce,
// a client tool's result by its call. A message names nothing: it is for the input
// the session asked for last.
func (r *Runtime) findWait(ctx context.Context, a suspension, answer session.Answer) (store.Item, error) {
	key := a.head.Key
	switch {
	case answer.Wait != "":
		item, err := r.wait(ctx, a, answer.Wait)
		switch {
		case err != nil:
			return item, err
		case item.Wait == nil:
			return item, r.noWait(a, answer)
		}
		return item, aboutWait(item.ID, checkNames(key, item.Wait.Wait, answer))
	case answer.Kind == session.AnswerApproval && answer.ApprovalID != "":
		id, _, _ := strings.Cut(answer.ApprovalID, "_")
		item, err := r.wait(ctx, a, id)
		switch {
		case err != nil:
			return item, err
		case item.Wait == nil:
			return item, noApproval(a)
		case item.Wait.Wait.Nonce != answer.ApprovalID:
			return item, aboutWait(item.ID, noApproval(a)) // the same refusal for both: callers must not learn whether the wait exists
		}
		return item, aboutWait(item.ID, checkNames(key, item.Wait.Wait, answer))
	case answer.Kind == session.AnswerClientTool && answer.ToolCallID != "":
		return r.clientCall(ctx, a, answer)
	case answer.Kind == session.AnswerMessage:
		for _, item := range a.items {
			if item.Wait.Wait.Kind == session.WaitInput {
				return item, nil
			}
		}
		return store.Item{}, refuse(CodeWaitNotFound, key, "it does not wait for a message")
	case answer.ToolCallID != "":
		return store.Item{}, refuse(CodeInvalidAnswer, key, "a call names no answer of kind %q, for it may be asked about more than once. %s", answer.Kind, a.suggestWaits(answer.Kind, answer.ToolCallID))
	}
	return store.Item{}, refuse(CodeInvalidAnswer, key, "the answer does not say which wait it is for. %s", a.suggestWaits(answer.Kind, ""))
}

func noApproval(a suspension) *Error {
	return refuse(CodeWaitNotFound, a.head.Key, "no approval has this approvalId. %s", a.suggestWaits(session.AnswerApproval, ""))
}

func (r *Runtime) noWait(a suspension, answer session.Answer) *Error {
	if !stored.IsWait(answer.Wait) && strings.HasPrefix(answer.Wait, "c") {
		return refuse(CodeWaitNotFound, a.head.Key, "%q is the id of a call, not of a wait. %s", answer.Wait, a.suggestWaits(answer.Kind, answer.Wait))
	}
	return refuse(CodeWaitNotFound, a.head.Key, "there is no wait %q. %s", answer.Wait, a.suggestWaits(answer.Kind, ""))
}

// clientCall finds the wait for a client tool's result by its call: of the
// suspension, else, for a result that is sent again later, the newest of that call.
func (r *Runtime) clientCall(ctx context.Context, a suspension, answer session.Answer) (store.Item, error) {
	for _, item := range slices.Backward(a.items) {
		if w := item.Wait.Wait; w.Kind == session.WaitClientTool && w.Call == answer.ToolCallID {
			return item, nil
		}
	}
	id, err := r.waitOfCall(ctx, a.head, answer.ToolCallID)
	if err != nil {
		return store.Item{}, err
	}
	if id != "" {
		return r.wait(ctx, a, id)
	}
	return store.Item{}, refuse(CodeWaitNotFound, a.head.Key, "no call %q waits or waited for a client's result. %s", answer.ToolCallID, a.suggestWaits(answer.Kind, ""))
}

// maxOfCall bounds how many entries are read to find a wait by its call. A call ends after a few
// entries, unless it is not answered and asks again each time.
const maxOfCall = 64

// waitOfCall returns the newest wait for a client's result of a call, "" if there is
// none. It reads the entries from the call's reply to its result, not every wait the
// session ever had.
func (r *Runtime) waitOfCall(ctx context.Context, head journal.Head, call string) (id string, err error) {
	seq, _ := stored.WaitNumbers("w" + strings.TrimPrefix(call, "c"))
	if seq < 1 || !strings.HasPrefix(call, "c") {
		return "", nil
	}
	n := 0
	for e, err := range r.cfg.Store.Entries(ctx, head.Key, seq-1) {
		if err != nil {
			return "", fmt.Errorf("session %s: waits of call %s: %w", head.Key, call, err)
		}
		for _, w := range e.Waits {
			if w.Call == call && w.Kind == session.WaitClientTool && e.Seq <= head.WaitsAt { // else no client has received it
				id = w.ID
			}
		}
		if n++; n == maxOfCall || e.Seq >= head.WaitsAt || slices.ContainsFunc(e.Messages, func(m llm.Message) bool { return resultOf(m, call) }) {
			break
		}
	}
	return id, nil
}

// resultOf reports whether a message has the result of a call.
func resultOf(m llm.Message, call string) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.ToolResult != nil && p.ToolResult.CallID == call })
}

// checkNames holds what else an answer names to the wait it names.
func checkNames(key session.Key, w session.Wait, a session.Answer) error {
	switch {
	case answerKind(w.Kind) != a.Kind:
		return refuse(CodeWrongKind, key, "%s takes an answer of kind %q, not %q", label(w), answerKind(w.Kind), a.Kind)
	case a.ToolCallID != "" && a.ToolCallID != w.Call:
		return refuse(CodeWaitNotFound, key, "%s is not of a call %q, but of %s", label(w), a.ToolCallID, w.Call)
	case a.QuestionID != "" && w.Question != nil && a.QuestionID != w.Question.ID:
		return refuse(CodeWrongKind, key, "%s is another question, %q", label(w), w.Question.ID)
	}
	return nil
}

// sameAnswer reports whether two answers decide the same, whatever their authors, their times and
// the way they named the wait. Another reason is another answer; the order of a selection does
// not count.
func sameAnswer(a, b session.Answer) bool { return decisionDigest(a) == decisionDigest(b) }

// decisionDigest identifies what an answer decides.
func decisionDigest(a session.Answer) string {
	selected := slices.Clone(a.Selected)
	slices.Sort(selected)
	raw, err := json.Marshal(session.Answer{
		Kind: a.Kind, Approved: a.Approved, Reason: a.Reason, EditedInput: a.EditedInput, Result: a.Result, Error: a.Error,
		Selected: selected, Text: a.Text, Message: a.Message, Status: a.Status, Verdict: a.Verdict, Outcome: a.Outcome,
	})
	if err != nil {
		return "" // an answer was checked before: its values are JSON
	}
	return journal.Digest(raw)
}
