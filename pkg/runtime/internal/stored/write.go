package stored

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Remove has the store remove a session whose newest entry is `deleted`, or that was removed before.
func (st *Sessions) Remove(ctx context.Context, key session.Key) error {
	if err := st.cfg.Store.Delete(ctx, key); err != nil {
		return fmt.Errorf("session %s: remove what it has: %w", key, err)
	}
	return nil
}

// Update writes items, if there are any.
func (st *Sessions) Update(ctx context.Context, key session.Key, items []store.Item) error {
	if len(items) == 0 {
		return nil
	}
	_, err := st.cfg.Store.Update(ctx, key, items...)
	return err
}

// ErrNoAnswer is the cause with which a write ends that took too long.
var ErrNoAnswer = fmt.Errorf("%w: no answer in time", store.ErrUnavailable)

// ErrNotSent is the same of the queue.
var ErrNotSent = fmt.Errorf("%w: no answer in time", queue.ErrUnavailable)

// Bounded does a write that has to outlive the cancellation of ctx, within
// [Config].CommitTimeout. One whose time ran out is done once more: this process may have
// been stopped for that long, and then learns what has happened meanwhile. Writes
// carry attempt ids, so repeating one is safe; and a wake may be sent twice.
func (st *Sessions) Bounded(ctx context.Context, write func(context.Context) error) error {
	return st.BoundedBy(ctx, ErrNoAnswer, write)
}

// BoundedBy is [Sessions.Bounded] with a cause that names what did not respond.
func (st *Sessions) BoundedBy(ctx context.Context, cause error, write func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	for again := true; ; again = false {
		bounded, cancel := context.WithTimeoutCause(ctx, st.cfg.CommitTimeout, cause)
		err := write(bounded)
		cancel()
		if !again || !errors.Is(err, cause) {
			return err
		}
	}
}

// Send sends a wake.
func (st *Sessions) Send(ctx context.Context, wake journal.Wake) error {
	if err := st.cfg.Queue.Send(ctx, wake); err != nil {
		return fmt.Errorf("session %s: send wake for entry %d: %w", wake.Key(), wake.Seq, err)
	}
	return nil
}

// WakeAfter is the wake for the entry after the newest one of a running session.
func (st *Sessions) WakeAfter(s *session.Session) journal.Wake {
	return st.StepAfter(s.Key, s.Version, s.Newest.At, s.Newest.Until)
}

// StepAfter is the wake for the entry after one that was written at a time and may
// put its retry off.
func (st *Sessions) StepAfter(key session.Key, seq int64, at time.Time, until *time.Time) journal.Wake {
	wake := journal.NewWake(key, seq+1, journal.WakeStep)
	wake.Delay = journal.PutOff(at, until, st.cfg.Now())
	return wake
}
