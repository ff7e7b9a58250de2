package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

var errDisk = errors.New("the disk failed")

// together has the writer run operations in one transaction, in this order.
func together(t *testing.T, db *DB, ops ...operation) {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	blocker := &testOp{f: func(*writer) error { close(held); <-hold; return nil }}
	blocker.durable = true
	db.ops <- blocker
	<-held
	for _, o := range ops {
		o.base().done, o.base().durable = make(chan struct{}, 1), true
		p, err := db.submit(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, handedOver, p)
	}
	close(hold)
	for _, o := range ops {
		<-o.base().done
	}
}

// What a transaction did that was rolled back did not happen: no lease of it is
// held, no message of it is received, and none of it reaches who waits.
func TestUndone(t *testing.T) {
	t.Parallel()
	claim := func(owner string) store.ClaimParams {
		now := time.Now()
		return store.ClaimParams{Key: crash, Mode: store.ClaimTake, Owner: owner, Seq: 2, Now: now, Until: now.Add(time.Minute)}
	}
	fails := func(f func(w *writer) error) *testOp {
		return &testOp{f: func(w *writer) error { return errors.Join(f(w), errDisk) }}
	}
	begin := func(t *testing.T) *DB {
		db := open(t, file(t))
		_, err := db.Store().Commit(t.Context(), store.CommitParams{
			Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(journal.Head{Key: crash, Status: session.StatusRunning}, 0)},
		})
		require.NoError(t, err)
		return db
	}
	t.Run("lease", func(t *testing.T) {
		t.Parallel()
		db := begin(t)
		lost := &claimOp{p: claim("a"), dead: db.deadOwners()}
		require.ErrorIs(t, db.do(t.Context(), fails(lost.run)), errDisk)
		item, err := db.Store().Claim(t.Context(), claim("b"))
		require.NoError(t, err)
		require.EqualValues(t, 1, item.Head.Lease.N)
	})
	t.Run("receipt", func(t *testing.T) {
		t.Parallel()
		db := begin(t)
		require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 2, journal.WakeStep)))
		r := &receiveOp{max: 1, visibility: time.Hour}
		require.ErrorIs(t, db.do(t.Context(), fails(func(w *writer) error { return w.receive(r) })), errDisk)
		got := receiveNow(t, db.Queue())
		require.Len(t, got, 1)
		require.Equal(t, 1, got[0].Receives)
	})
	t.Run("what was handed to who waits", func(t *testing.T) {
		t.Parallel()
		db := begin(t)
		got := make(chan []queue.Delivery, 1)
		go func() {
			d, _ := db.Queue().Receive(context.Background(), queue.ReceiveParams{Max: 9, Wait: time.Hour, Visibility: time.Hour})
			got <- d
		}()
		require.Eventually(t, func() bool {
			var waiting bool
			require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error { waiting = len(w.parked) == 1; return nil }}))
			return waiting
		}, soon, time.Millisecond)
		require.ErrorIs(t, db.do(t.Context(), fails(func(w *writer) error {
			return w.send(false, []journal.Wake{journal.NewWake(crash, 2, journal.WakeStep)})
		})), errDisk)
		require.Empty(t, <-got)
		require.Empty(t, receiveNow(t, db.Queue()))
	})
}

// An operation that was refused for what another one of its transaction had done,
// which was then rolled back, is tried again and its first refusal forgotten.
func TestStaleRefusal(t *testing.T) {
	t.Parallel()
	ledger := store.ToolItem(journal.ToolRecord{Call: "c1-0"}, 0)
	for name, prepare := range map[string]func(t *testing.T, db *DB) (first, second operation){
		"commit": func(t *testing.T, db *DB) (first, second operation) {
			ops := [2]operation{}
			for i := range ops {
				o, err := db.Store().newCommit(&store.CommitParams{Key: crash, Entry: plain1(2)})
				require.NoError(t, err)
				ops[i] = o
			}
			return ops[0], ops[1]
		},
		"commit with an item": func(t *testing.T, db *DB) (first, second operation) {
			ops := [2]operation{}
			for i := range ops {
				o, err := db.Store().newCommit(&store.CommitParams{Key: crash, Entry: plain1(int64(2 + i)), Items: []store.Item{ledger}})
				require.NoError(t, err)
				ops[i] = o
			}
			return ops[0], ops[1]
		},
		"update": func(t *testing.T, _ *DB) (first, second operation) {
			ops := [2]operation{}
			for i := range ops {
				o, err := newUpdate(crash, []store.Item{ledger})
				require.NoError(t, err)
				ops[i] = o
			}
			return ops[0], ops[1]
		},
		"claim": func(_ *testing.T, db *DB) (first, second operation) {
			now := time.Now()
			p := store.ClaimParams{Key: crash, Mode: store.ClaimTake, Owner: "a", Seq: 2, Now: now, Until: now.Add(time.Minute)}
			other := p
			other.Owner = "b"
			return &claimOp{p: p, dead: db.deadOwners()}, &claimOp{p: other, dead: db.deadOwners()}
		},
		"commit after a delete": func(t *testing.T, db *DB) (first, second operation) {
			o, err := db.Store().newCommit(&store.CommitParams{Key: crash, Entry: plain1(2)})
			require.NoError(t, err)
			return &deleteOp{key: crash}, o
		},
		"update after a delete": func(t *testing.T, _ *DB) (first, second operation) {
			o, err := newUpdate(crash, []store.Item{ledger})
			require.NoError(t, err)
			return &deleteOp{key: crash}, o
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, datafile.Memory)
			_, err := db.Store().Commit(t.Context(), store.CommitParams{
				Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(journal.Head{Key: crash, Status: session.StatusRunning}, 0)},
			})
			require.NoError(t, err)
			first, second := prepare(t, db)
			tries := [2]int{}
			once := &testOp{f: func(w *writer) error { // the first works, and then fails alone
				if tries[0]++; tries[0] > 1 {
					return errDisk
				}
				return first.run(w)
			}}
			last := &testOp{f: func(*writer) error {
				if tries[1]++; tries[1] == 1 {
					return errDisk
				}
				return nil
			}}
			together(t, db, once, second, last)
			require.Equal(t, [2]int{2, 2}, tries, "they shared a transaction")
			require.ErrorIs(t, once.err, errDisk)
			require.NoError(t, second.base().err)
			require.NoError(t, last.err)
			switch o := second.(type) {
			case *commitOp:
				require.Nil(t, o.taken)
				require.Nil(t, o.conflict)
				require.False(t, o.gone)
			case *updateOp:
				require.Nil(t, o.conflict)
				require.False(t, o.gone)
			case *claimOp:
				require.True(t, o.found)
				require.False(t, o.held)
			}
		})
	}
}

// Messages of several processes have their numbers from the clock; those of one
// nanosecond are all there.
func TestSentInOneNanosecond(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	at := time.Now()
	cfg := Config{Path: path, Now: func() time.Time { return at }}
	dbs := [2]*DB{openConfig(t, cfg), openConfig(t, cfg)}
	for i := range 6 {
		require.NoError(t, dbs[i%2].Queue().Send(t.Context(), journal.NewWake(crash, int64(i+1), journal.WakeStep)))
	}
	seen := map[int64]bool{}
	for _, d := range receiveNow(t, dbs[0].Queue()) {
		seen[d.Wake.Seq] = true
	}
	require.Len(t, seen, 6)
}
