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
// It claims the step after entry newest, so that none begins it meanwhile, and its entry, which is
// conditioned on that claim, has these items beside it (docs/design/chain.md). It returns the
// session's status then (HEAD may have held a stronger signal), or none if a worker has the step.
// An error that is [store.ErrConflict] means that nothing was done: read again.
func (w *Worker) Stop(ctx context.Context, key session.Key, newest int64, signal journal.Signal, beside []store.Item) (is session.Status, err error) {
	inv := w.invoke(journal.NewWake(key, 0, journal.WakeStep)) // written for no message
	inv.stops, inv.beside = true, beside
	if err := inv.claim(ctx, store.ClaimTake, newest+1); err != nil || !inv.claimed {
		return "", err
	}
	defer func() {
		if err != nil {
			inv.release(context.WithoutCancel(ctx))
		}
		w.sessions.PutBack(inv.session)
	}()
	if inv.session, err = w.sessions.Load(ctx, key); err != nil {
		return "", err
	}
	if inv.session == nil || inv.session.Version != newest {
		return "", fmt.Errorf("session %s: stop after entry %d: %w: %w", key, newest, store.ErrConflict, errLost)
	}
	if there := inv.signal(); there != nil && there.Kind.Strength() >= signal.Kind.Strength() {
		signal = *there
	}
	inv.began = inv.cfg.Now()
	err = inv.obeySignal(ctx, signal, engine.StepOutcome{}, nil)
	if errors.Is(err, errLost) || errors.Is(err, errSuperseded) {
		err = fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	if err != nil {
		return "", err
	}
	return inv.session.Status, nil
}
