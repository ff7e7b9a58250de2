package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Stop carries out a signal for a running session, in place of a worker, if no worker works on it.
// It claims the step after entry newest, so that none begins it meanwhile, and its entry is
// conditioned on that claim (docs/design/chain.md). beside returns the items that go with the entry,
// by the status that it leads to: HEAD may hold a stronger signal. Bare says that the signal ends the
// task, and that what was said is not to be held in memory for it ([stored.Sessions.LoadForEnd]). Stop
// returns that status, or none if a worker has the step. An error that is [store.ErrConflict] means that nothing was done: read
// again.
func (w *Worker) Stop(ctx context.Context, key session.Key, newest int64, signal journal.Signal, bare bool, beside func(session.Status) ([]store.Item, error)) (status session.Status, err error) {
	inv := w.invoke(journal.NewWake(key, 0, journal.WakeStep)) // written for no message
	inv.stops, inv.beside = true, beside
	if err := inv.claim(ctx, store.ClaimTake, newest+1); err != nil {
		inv.releaseUnknown(context.WithoutCancel(ctx), newest+1)
		return "", err
	}
	if !inv.claimed {
		if lease := inv.head.Head.Lease; lease.Seq != newest+1 || lease.Lapsed(inv.cfg.Now()) {
			return "", fmt.Errorf("session %s: stop after entry %d: %w", key, newest, store.ErrConflict) // it has moved on
		}
		return "", nil
	}
	defer func() {
		if err != nil {
			inv.release(context.WithoutCancel(ctx))
		}
		if !bare {
			w.sessions.PutBack(inv.session)
		}
	}()
	load := w.sessions.Load
	if bare {
		load = w.sessions.LoadForEnd
	}
	if inv.session, err = load(ctx, key); err != nil {
		return "", err
	}
	if inv.session == nil || inv.session.Version != newest {
		return "", fmt.Errorf("session %s: stop after entry %d: %w: %w", key, newest, store.ErrConflict, errLost)
	}
	inv.began = inv.cfg.Now()
	err = inv.obeySignal(ctx, inv.orStronger(signal), engine.StepOutcome{}, nil)
	if errors.Is(err, errLost) || errors.Is(err, errSuperseded) {
		err = fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	if err != nil {
		return "", err
	}
	return inv.session.Status, nil
}

// releaseUnknown gives back a lease that may have been granted though its claim failed.
func (inv *invocation) releaseUnknown(ctx context.Context, seq int64) {
	inv.head = store.Item{Head: &journal.Head{Lease: journal.Lease{Seq: seq}}}
	inv.claimed = true
	inv.release(ctx)
}
