package stored

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Items returns the items of a kind, of one id or of all that it matches; all of them where it is "".
func (st *Sessions) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) ([]store.Item, error) {
	var items []store.Item
	for item, err := range st.cfg.Store.Items(ctx, key, kind, id) {
		if err != nil {
			return nil, fmt.Errorf("session %s: read %s: %w", key, kind, err)
		}
		items = append(items, item)
	}
	return items, nil
}

// Item returns one item, with Rev 0 if it is absent.
func (st *Sessions) Item(ctx context.Context, key session.Key, kind store.ItemKind, id string) (store.Item, error) {
	items, err := st.Items(ctx, key, kind, id)
	if err != nil || len(items) == 0 {
		return store.Item{Kind: kind, ID: id}, err
	}
	return items[0], nil
}

// Head returns HEAD; a session without one is [store.ErrNotFound].
func (st *Sessions) Head(ctx context.Context, key session.Key) (store.Item, error) {
	item, err := st.Item(ctx, key, store.KindHead, "")
	if err == nil && item.Head == nil {
		err = fmt.Errorf("session %s: HEAD: %w", key, store.ErrNotFound)
	}
	return item, err
}

// ExistingHead is [Sessions.Head] for a verb: a session that does not exist, or was deleted, is
// refused in a caller's words.
func (st *Sessions) ExistingHead(ctx context.Context, key session.Key) (store.Item, error) {
	item, err := st.Item(ctx, key, store.KindHead, "")
	if err == nil && (item.Head == nil || item.Head.Gone(st.cfg.Now())) {
		err = refusal.NoSession(key)
	}
	return item, err
}

// EntriesAfter yields the entries of a session behind one. Whoever asks has seen that the session is there.
func (st *Sessions) EntriesAfter(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	return st.cfg.Store.Entries(ctx, key, after)
}

// EachEntry yields the entries of a session as they are read. A session that was deleted is refused,
// though what it has may still be there.
func (st *Sessions) EachEntry(ctx context.Context, key session.Key) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		err := key.Validate()
		if err == nil {
			_, err = st.ExistingHead(ctx, key)
		}
		if err != nil {
			yield(journal.Entry{}, err)
			return
		}
		some := false
		for e, err := range st.cfg.Store.Entries(ctx, key, 0) {
			if err != nil {
				yield(journal.Entry{}, fmt.Errorf("load session %s: %w", key, err))
				return
			}
			if some = true; !yield(e, nil) {
				return
			}
		}
		if !some { // it was deleted since
			yield(journal.Entry{}, refusal.NoSession(key))
		}
	}
}

// Entry returns one entry, with Seq 0 if there is none.
func (st *Sessions) Entry(ctx context.Context, key session.Key, seq int64) (journal.Entry, error) {
	for e, err := range st.cfg.Store.Entries(ctx, key, seq-1) {
		return e, err
	}
	return journal.Entry{}, nil
}

// Newest returns the newest entry of a session of which HEAD was read; its Seq is
// 0 if there is none. It reads that one and at most a few before it.
func (st *Sessions) Newest(ctx context.Context, head journal.Head) (journal.Entry, error) {
	// HEAD's StatusSeq is an entry, and the worker with a lease for an entry has read the one
	// before it.
	from := max(head.StatusSeq, head.Lease.Seq-1)
	newest, err := st.newestFrom(ctx, head.Key, from)
	if err == nil && newest.Seq == 0 && from > head.StatusSeq {
		newest, err = st.newestFrom(ctx, head.Key, head.StatusSeq)
	}
	return newest, err
}

// newestFrom returns the newest of the entries from a seq on. It holds one at a
// time, for each may be large.
func (st *Sessions) newestFrom(ctx context.Context, key session.Key, seq int64) (newest journal.Entry, err error) {
	for e, err := range st.cfg.Store.Entries(ctx, key, seq-1) {
		if err != nil {
			return journal.Entry{}, fmt.Errorf("session %s: newest entry: %w", key, err)
		}
		newest = e
	}
	return newest, nil
}

// Runs returns every run of a session, the oldest first.
func (st *Sessions) Runs(ctx context.Context, key session.Key) ([]session.Run, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	if _, err := st.ExistingHead(ctx, key); err != nil {
		return nil, err
	}
	items, err := st.Items(ctx, key, store.KindRun, "")
	if err != nil {
		return nil, err
	}
	runs := make([]session.Run, len(items))
	for i, item := range items {
		runs[i] = *item.Run
	}
	slices.SortFunc(runs, func(a, b session.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs, nil
}
