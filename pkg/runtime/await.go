package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Who waits for a session is told of each entry that this process commits. How often the session
// is looked at beside that: where the store does not tell of what other processes write, soon at
// first, for most steps are short, then ever less often, for each look is a request to the store.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// AwaitRest waits until a session rests (it waits for an answer or has ended) and has moved past
// an entry (0 for any). It returns whether it does; false means that the time to wait was over
// first. If the session rests already, it returns at once. ctx ends the wait with its cause.
func (r *Runtime) AwaitRest(ctx context.Context, key session.Key, past int64, wait time.Duration) (bool, error) {
	rests := false
	err := r.await(ctx, key, stored.EntriesThatStop, wait, func() (bool, error) {
		head, err := r.Head(ctx, key)
		if err != nil || head.StatusSeq <= past {
			return false, err // to rest again its status has to move
		}
		rests, err = r.rests(ctx, head)
		return rests, err
	})
	return asResult(rests, err)
}

// EntriesParams select entries of a session.
type EntriesParams struct {
	Key session.Key
	// After is the seq of the last entry the caller has; 0 for none.
	After int64
	// Limit of a page, from 1 on; 0 means 100.
	Limit int
	// MaxBytes is how many bytes of JSON the entries of a page may have, unless there
	// is only one; 0 means any number.
	MaxBytes int64
	// Wait for an entry that long, when there is none and the session does not rest.
	Wait time.Duration
	// Stay also waits while the session rests: for a caller who has just resumed it, or who
	// follows what others do.
	Stay bool
}

// EntriesPage is a stretch of a session's journal, oldest first.
type EntriesPage struct {
	Entries []journal.Entry
	// More says that there are later ones already.
	More bool
	// Status of the session at the end of the page.
	Status session.Status
	// Resting says that no entry follows until a caller answers or resumes.
	Resting bool
}

// Entries returns what was written to a session's journal after an entry, and
// waits for it if need be. ctx ends the wait with its cause.
func (r *Runtime) Entries(ctx context.Context, p EntriesParams) (EntriesPage, error) {
	if err := p.Key.Validate(); err != nil {
		return EntriesPage{}, AsError(err)
	}
	if p.After < 0 || p.Limit < 0 {
		return EntriesPage{}, AsError(refusal.New(CodeInvalidInput, p.Key, "entries are numbered from 1 on, and so is a limit"))
	}
	defaultTo(&p.Limit, 100)
	var page EntriesPage
	looks := 0
	err := r.await(ctx, p.Key, stored.EveryEntry, p.Wait, func() (bool, error) {
		var err error
		if looks++; looks == 1 {
			page, err = r.page(ctx, p)
			return len(page.Entries) > 0 || page.Resting && !p.Stay, err
		}
		// No entry, no other status: HEAD need not be asked again.
		page.Entries, page.More, err = r.tail(ctx, p)
		return len(page.Entries) > 0, err
	})
	switch {
	case err == nil && looks > 1 && len(page.Entries) == 0:
		page, err = r.page(ctx, p)
	case err == nil && looks > 1:
		_, err = r.endOfPage(ctx, p, &page)
	}
	return asResult(page, err)
}

// page reads one page and the state of the session at its end. A page without entries is read
// again if the session moved meanwhile: otherwise the page would report that nothing follows
// because the session rests by now.
func (r *Runtime) page(ctx context.Context, p EntriesParams) (page EntriesPage, err error) {
	for range maxTries {
		if page.Entries, page.More, err = r.tail(ctx, p); err != nil {
			return EntriesPage{}, err
		}
		moved, err := r.endOfPage(ctx, p, &page)
		if err != nil || !moved || len(page.Entries) > 0 {
			return page, err
		}
	}
	return EntriesPage{}, changedWhileRead(p.Key)
}

// tail reads one page, and whether there is more.
func (r *Runtime) tail(ctx context.Context, p EntriesParams) (entries []journal.Entry, more bool, err error) {
	size := int64(0)
	for e, err := range r.cfg.Store.Entries(ctx, p.Key, p.After) {
		if err != nil {
			return nil, false, fmt.Errorf("session %s: entries after %d: %w", p.Key, p.After, err)
		}
		if len(entries) == p.Limit {
			return entries, true, nil
		}
		if p.MaxBytes > 0 { // measured as they come: all of a page may not fit into memory
			raw, err := json.Marshal(&e)
			if err != nil {
				return nil, false, fmt.Errorf("session %s: entry %d: %w", p.Key, e.Seq, err)
			}
			if size += int64(len(raw)); size > p.MaxBytes && len(entries) > 0 {
				return entries, true, nil
			}
		}
		entries = append(entries, e)
	}
	return entries, false, nil
}

// endOfPage sets the state of the session at the end of the page, or reports that the session has
// moved since. The page was read before HEAD, so entries written in between count as more.
func (r *Runtime) endOfPage(ctx context.Context, p EntriesParams, page *EntriesPage) (moved bool, err error) {
	last := p.After
	page.Resting = false // an earlier look may have found that
	if n := len(page.Entries); n > 0 {
		last, page.Status = page.Entries[n-1].Seq, page.Entries[n-1].Status
		if page.More || page.Status == session.StatusRunning {
			return false, nil
		}
	}
	head, err := r.Head(ctx, p.Key)
	if err != nil {
		return false, err
	}
	rests, err := r.rests(ctx, head)
	if err != nil {
		return false, err
	}
	if rests && head.Status == session.StatusSuspended {
		// The waits may be those of a later checkpoint.
		if head, err = r.Head(ctx, p.Key); err != nil {
			return false, err
		}
	}
	if head.StatusSeq > last {
		page.More = len(page.Entries) > 0
		return true, nil
	}
	page.Status, page.Resting = head.Status, rests
	return false, nil
}

// Head returns the record of a session that is overwritten in place.
func (r *Runtime) Head(ctx context.Context, key session.Key) (journal.Head, error) {
	if err := key.Validate(); err != nil {
		return journal.Head{}, AsError(err)
	}
	item, err := r.sessions.Item(ctx, key, store.KindHead, "")
	if err != nil {
		return journal.Head{}, AsError(err)
	}
	if item.Head == nil || item.Head.Deleted {
		return journal.Head{}, AsError(refusal.NoSession(key))
	}
	return *item.Head, nil
}

// rests is resting for a session of which only HEAD was read.
func (r *Runtime) rests(ctx context.Context, head journal.Head) (bool, error) {
	if head.Status != session.StatusSuspended {
		return head.Status.Resting(), nil
	}
	ready, err := r.sessions.ReadyToResume(ctx, head.Key, head.Status, head.WaitsAt)
	return err == nil && !ready, err
}

// await calls done until it says so, errs, or the wait is over: after each entry of the session
// that is of the kind, now and then, and at the end of the wait.
func (r *Runtime) await(ctx context.Context, key session.Key, kind stored.Watched, wait time.Duration, done func() (bool, error)) error {
	if wait <= 0 {
		_, err := done()
		return err
	}
	watch := r.sessions.Watch(key, kind)
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
