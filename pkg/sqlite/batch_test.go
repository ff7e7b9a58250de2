package sqlite

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// byHand returns a writer of a file that does nothing by itself.
func byHand(t *testing.T, db *DB) *writer {
	t.Helper()
	f, err := datafile.Open(t.Context(), datafile.Config{Path: db.path, Wait: db.wait, Statements: statements[:]})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	w := newWriter(db, f)
	_, first := counted()
	w.commit(first) // it is at work: the log is open
	require.NoError(t, first[0].base().err)
	return w
}

// counted returns two operations that count how often each was run.
func counted() (runs *[2]int, batch []operation) {
	runs = new([2]int)
	for i := range runs {
		batch = append(batch, &testOp{f: func(*writer) error { runs[i]++; return nil }})
	}
	return runs, batch
}

// Operations of a file that is gone are not carried out one by one into what
// nobody has any more.
func TestBatch_of_a_file_that_is_gone(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	w := byHand(t, db)
	require.NoError(t, os.Remove(db.path))
	runs, batch := counted()
	w.commit(batch)
	require.Equal(t, [2]int{1, 1}, *runs)
	for _, o := range batch {
		require.ErrorIs(t, o.base().err, store.ErrGone)
	}
}

// Who shares a transaction waits once for another process, not one after the other.
func TestBatch_of_a_file_that_is_held(t *testing.T) {
	t.Parallel()
	db := openConfig(t, Config{Path: file(t), Wait: time.Millisecond})
	holder := byHand(t, db)
	w := byHand(t, db)
	require.NoError(t, holder.c.Script("BEGIN IMMEDIATE"))
	runs, batch := counted()
	w.commit(batch)
	require.Zero(t, *runs)
	require.ErrorIs(t, batch[0].base().err, store.ErrLocked)
	require.Same(t, batch[0].base().err, batch[1].base().err)
}

// A transaction is synced if one of those that share it has to be, whatever their order.
func TestBatch_is_durable_if_one_of_it_is(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	w := byHand(t, db)
	level := func() int64 {
		n, err := w.c.Number("PRAGMA synchronous")
		require.NoError(t, err)
		return n
	}
	const normal, full = 1, 2
	for _, c := range []struct {
		durable [2]bool
		level   int64
	}{
		{[2]bool{false, false}, normal},
		{[2]bool{false, true}, full},
		{[2]bool{false, false}, normal},
		{[2]bool{true, false}, full},
		{[2]bool{true, true}, full},
	} {
		_, batch := counted()
		for i, o := range batch {
			o.base().durable = c.durable[i]
		}
		w.commit(batch)
		require.Equal(t, c.level, level(), c.durable)
	}
}
