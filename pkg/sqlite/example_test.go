package sqlite_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// One file holds a store and a queue.
func Example() {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Config{Path: ":memory:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close() //nolint:errcheck // it is in memory
	var q queue.Queue = db.Queue()
	key := session.Key{Tenant: session.DefaultTenant, ID: "s1"}
	if err := q.Send(ctx, journal.NewWake(key, 1, journal.WakeStep)); err != nil {
		fmt.Println(err)
		return
	}
	got, err := q.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: 1e9})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got[0].Wake.Key(), got[0].Wake.Kind, q.Acknowledge(ctx, got...))
	// Output: default/s1 step <nil>
}
