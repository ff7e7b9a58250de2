package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// resumeIfReady sends the resume of a suspended session that waits for nothing any
// more, unless an answer was only to be stored.
func (r *Runtime) resumeIfReady(ctx context.Context, key session.Key) error {
	on, err := r.checkResume(ctx, key)
	if err != nil || !on.ready {
		return err
	}
	return r.send(ctx, journal.NewWake(key, on.next, journal.WakeResume))
}

// resumeCheck is how a session that waits goes on.
type resumeCheck struct {
	// next is the entry that leaves the suspension; 0 when the session is in none.
	next int64
	// open counts the open waits.
	open int
	// ready: suspended, nothing is open, and no answer was given only to be stored.
	ready bool
}

// checkResume reads HEAD before the waits, and its result refers to HEAD's entry. A worker that
// is frozen meanwhile and sends later sends for this suspension; such a message is dropped if
// there has been another suspension since, whose answers may be only stored.
func (r *Runtime) checkResume(ctx context.Context, key session.Key) (resumeCheck, error) {
	item, err := r.item(ctx, key, store.KindHead, "")
	if err != nil || item.Head == nil {
		return resumeCheck{}, err
	}
	next := leavingSeq(*item.Head)
	waits, err := r.waitStates(ctx, key, item.Head.WaitsAt)
	if err != nil {
		return resumeCheck{}, err
	}
	return resumeCheck{next: next, open: countOpen(waits), ready: next > 0 && mayResume(waits)}, nil
}

// leavingSeq returns the seq of the entry that would leave the suspension HEAD refers to, 0 if it
// refers to none. A suspension changes HEAD and so does the entry that leaves it, so that entry
// is the one after HEAD's; a newer entry belongs to a state that was not read.
func leavingSeq(head journal.Head) int64 {
	if head.Deleted || head.Status != session.StatusSuspended {
		return 0
	}
	return head.StatusSeq + 1
}

// readyToResume reports whether a session of that status is suspended, waits for nothing any more
// of what an entry opened, and may continue.
func (r *Runtime) readyToResume(ctx context.Context, key session.Key, status session.Status, waitsAt int64) (bool, error) {
	if status != session.StatusSuspended {
		return false, nil
	}
	waits, err := r.waitStates(ctx, key, waitsAt)
	return err == nil && mayResume(waits), err
}

// mayResume reports whether no wait is open any more, and the answers may be used.
func mayResume(waits []journal.WaitRecord) bool {
	return countOpen(waits) == 0 && !staysSuspended(waits)
}

// waitStates returns the waits that an entry opened with no more than what became of
// them: what they ask and what was answered may be large.
func (r *Runtime) waitStates(ctx context.Context, key session.Key, waitsAt int64) ([]journal.WaitRecord, error) {
	if waitsAt == 0 {
		return nil, nil
	}
	var records []journal.WaitRecord
	for item, err := range r.cfg.Store.Items(ctx, key, store.KindWait, waitsOpenedAt(waitsAt)) {
		if err != nil {
			return nil, fmt.Errorf("session %s: read waits: %w", key, err)
		}
		w := item.Wait
		records = append(records, journal.WaitRecord{Wait: session.Wait{ID: w.Wait.ID}, State: w.State, Held: w.Held, HeldLast: w.HeldLast})
	}
	return records, nil
}

// Unresumed returns the sessions that are suspended though every wait has its answer: the caller
// of the last answer is about to send the message or died before, or the sweep has sent it and no
// worker has received it.
func (r *Runtime) Unresumed(ctx context.Context) ([]session.Key, error) {
	var keys []session.Key
	seen := map[session.Key]bool{}
	before := r.cfg.Now().Add(max(engine.AnsweredGrace, maxBackoff))
	for found, err := range r.due(ctx, before) {
		if err != nil {
			return nil, AsError(err)
		}
		if !awaitsResumption(found.Item) || seen[found.Key] {
			continue
		}
		seen[found.Key] = true
		on, err := r.checkResume(ctx, found.Key)
		if err != nil {
			return nil, AsError(err)
		}
		if on.ready {
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

// newest returns the newest entry of a session of which HEAD was read; its Seq is
// 0 if there is none. It reads that one and at most a few before it.
func (r *Runtime) newest(ctx context.Context, head journal.Head) (journal.Entry, error) {
	// HEAD's StatusSeq is an entry, and the worker with a lease for an entry has read the one
	// before it.
	from := max(head.StatusSeq, head.Lease.Seq-1)
	newest, err := r.newestFrom(ctx, head.Key, from)
	if err == nil && newest.Seq == 0 && from > head.StatusSeq {
		newest, err = r.newestFrom(ctx, head.Key, head.StatusSeq)
	}
	return newest, err
}

// newestFrom returns the newest of the entries from a seq on. It holds one at a
// time, for each may be large.
func (r *Runtime) newestFrom(ctx context.Context, key session.Key, seq int64) (newest journal.Entry, err error) {
	for e, err := range r.cfg.Store.Entries(ctx, key, seq-1) {
		if err != nil {
			return journal.Entry{}, fmt.Errorf("session %s: newest entry: %w", key, err)
		}
		newest = e
	}
	return newest, nil
}

// stepAfter is the wake for the entry after one that was written at a time and may
// put its retry off.
func (r *Runtime) stepAfter(key session.Key, seq int64, at time.Time, until *time.Time) journal.Wake {
	wake := journal.NewWake(key, seq+1, journal.WakeStep)
	wake.Delay = journal.PutOff(at, until, r.cfg.Now())
	return wake
}
