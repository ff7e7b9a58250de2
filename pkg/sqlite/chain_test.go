package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestChain drives sessions through their steps as workers do. While nobody
// dies, every message comes once and no claim and no commit is ever refused.
func TestChain(t *testing.T) {
	t.Parallel()
	const sessions, steps = 12, 60
	for name, paths := range map[string][]string{"memory": {datafile.Memory}, "one": {"file"}, "two on one file": {"file", "file"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := paths[0]
			if path == "file" {
				path = file(t)
			}
			dbs := make([]*DB, len(paths))
			for i := range dbs {
				dbs[i] = open(t, path)
			}
			for i := range sessions {
				key := session.Key{Tenant: "t", ID: fmt.Sprintf("s%d", i)}
				_, err := dbs[0].Store().Commit(t.Context(), store.CommitParams{
					Key: key, Entry: plain1(1), Items: []store.Item{store.HeadItem(journal.Head{Key: key, Status: session.StatusRunning}, 0)},
					Wakes: []journal.Wake{journal.NewWake(key, 2, journal.WakeStep)},
				})
				require.NoError(t, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, sessions*steps)
			workers := make(chan struct{}, 8)
			for i := range cap(workers) {
				go func() {
					defer func() { workers <- struct{}{} }()
					db := dbs[i%len(dbs)]
					for ctx.Err() == nil {
						work(ctx, db, 1+i%3, steps, ended)
					}
				}()
			}
			for range sessions {
				require.NoError(t, <-ended)
			}
			stop()
			for range cap(workers) {
				<-workers
			}
			require.Empty(t, ended)
			require.Empty(t, receiveNow(t, dbs[0].Queue()))
			for i := range sessions {
				n := 0
				for _, err := range dbs[0].Store().Entries(t.Context(), session.Key{Tenant: "t", ID: fmt.Sprintf("s%d", i)}, 0) {
					require.NoError(t, err)
					n++
				}
				require.Equal(t, steps, n)
			}
		})
	}
}

// work receives once and takes the steps it was given.
func work(ctx context.Context, db *DB, most int, last int64, ended chan<- error) {
	got, err := db.Queue().Receive(ctx, queue.ReceiveParams{Max: most, Wait: time.Minute, Visibility: time.Minute})
	if err != nil {
		if ctx.Err() == nil {
			ended <- err
		}
		return
	}
	for _, d := range got {
		if d.Receives != 1 {
			ended <- fmt.Errorf("message %v came %d times", d.Wake, d.Receives)
		}
		if err := takeStep(context.WithoutCancel(ctx), db, d, last); err != nil {
			ended <- err
		}
		if d.Wake.Seq == last {
			ended <- nil
		}
	}
}

func takeStep(ctx context.Context, db *DB, d queue.Delivery, last int64) error {
	key, seq, now := d.Wake.Key(), d.Wake.Seq, time.Now()
	if _, err := db.Store().Claim(ctx, store.ClaimParams{
		Key: key, Mode: store.ClaimTake, Owner: db.Owner() + "/x", Seq: seq, Now: now, Until: now.Add(time.Minute),
	}); err != nil {
		return err
	}
	p := store.CommitParams{Key: key, Entry: plain1(seq)}
	if seq < last {
		p.Wakes = []journal.Wake{journal.NewWake(key, seq+1, journal.WakeStep)}
	}
	if _, err := db.Store().Commit(ctx, p); err != nil {
		return err
	}
	return db.Queue().Acknowledge(ctx, d)
}
