package runtime

import (
	"context"
	"encoding/json"

	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
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
	return asResult(r.submit(ctx, p))
}

func (r *Runtime) submit(ctx context.Context, p SubmitParams) (Submitted, error) {
	if err := answers.CheckFields(p.Key, p.Answer); err != nil {
		r.Refused(ctx, p.Key, p.Caller, p.Answer.Wait, AsError(err).Code)
		return Submitted{}, err
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Submit, p.IdempotencyKey, p.Key.ID, p.Answer, p.HoldResume)
	if err != nil {
		return Submitted{}, err
	}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Submitted, error) {
		d, err := idempotency.ReadDone(did)
		if err != nil {
			return Submitted{}, err
		}
		return r.submittedBefore(ctx, p.Key, d, p.Caller)
	}, func() (Submitted, error) {
		return r.submitOnce(ctx, &p, &q)
	})
}

// submitOnce reads and writes once. It stores the wait's name in the parameters, so that the next
// read is about the same wait. A conflict means that another writer was first.
func (r *Runtime) submitOnce(ctx context.Context, p *SubmitParams, q *idempotency.Request) (Submitted, error) {
	a, err := r.sessions.LoadToAnswer(ctx, p.Key)
	if err != nil {
		return Submitted{}, err
	}
	item, err := r.answers.Find(ctx, a, &p.Answer)
	if err != nil {
		return Submitted{}, err
	}
	p.Answer.Wait = item.ID
	record := *item.Wait
	by, err := r.answers.StandingIn(ctx, p.Key, record, p.Caller)
	if err != nil {
		return Submitted{}, err
	}
	isOpen := answers.TakesFrom(record, by)
	answer, err := r.answers.Check(p.Key, record, p.Answer, by)
	switch {
	case err != nil:
	case isOpen:
		if err = r.checkInTime(ctx, a.Head, item); err == nil {
			err = r.answers.CheckSize(p.Key, record, answer, len(a.Items))
		}
	default:
		err = answers.CheckSettled(p.Key, record, answer, by)
	}
	if err != nil {
		return Submitted{}, refusal.About(item.ID, err)
	}
	var out Submitted
	writes, err := q.Record(r.cfg.Now(), p.Key, a.Head.StatusSeq, idempotency.Done{Wait: item.ID, Held: p.HoldResume, Repeated: !isOpen})
	if err != nil {
		return Submitted{}, err
	}
	if isOpen {
		item = answers.StoodIn(item, session.WaitAct{At: answer.When, From: answer.From}, by)
		with := answers.WithAnswer(item, answer, p.HoldResume, answers.OnlyOpen(a.Items, item))
		writes, record = append(writes, with), *with.Wait
	}
	out.Answer, out.Repeated, out.VotesMissing = *answers.Given(record, by), !isOpen, answers.Missing(record)
	if err := r.sessions.Update(ctx, p.Key, writes); err != nil {
		return Submitted{}, err
	}
	out.Continuation, out.Open, err = r.continuation(ctx, p.Key, p.HoldResume)
	return out, err
}

// submittedBefore is the answer to a request that was carried out before.
func (r *Runtime) submittedBefore(ctx context.Context, key session.Key, d idempotency.Done, by Caller) (Submitted, error) {
	item, err := r.sessions.Item(ctx, key, store.KindWait, d.Wait)
	if err != nil {
		return Submitted{}, err
	}
	if item.Wait == nil || answers.Given(*item.Wait, by) == nil {
		return Submitted{}, refusal.New(CodeSessionNotFound, key, "there is no such session any more")
	}
	out := Submitted{Answer: *answers.Given(*item.Wait, by), VotesMissing: answers.Missing(*item.Wait), Repeated: d.Repeated, Replayed: true}
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
		return answers.TooLate(head.Key, *item.Wait)
	}
	if head.Status != session.StatusSuspended && head.Status != session.StatusInterrupted {
		return refusal.At(CodeSessionEnded, head.Key, head.Status, "%s and waits for nothing", refusal.Stands(head.Status))
	}
	return nil
}

// continuation reads what is still open, after our own update, and sends the resume when
// nothing is, unless this answer or the last one is held. The answers of an
// interrupted session are stored: only resuming it goes on with them.
func (r *Runtime) continuation(ctx context.Context, key session.Key, hold bool) (Continuation, []journal.WaitRecord, error) {
	a, err := r.sessions.LoadSuspension(ctx, key)
	if err != nil {
		return ContinuationStored, nil, err
	}
	if a.Head.Status != session.StatusSuspended && a.Head.Status != session.StatusInterrupted {
		return ContinuationResumed, nil, nil // it has gone on
	}
	waits := stored.WaitRecords(a.Items)
	switch open := stored.OpenRecords(waits); {
	case len(open) > 0:
		return ContinuationWaiting, open, nil
	case a.Head.Status == session.StatusInterrupted, hold, stored.StaysSuspended(waits):
		return ContinuationStored, nil, nil
	}
	return ContinuationResumed, nil, r.sessions.Send(ctx, journal.NewWake(key, stored.LeavingSeq(a.Head), journal.WakeResume))
}
