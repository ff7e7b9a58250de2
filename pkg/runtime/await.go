package runtime

import (
	"context"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// AwaitRest waits until a session rests (it waits for an answer or has ended) and has moved past
// an entry (0 for any). It returns whether it does; false means that the time to wait was over
// first. If the session rests already, it returns at once. ctx ends the wait with its cause.
func (r *Runtime) AwaitRest(ctx context.Context, key session.Key, past int64, wait time.Duration) (bool, error) {
	rests := false
	err := r.sessions.Await(ctx, key, stored.EntriesThatStop, wait, func() (bool, error) {
		head, err := r.Head(ctx, key)
		if err != nil || head.StatusSeq <= past {
			return false, err // to rest again its status has to move
		}
		rests, err = r.sessions.Rests(ctx, head)
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
	err := r.sessions.Await(ctx, p.Key, stored.EveryEntry, p.Wait, func() (bool, error) {
		var err error
		if looks++; looks == 1 {
			page, err = r.page(ctx, p)
			return len(page.Entries) > 0 || page.Resting && !p.Stay, err
		}
		// No entry, no other status: HEAD need not be asked again.
		page.Entries, page.More, err = r.sessions.Tail(ctx, p.Key, p.After, p.Limit, p.MaxBytes)
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
		if page.Entries, page.More, err = r.sessions.Tail(ctx, p.Key, p.After, p.Limit, p.MaxBytes); err != nil {
			return EntriesPage{}, err
		}
		moved, err := r.endOfPage(ctx, p, &page)
		if err != nil || !moved || len(page.Entries) > 0 {
			return page, err
		}
	}
	return EntriesPage{}, changedWhileRead(p.Key)
}

// endOfPage sets the state of the session at the end of the page, or reports that the session has
// moved since. The page was read before HEAD, so entries written in between count as more.
func (r *Runtime) endOfPage(ctx context.Context, p EntriesParams, page *EntriesPage) (moved bool, err error) {
	last := p.After
	page.Resting = false // an earlier look may have found that
	if n := len(page.Entries); n > 0 {
		newest := &page.Entries[n-1]
		last, page.Status = newest.Seq, newest.Status
		switch {
		case newest.Kind == session.KindDeleted:
			return false, refusal.NoSession(p.Key)
		case page.More: // to be removed, perhaps
			_, err := r.Head(ctx, p.Key)
			return false, err
		case page.Status == session.StatusRunning:
			return false, nil
		}
	}
	head, err := r.Head(ctx, p.Key)
	if err != nil {
		return false, err
	}
	rests, err := r.sessions.Rests(ctx, head)
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
	if item.Head == nil || item.Head.Gone(r.cfg.Now()) {
		return journal.Head{}, AsError(refusal.NoSession(key))
	}
	return *item.Head, nil
}
