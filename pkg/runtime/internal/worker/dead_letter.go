package worker

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// deadLetterDelay is how long the consumer of the dead letters waits before a
// step is tried afresh.
const deadLetterDelay = 30 * time.Second

// DeadLetter decides about a message that was received too often
// (docs/design/chain.md). Neither an hour of a bad deployment nor a repeated message
// may fail a healthy session: what counts is how many claims of the step died.
func (w *Worker) DeadLetter(ctx context.Context, wake journal.Wake) (Disposition, error) {
	if err := readable(wake); err != nil {
		return Disposition{}, err
	}
	key := wake.Key()
	if err := key.Validate(); err != nil {
		return Disposition{}, err
	}
	head, err := w.sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil || head.Head.Gone(w.cfg.Now()) {
		return Disposition{}, err
	}
	newest, err := w.sessions.Newest(ctx, *head.Head)
	if err != nil || wake.Seq <= newest.Seq {
		return Disposition{}, err
	}
	if newest.Status != session.StatusRunning {
		return Disposition{}, nil // a resumption that did not get through is due on its waits or on HEAD, and the sweep sends it
	}
	lease := head.Head.Lease
	if lease.Live(w.cfg.Now(), newest.Seq, newest.KeepsLease) {
		return Disposition{Keep: max(lease.Until.Sub(w.cfg.Now()), minKeep)}, nil
	}
	if !w.tooManyClaimsDied(lease, newest.Seq) {
		until := newest.Until
		if head.Head.SignalFor(newest.Task) != nil {
			until = nil // obeyed now, whatever the delay
		}
		again := w.sessions.StepAfter(key, newest.Seq, newest.At, until)
		again.Delay = max(again.Delay, deadLetterDelay)
		return Disposition{}, w.sessions.Send(ctx, again)
	}
	return w.failTask(ctx, key, newest.Seq)
}

// tooManyClaimsDied reports whether too many claims of the step after an entry died. A claim
// that was given back did not die: a program without the agent gives every one of
// them back, however long it is deployed.
func (w *Worker) tooManyClaimsDied(lease journal.Lease, newest int64) bool {
	died := lease.Died
	if lease.Owner != "" {
		died++
	}
	return lease.Seq == newest+1 && died >= w.cfg.MaxClaims
}

// failTask fails a task whose step after an entry died again and again, with a
// reason a user can read. It claims the step for that: claims leave HEAD's revision
// alone, so a worker that has just begun would not be noticed by the entry. What
// outgrew the worker's memory must not outgrow ours, so the session is loaded bare
// ([stored.Sessions.LoadForEnd]).
func (w *Worker) failTask(ctx context.Context, key session.Key, newest int64) (Disposition, error) {
	s, err := w.sessions.LoadForEnd(ctx, key)
	if err != nil || s == nil {
		return Disposition{}, err
	}
	if s.Version != newest {
		return Disposition{Keep: minKeep}, nil // decided on afresh
	}
	inv := w.invoke(journal.NewWake(key, 0, journal.WakeStep))
	inv.session, inv.stops = s, true
	switch err := inv.claim(ctx, store.ClaimTake, s.Next()); {
	case errors.Is(err, store.ErrNotFound):
		return Disposition{}, nil
	case err != nil:
		return Disposition{}, err
	case !inv.claimed: // another worker has claimed it while it was read
		// Not longer with each receipt: a dead letter may be received any number of times.
		return Disposition{Keep: inv.keepForLease().Keep}, nil
	}
	_, err = inv.close(ctx, engine.StepOutcome{Failure: &session.Failure{
		Type: "step_died", Retryable: true,
		Message: "The worker died at this step again and again, so the task failed. Look at the program's logs for what ends it: too little memory (on AWS, StepMemory), a timeout (StepTimeout), a crash in native code.",
	}}, nil)
	if err != nil {
		inv.release(context.WithoutCancel(ctx))
	}
	if errors.Is(err, errLost) || errors.Is(err, errSuperseded) {
		return Disposition{}, nil // it lives after all
	}
	return Disposition{}, err
}

// HandleDeadLetters works on what is in q, the dead letters' queue, until it is empty.
// One that cannot be worked on is left for later and does not hide the others; one
// that a newer program sent is left for a program that reads it, and is no failure.
func (w *Worker) HandleDeadLetters(ctx context.Context, q queue.Queue) error {
	var failed []error
	for {
		deliveries, err := q.Receive(ctx, queue.ReceiveParams{Max: 10, Visibility: time.Minute})
		if err != nil || len(deliveries) == 0 {
			return errors.Join(append(failed, err)...)
		}
		for _, d := range deliveries {
			if err := readable(d.Wake); err != nil {
				w.cfg.Log.WarnContext(ctx, "dead letter of a newer program kept", "error", err)
				if err := q.Postpone(ctx, d, journal.MaxAhead); err != nil {
					return err
				}
				continue
			}
			disposition, err := w.DeadLetter(ctx, d.Wake)
			switch {
			case err != nil:
				failed = append(failed, err)
				continue
			case disposition.Keep > 0:
				err = q.Postpone(ctx, d, disposition.Keep)
			default:
				err = q.Acknowledge(ctx, d)
			}
			if err != nil {
				return err
			}
		}
	}
}
