package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Who waits for a session is told of each entry that this process commits. How often the session
// is looked at beside that: where the store does not tell of what other processes write, soon at
// first, for most steps are short, then ever less often, for each look is a request to the store.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// Rests reports whether a session rests of which only HEAD was read.
func (st *Sessions) Rests(ctx context.Context, head journal.Head) (bool, error) {
	if head.Status != session.StatusSuspended {
		return head.Status.Resting(), nil
	}
	ready, err := st.ReadyToResume(ctx, head.Key, head.Status, head.WaitsAt)
	return err == nil && !ready, err
}

// Await calls done until it says so, errs, or the wait is over: after each entry of the session
// that is of the kind, now and then, and at the end of the wait.
func (st *Sessions) Await(ctx context.Context, key session.Key, kind Watched, wait time.Duration, done func() (bool, error)) error {
	if wait <= 0 {
		_, err := done()
		return err
	}
	watch := st.Watch(key, kind)
	defer watch.Stop()
	pause := firstPoll
	if watch.Others() {
		pause = lastPoll
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	next := time.NewTimer(pause)
	defer next.Stop()
	for last := false; ; {
		if ok, err := done(); ok || err != nil || last {
			return err
		}
		select {
		case <-watch.Told():
		case <-next.C:
			pause = min(pause*3/2, lastPoll)
			next.Reset(pause)
		case <-over.C:
			last = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Tail reads the entries of a session after one: at most limit, and of maxBytes of JSON (0: any
// number) unless there is only one. It reports whether there are more.
func (st *Sessions) Tail(ctx context.Context, key session.Key, after int64, limit int, maxBytes int64) (entries []journal.Entry, more bool, err error) {
	size := int64(0)
	for e, err := range st.cfg.Store.Entries(ctx, key, after) {
		if err != nil {
			return nil, false, fmt.Errorf("session %s: entries after %d: %w", key, after, err)
		}
		if len(entries) == limit {
			return entries, true, nil
		}
		if maxBytes > 0 { // measured as they come: all of a page may not fit into memory
			raw, err := json.Marshal(&e)
			if err != nil {
				return nil, false, fmt.Errorf("session %s: entry %d: %w", key, e.Seq, err)
			}
			if size += int64(len(raw)); size > maxBytes && len(entries) > 0 {
				return entries, true, nil
			}
		}
		entries = append(entries, e)
	}
	return entries, false, nil
}
