package sweep

import (
	"context"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Unresumed returns the sessions that are suspended though every wait has its answer: the caller
// of the last answer is about to send the message or died before, or the sweep has sent it and no
// worker has received it.
func (w *Sweep) Unresumed(ctx context.Context) ([]session.Key, error) {
	var keys []session.Key
	seen := map[session.Key]bool{}
	before := w.cfg.Now().Add(max(engine.AnsweredGrace, maxBackoff))
	for found, err := range w.due(ctx, before) {
		if err != nil {
			return nil, err
		}
		if !awaitsResumption(found.Item) || seen[found.Key] {
			continue
		}
		seen[found.Key] = true
		_, ready, err := w.cfg.Sessions.CheckResume(ctx, found.Key)
		if err != nil {
			return nil, err
		}
		if ready {
			keys = append(keys, found.Key)
		}
	}
	return keys, nil
}

// awaitsResumption reports whether an item is due for a resumption: an answered
// wait, until the sweep has sent for it once, and HEAD of a suspended session.
func awaitsResumption(item store.Item) bool {
	switch {
	case item.Wait != nil:
		return item.Wait.State == session.WaitAnswered || item.Wait.State == session.WaitExpired
	case item.Head != nil:
		return item.Head.Status == session.StatusSuspended
	}
	return false
}
