package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// DeleteRequest removes a session.
type DeleteRequest struct {
	Key session.Key
	// Who asks, and from where.
	Who, From string
	// Record returns what remembers the request, together with what it did to an entry.
	Record func(seq int64, did any) ([]store.Item, error)
}

// Deleted is a session that is gone.
type Deleted struct {
	// Status and Task it had.
	Status session.Status
	Task   int64
}

// Delete reads and writes once, as [Control.Stop] does, and then removes what was written before.
// The entry it writes is what counts: from then on the session is there for nobody. A removal that
// was cut short is done by the next request, or by the sweep.
func (c *Control) Delete(ctx context.Context, p *DeleteRequest) (Deleted, error) {
	head, err := c.cfg.Sessions.Item(ctx, p.Key, store.KindHead, "")
	switch {
	case err != nil:
		return Deleted{}, err
	case head.Head != nil && head.Head.Removing: // who deleted it may have died
		if err := c.Remove(ctx, p.Key); err != nil {
			return Deleted{}, err
		}
		fallthrough
	case head.Head == nil, head.Head.Gone(c.cfg.Now()):
		return Deleted{}, refusal.NoSession(p.Key)
	}
	out, err := c.commitDeleted(ctx, head, p)
	if err != nil {
		return Deleted{}, err
	}
	return out, c.Remove(ctx, p.Key)
}

// Expire deletes a session whose time is over; one that has moved on, or is gone, stays as it is.
func (c *Control) Expire(ctx context.Context, key session.Key) error {
	head, err := c.cfg.Sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil || head.Head.Deleted || head.Head.Removing || !head.Head.Expired(c.cfg.Now()) {
		return err
	}
	_, err = c.commitDeleted(ctx, head, &DeleteRequest{Key: key, Who: "retention", Record: func(int64, any) ([]store.Item, error) { return nil, nil }})
	if errors.Is(err, store.ErrConflict) {
		return nil // a next turn came first, or another sweep
	}
	if err != nil {
		return err
	}
	return c.Remove(ctx, key)
}

// commitDeleted commits the last entry of a session. It takes in what was answered and closes what is
// open, and the ledgers of the calls that have not run: a worker that was stopped before it made one
// finds that it must not. The entry is at the place of the next one of whoever works on the session.
func (c *Control) commitDeleted(ctx context.Context, head store.Item, p *DeleteRequest) (Deleted, error) {
	s, err := c.cfg.Sessions.LoadForEnd(ctx, p.Key)
	if err != nil {
		return Deleted{}, err
	}
	if s == nil {
		return Deleted{}, fmt.Errorf("session %s: it was deleted while it was read: %w", p.Key, store.ErrConflict)
	}
	waits, err := c.cfg.Sessions.WaitsAt(ctx, p.Key, stored.WaitsAtOf(s))
	if err != nil {
		return Deleted{}, err
	}
	out := Deleted{Status: s.Status, Task: s.Task}
	items, err := p.Record(s.Next(), out)
	if err != nil {
		return Deleted{}, err
	}
	_, taken := stored.TakeWaits(s, waits, s.Next(), c.cfg.StepBytes)
	items = append(items, taken...)
	_, closed, err := c.cfg.Worker.CloseOpenCalls(ctx, s, len(items))
	if err != nil {
		return Deleted{}, err
	}
	return out, c.cfg.Sessions.Commit(ctx, s, &head, engine.Deleted(s, c.stamp(p.Who, p.From)), append(items, closed...))
}

// Remove has the store remove a session that was deleted. It may be repeated.
func (c *Control) Remove(ctx context.Context, key session.Key) error {
	err := c.cfg.Sessions.Remove(ctx, key)
	if errors.Is(err, store.ErrNotFound) { // a store that was put back to an earlier time
		return nil
	}
	return err
}
