package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// An entry is written if its seq is free. Of two workers at the same step one is refused, and
// is shown the entry that is there.
func Example() {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Config{Path: ":memory:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close() //nolint:errcheck // it is in memory
	var s store.Store = db.Store()

	commit := func(run int64) error {
		_, err := s.Commit(ctx, store.CommitParams{
			Key: session.Key{Tenant: session.DefaultTenant, ID: "s1"},
			Entry: journal.Entry{
				V: journal.Format, Seq: 1, Kind: session.KindStarted, Status: session.StatusRunning,
				Run: run, At: time.Date(2026, time.November, 23, 9, 0, 0, 0, time.UTC),
			},
		})
		return err
	}
	fmt.Println(commit(1))
	if conflict := (*store.ConflictError)(nil); errors.As(commit(2), &conflict) {
		fmt.Println("entry", conflict.Entry.Seq, "is there already, of run", conflict.Entry.Run)
	}
	// Output:
	// <nil>
	// entry 1 is there already, of run 1
}
