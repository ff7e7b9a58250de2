package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// A message that was received is hidden until it is acknowledged, or until its worker has
// been silent for too long: then it is received again.
func Example() {
	ctx := context.Background()
	begins := time.Date(2026, time.November, 23, 9, 0, 0, 0, time.UTC)
	var since atomic.Int64 // the queue reads its clock on a goroutine of its own
	db, err := sqlite.Open(ctx, sqlite.Config{Path: ":memory:", Now: func() time.Time { return begins.Add(time.Duration(since.Load())) }})
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
	receive := func() []queue.Delivery {
		got, err := q.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: 30 * time.Second})
		if err != nil {
			fmt.Println(err)
		}
		return got
	}
	fmt.Println("received", len(receive()))
	fmt.Println("while it is hidden", len(receive()))
	since.Store(int64(time.Minute))
	again := receive()
	fmt.Println("a minute later", len(again), "of receipt", again[0].Receives)
	fmt.Println(q.Acknowledge(ctx, again...))
	// Output:
	// received 1
	// while it is hidden 0
	// a minute later 1 of receipt 2
	// <nil>
}
