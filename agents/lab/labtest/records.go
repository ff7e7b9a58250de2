package labtest

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Records are what a store holds of one session.
type Records struct {
	Key     session.Key
	Entries []journal.Entry
	Runs    []session.Run
	Waits   []journal.WaitRecord
	// Ledger has a record for each call that may have an effect and has begun.
	Ledger []journal.ToolRecord
}

// Read reads the records of a session; those of one that does not exist are empty.
func Read(t require.TestingT, s store.Store, key session.Key) Records {
	ctx := context.Background()
	r := Records{Key: key, Entries: collect(t, s.Entries(ctx, key, 0))}
	for _, item := range collect(t, s.Items(ctx, key, store.KindRun, "")) {
		r.Runs = append(r.Runs, *item.Run)
	}
	for _, item := range collect(t, s.Items(ctx, key, store.KindWait, "")) {
		r.Waits = append(r.Waits, *item.Wait)
	}
	for _, item := range collect(t, s.Items(ctx, key, store.KindTool, "")) {
		r.Ledger = append(r.Ledger, *item.Tool)
	}
	return r
}

func collect[T any](t require.TestingT, all iter.Seq2[T, error]) []T {
	var list []T
	for one, err := range all {
		require.NoError(t, err)
		list = append(list, one)
	}
	return list
}

// Fold returns the session, nil if there is none.
func (r Records) Fold(t require.TestingT) *session.Session {
	if len(r.Entries) == 0 {
		return nil
	}
	s, err := engine.Fold(r.Key, r.Entries)
	require.NoError(t, err)
	return s
}

// NothingDue checks that nothing of these sessions is due in a store any more; without
// keys, that nothing is due at all.
func NothingDue(t require.TestingT, s store.Store, before time.Time, keys ...session.Key) {
	for p := (store.FindParams{Kind: store.FindDue, Before: before}); ; {
		page, err := s.Find(context.Background(), p)
		require.NoError(t, err)
		for _, found := range page.Found {
			require.False(t, len(keys) == 0 || slices.Contains(keys, found.Key), "%s is still due: %+v", found.Key, found.Item)
		}
		if p.Cursor = page.Cursor; p.Cursor == "" {
			return
		}
	}
}
