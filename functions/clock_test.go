//go:build aws && linux

package functions_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/agents/lab/labtest"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// clock is one that jumps, by up to five leases in either direction.
type clock struct{ off atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// TestClockJumps has workers whose clocks jump take part: they take leases that
// are live, hold their own for too long, and date entries into the past and the
// future. The real functions, whose clocks are right, work beside them.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	begin := labtest.Seed(t)
	var did atomic.Int64
	all(t, 2, (labtest.Number(t, "ADJOURN_CRASH_TRIALS", trials)+7)/8, settings{concurrency: 1}, func(w *world, i int) {
		rng := rand.New(rand.NewPCG(begin, uint64(i)+1))
		try(t, w, fmt.Sprintf("clocks-%d-%d", begin, i), rng, func(t *trial) {
			for range 1 + t.rng.IntN(3) {
				// No step put off: by a wrong clock it comes when that clock says.
				t.add(labtest.Random(t.rng, labtest.Mix{Ask: true, Deny: true}))
			}
			t.Hit() // an outcome may be unknown
			ctx, stop := context.WithCancel(background)
			var wg sync.WaitGroup
			for range 3 {
				c, dice := &clock{}, throw(t.rng, 1, 1)
				wg.Go(func() {
					for ctx.Err() == nil {
						c.off.Store(int64(time.Duration(dice.n(10_000)-5_000) * time.Millisecond * time.Duration(lease/time.Second)))
						time.Sleep(time.Duration(dice.n(150)) * time.Millisecond)
					}
				})
				r, q := t.worker(c)
				wg.Go(func() { did.Add(int64(t.work(ctx, r, q))) })
			}
			defer func() { stop(); wg.Wait() }()
			t.run()
		})
	})
	t.Logf("%d messages were worked on with a wrong clock", did.Load())
	require.Positive(t, did.Load())
}

// worker is a runtime in this process, on the world's table and queue.
func (t *trial) worker(c *clock) (*runtime.Runtime, *sqsqueue.Queue) {
	q, err := sqsqueue.New(sqsqueue.Config{SQS: t.queues, URL: t.urls.URL})
	require.NoError(t, err)
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: t.db, Table: t.table, Blobs: t.blobs, Bucket: t.bucket, Now: c.now, NewID: app.NewID,
	})
	require.NoError(t, err)
	registry, err := agents.Registry()
	require.NoError(t, err)
	r, err := runtime.New(runtime.Config{
		Registry: registry, Store: s, Queue: q, Owner: app.NewID(), Now: c.now, NewID: app.NewID, Lease: lease,
		Files: app.FilesBeside("", os.TempDir(), "", true),
	})
	require.NoError(t, err)
	return r, q
}

// work does what the step function does until ctx ends, and returns how many
// messages it worked on.
func (t *trial) work(ctx context.Context, r *runtime.Runtime, q *sqsqueue.Queue) int {
	n := 0
	for ctx.Err() == nil {
		deliveries, err := q.Receive(ctx, queue.ReceiveParams{Wait: time.Second, Visibility: visibility})
		if err != nil || len(deliveries) == 0 {
			continue
		}
		n++
		disposition, err := r.Deliver(background, deliveries[0].Wake)
		switch {
		case err != nil:
			t.Note("wrong clock: %v", err)
			err = q.Postpone(background, deliveries[0], lease)
		case disposition.Keep > 0:
			err = q.Postpone(background, deliveries[0], disposition.Keep)
		default:
			err = q.Acknowledge(background, deliveries[0])
		}
		if err != nil {
			t.Note("wrong clock: %v", err)
		}
	}
	return n
}
