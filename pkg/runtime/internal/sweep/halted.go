package sweep

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// halted reports whether a halt holds a session, so that nothing is sent for it: a worker would
// acknowledge the message. It stays due as it is, without a stamp, so that the first sweep after the
// halt finds it. A task with a signal is sent for, because a worker obeys that.
func (w *Sweep) halted(ctx context.Context, head journal.Head) (bool, error) {
	if head.SignalFor(head.Task) != nil {
		return false, nil
	}
	return w.cfg.Halts.Hold(ctx, head.Key, head.Agent)
}

// Lifted sends at once for the sessions that were held by halts and are held by none any more,
// instead of with the next sweeps. A message more than needed does no harm. They are delayed until no
// worker counts on what it knew before.
func (w *Sweep) Lifted(ctx context.Context, lifted []session.Halt) error {
	if len(lifted) == 0 {
		return nil
	}
	seen := map[session.Key]bool{}
	for found, err := range w.due(ctx, w.cfg.Now().Add(maxBackoff)) {
		if err != nil {
			return err
		}
		if seen[found.Key] || found.Item.Head == nil && !awaitsResumption(found.Item) {
			continue
		}
		seen[found.Key] = true
		if err := w.letGo(ctx, found.Key, lifted); err != nil {
			return err
		}
	}
	return nil
}

// letGo sends for one session, if it was held by one of the halts.
func (w *Sweep) letGo(ctx context.Context, key session.Key, lifted []session.Halt) error {
	head, err := w.cfg.Sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil || head.Head.Gone(w.cfg.Now()) {
		return err
	}
	held := func(halt session.Halt) bool { return halt.Holds(key.Tenant, head.Head.Agent) }
	if !slices.ContainsFunc(lifted, held) {
		return nil
	}
	if still, err := w.cfg.Halts.Of(ctx, key.Tenant, head.Head.Agent); err != nil || still != nil {
		return err
	}
	switch head.Head.Status {
	case session.StatusRunning:
		return w.sendStep(ctx, head)
	case session.StatusSuspended:
		next, ready, err := w.cfg.Sessions.CheckResume(ctx, key)
		if err != nil || !ready {
			return err
		}
		return w.sendLate(ctx, journal.NewWake(key, next, journal.WakeResume))
	case session.StatusInterrupted, session.StatusCompleted, session.StatusFailed, session.StatusCancelled: // nothing goes on
	}
	return nil
}

// sendStep sends for a running session, unless it is put off. A worker may still have its lease that
// is about to give it back.
func (w *Sweep) sendStep(ctx context.Context, head store.Item) error {
	newest, err := w.cfg.Sessions.Newest(ctx, *head.Head)
	if err != nil || newest.Status != session.StatusRunning || journal.PutOff(newest.At, newest.Until, w.cfg.Now()) > 0 {
		return err
	}
	return w.sendLate(ctx, journal.NewWake(head.Head.Key, newest.Seq+1, journal.WakeStep))
}

func (w *Sweep) sendLate(ctx context.Context, wake journal.Wake) error {
	wake.Delay = halts.Counts
	return w.cfg.Sessions.Send(ctx, wake)
}
