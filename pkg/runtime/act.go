package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// MaxExtension is how far ahead an extended deadline may be: 30 days.
const MaxExtension = answers.MaxExtension

// ActParams do something to an open wait without deciding it.
type ActParams struct {
	Key  session.Key
	Wait string
	Kind session.WaitActKind
	// Reason is kept with it; a dismissal needs one.
	Reason string
	// To is the person of a delegation, Deadline that of an extension.
	To       string
	Deadline *time.Time
	Caller   Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Acted is the result of an act.
type Acted struct {
	// Record of the wait, as it is with the act.
	Record       journal.WaitRecord
	Continuation Continuation
	// Open waits that are left.
	Open []journal.WaitRecord
	// Repeated says that the same person had done the same before.
	Repeated bool
	// Replayed as in [Submitted].
	Replayed bool
}

// Act dismisses a wait, extends its deadline or delegates it, in one conditional update of its record:
// still open, and as it was read. So of an act, an answer and the deadline one comes first, and the
// others see it. Who may answer a wait may act on it. A dismissal is an answer that decides nothing; the
// session goes on with it like with any other.
func (r *Runtime) Act(ctx context.Context, p ActParams) (Acted, error) {
	return asResult(r.act(ctx, p))
}

func (r *Runtime) act(ctx context.Context, p ActParams) (Acted, error) {
	act := session.WaitAct{Kind: p.Kind, Who: p.Caller.Who, From: p.Caller.From, Reason: p.Reason, To: p.To, Deadline: p.Deadline}
	if err := answers.CheckAct(p.Key, &act); err != nil {
		r.Refused(ctx, p.Key, p.Caller, p.Wait, AsError(err).Code)
		return Acted{}, err
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Verb(p.Kind), p.IdempotencyKey, p.Key.ID, p.Wait, act)
	if err != nil {
		return Acted{}, err
	}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Acted, error) {
		d, err := idempotency.ReadDone(did)
		if err != nil {
			return Acted{}, err
		}
		out, err := r.actedOn(ctx, p.Key, d.Wait)
		out.Repeated, out.Replayed = d.Repeated, true
		return out, err
	}, func() (Acted, error) {
		return r.actOnce(ctx, p, act, &q)
	})
}

// actOnce reads and writes once. A conflict means that another writer was first.
func (r *Runtime) actOnce(ctx context.Context, p ActParams, act session.WaitAct, q *idempotency.Request) (Acted, error) {
	a, err := r.sessions.LoadToAnswer(ctx, p.Key)
	if err != nil {
		return Acted{}, err
	}
	item, err := r.sessions.Wait(ctx, a, p.Wait)
	switch {
	case err != nil:
		return Acted{}, err
	case item.Wait == nil:
		return Acted{}, refusal.New(CodeWaitNotFound, p.Key, "there is no wait %q", p.Wait)
	}
	act.At = r.cfg.Now().UTC()
	by, err := r.answers.StandingIn(ctx, p.Key, *item.Wait, p.Caller)
	if err != nil {
		return Acted{}, err
	}
	record, repeated, err := answers.Apply(p.Key, *item.Wait, act, by)
	if err == nil && !repeated {
		err = r.checkInTime(ctx, a.Head, item)
	}
	if err != nil {
		return Acted{}, refusal.About(item.ID, err)
	}
	writes, err := q.Record(r.cfg.Now(), p.Key, a.Head.StatusSeq, idempotency.Done{Wait: item.ID, Repeated: repeated})
	if err != nil {
		return Acted{}, err
	}
	switch {
	case repeated:
	case act.Kind == session.ActDismissed:
		writes = append(writes, answers.WithAnswer(store.WaitItem(record, item.Rev), *record.Answer, false, false))
	default:
		writes = append(writes, store.WaitItem(record, item.Rev))
	}
	if err := r.sessions.Update(ctx, p.Key, writes); err != nil {
		return Acted{}, err
	}
	out, err := r.actedOn(ctx, p.Key, item.ID)
	out.Repeated = repeated
	return out, err
}

// actedOn reads a wait after an act, and sends the resume where a dismissal has left nothing open.
func (r *Runtime) actedOn(ctx context.Context, key session.Key, wait string) (out Acted, err error) {
	if out.Continuation, out.Open, err = r.continuation(ctx, key, false); err != nil {
		return out, err
	}
	item, err := r.sessions.Item(ctx, key, store.KindWait, wait)
	if err == nil && item.Wait == nil {
		err = refusal.New(CodeSessionNotFound, key, "there is no such session any more")
	}
	if err == nil {
		out.Record = *item.Wait
	}
	return out, err
}
