package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// The numbers that a transaction gave out which was then rolled back are given out
// anew: nothing hangs on a row that is not there.
func TestUndone_numbers(t *testing.T) {
	t.Parallel()
	fails := func(t *testing.T, db *DB, f func(w *writer) error) {
		t.Helper()
		require.ErrorIs(t, db.do(t.Context(), &testOp{f: func(w *writer) error { return errors.Join(f(w), errDisk) }}), errDisk)
	}
	t.Run("of a session", func(t *testing.T) {
		t.Parallel()
		db := open(t, datafile.Memory)
		p := store.CommitParams{Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(journal.Head{Key: crash, Status: session.StatusRunning}, 0)}}
		lost, err := db.Store().newCommit(&p)
		require.NoError(t, err)
		fails(t, db, lost.run)
		_, err = db.Store().Commit(t.Context(), p)
		require.NoError(t, err)
		n := 0
		for e, err := range db.Store().Entries(t.Context(), crash, 0) {
			require.NoError(t, err)
			require.EqualValues(t, 1, e.Seq)
			n++
		}
		require.Equal(t, 1, n)
		page, err := db.Store().Find(t.Context(), store.FindParams{Kind: store.FindSessions, Tenant: crash.Tenant})
		require.NoError(t, err)
		require.Len(t, page.Found, 1)
	})
	t.Run("of an owner", func(t *testing.T) {
		t.Parallel()
		db := open(t, datafile.Memory)
		fails(t, db, func(w *writer) error {
			_, err := w.owner()
			return err
		})
		require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 2, journal.WakeStep)))
		require.Len(t, receiveNow(t, db.Queue()), 1)
		var ours int64
		require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) (err error) {
			ours, err = w.c.Number("SELECT count(*) FROM messages JOIN owners ON oid=owner WHERE name='" + db.owner + "'")
			return err
		}}))
		require.EqualValues(t, 1, ours, "whoever finds this process dead finds what it had received")
	})
}

// A deletion that found a session which was then rolled back has deleted nothing, and says so.
func TestStaleSuccess(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	p := store.CommitParams{Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(journal.Head{Key: crash, Status: session.StatusRunning}, 0)}}
	made, err := db.Store().newCommit(&p)
	require.NoError(t, err)
	tries := 0
	once := &testOp{f: func(w *writer) error { // it works, and then fails alone
		if tries++; tries > 1 {
			return errDisk
		}
		return made.run(w)
	}}
	failed := false
	last := &testOp{f: func(*writer) error {
		if failed {
			return nil
		}
		failed = true
		return errDisk
	}}
	gone := &deleteOp{key: crash}
	together(t, db, once, gone, last)
	require.Equal(t, 2, tries, "they shared a transaction")
	require.NoError(t, gone.err)
	require.False(t, gone.found)
}

// A receipt is that of one delivery: whoever comes with an old one neither removes
// nor shows what another has by now.
func TestReceipt_of_before(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(t *testing.T, q *Queue, old queue.Delivery){
		"acknowledged": func(t *testing.T, q *Queue, old queue.Delivery) {
			require.NoError(t, q.Acknowledge(t.Context(), old))
			next := &testOp{job: job{durable: true}, f: func(*writer) error { return nil }}
			require.NoError(t, q.db.do(t.Context(), next)) // it is carried out with the next that is synced
		},
		"postponed": func(t *testing.T, q *Queue, old queue.Delivery) { require.NoError(t, q.Postpone(t.Context(), old, 0)) },
	} {
		t.Run(name+" after it was received again", func(t *testing.T) {
			t.Parallel()
			q, c := clockedQueue(t, datafile.Memory)
			require.NoError(t, q.Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
			old := receiveOne(t, q)
			c.advance(2 * time.Minute)
			require.Len(t, receiveOne(t, q), 1)
			late(t, q, old[0])
			require.Empty(t, receiveOne(t, q), "another works on it")
			c.advance(2 * time.Minute)
			again := receiveOne(t, q)
			require.Len(t, again, 1, "and is dead now")
			require.Equal(t, 3, again[0].Receives)
		})
		t.Run(name+" after it went to the dead letters", func(t *testing.T) {
			t.Parallel()
			c := &setClock{}
			c.set(noon)
			db := openConfig(t, Config{Path: datafile.Memory, Now: c.now, MaxReceives: 1})
			require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
			old := receiveOne(t, db.Queue())
			c.advance(2 * time.Minute)
			require.Empty(t, receiveOne(t, db.Queue()))
			require.Len(t, receiveOne(t, db.DeadLetters()), 1)
			late(t, db.Queue(), old[0])
			require.Empty(t, receiveOne(t, db.DeadLetters()))
			c.advance(2 * time.Minute)
			require.Len(t, receiveOne(t, db.DeadLetters()), 1)
		})
		t.Run(name+" after it was acknowledged and another came in the same nanosecond", func(t *testing.T) {
			t.Parallel()
			q, _ := clockedQueue(t, datafile.Memory)
			require.NoError(t, q.Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
			old := receiveOne(t, q)
			require.NoError(t, q.Acknowledge(t.Context(), old...))
			require.NoError(t, q.Send(t.Context(), journal.NewWake(crash, 2, journal.WakeStep)))
			next := receiveOne(t, q)
			require.Len(t, next, 1)
			late(t, q, old[0])
			require.Empty(t, receiveOne(t, q))
			require.NoError(t, q.Postpone(t.Context(), next[0], 0))
			require.Len(t, receiveOne(t, q), 1, "it is still there")
		})
	}
}

// A claim that was rolled back has not changed HEAD: nobody has the lease.
func TestUndone_claim(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"memory": datafile.Memory, "file": file(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, path)
			_, err := db.Store().Commit(t.Context(), store.CommitParams{
				Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(journal.Head{Key: crash, Status: session.StatusRunning}, 0)},
			})
			require.NoError(t, err)
			p := store.ClaimParams{Key: crash, Mode: store.ClaimTake, Owner: "lost", Seq: 2, Now: noon, Until: noon.Add(time.Minute)}
			lost := &claimOp{p: p, dead: db.deadOwners()}
			require.ErrorIs(t, db.do(t.Context(), &testOp{f: func(w *writer) error { return errors.Join(lost.run(w), errDisk) }}), errDisk)
			require.True(t, lost.found && !lost.held, "it would have been granted")
			p.Owner = "next"
			item, err := db.Store().Claim(t.Context(), p)
			require.NoError(t, err)
			require.Equal(t, "next", item.Head.Lease.Owner)
			require.Zero(t, item.Head.Lease.Died)
		})
	}
}
