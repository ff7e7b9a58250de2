package sqlite

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// within is what the documents promise.
const within = 20 * time.Millisecond

// What another process writes is told, and what it sends received, within 20 ms: the two files
// here are as separate as those of two processes.
func TestOthers_are_noticed_in_time(t *testing.T) {
	t.Parallel()
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		here, there := open(t, path), open(t, path)
		var heard atomic.Int64
		stop, ok := here.Store().Watch(func() { heard.Add(1) })
		require.True(t, ok)
		time.Sleep(time.Minute)
		heard.Store(0) // what was written before it began
		for seq := range int64(20) {
			time.Sleep(time.Duration(seq) * 777 * time.Microsecond)
			_, err := there.Store().Commit(t.Context(), store.CommitParams{Key: crash, Entry: plain1(seq + 1)})
			require.NoError(t, err)
			time.Sleep(within)
			require.Equal(t, seq+1, heard.Load())
		}
		_, err := here.Store().Commit(t.Context(), store.CommitParams{Key: crash, Entry: plain1(21)})
		require.NoError(t, err)
		time.Sleep(within)
		require.EqualValues(t, 20, heard.Load(), "its own")
		stop()
		stop()
		require.False(t, here.others.Watched())
		_, err = there.Store().Commit(t.Context(), store.CommitParams{Key: crash, Entry: plain1(22)})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.EqualValues(t, 20, heard.Load())

		for seq := range int64(20) {
			got := make(chan error, 1)
			go func() { got <- receiveSoon(t.Context(), here.Queue()) }()
			time.Sleep(time.Second + time.Duration(seq)*777*time.Microsecond)
			sent := time.Now()
			require.NoError(t, there.Queue().Send(t.Context(), journal.NewWake(crash, seq+1, journal.WakeStep)))
			require.NoError(t, <-got)
			require.LessOrEqual(t, time.Since(sent), within)
		}
		require.NoError(t, there.Close())
		require.NoError(t, here.Close())
	})
}

// A receiver that knew a moment ago that there was nothing is given what came since, also if the
// change was noticed while nobody waited for messages.
func TestOthers_noticed_for_somebody_else(t *testing.T) {
	t.Parallel()
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		here, there := open(t, path), open(t, path)
		stop, _ := here.Store().Watch(func() {})
		defer stop()
		for seq := range int64(30) {
			none, err := here.Queue().Receive(t.Context(), queue.ReceiveParams{Wait: time.Microsecond, Visibility: time.Hour})
			require.NoError(t, err)
			require.Empty(t, none)
			require.NoError(t, there.Queue().Send(t.Context(), journal.NewWake(crash, seq+1, journal.WakeStep)))
			time.Sleep(time.Duration(seq) * time.Millisecond)
			sent := time.Now()
			require.NoError(t, receiveSoon(t.Context(), here.Queue()))
			require.LessOrEqual(t, time.Since(sent), within)
		}
		require.NoError(t, there.Close())
		require.NoError(t, here.Close())
	})
}

// The same where the system tells. How soon is the system's affair: here it counts that nothing is
// missed, and in another test that it is the system that tells.
func TestOthers_while_the_system_tells(t *testing.T) {
	t.Parallel()
	path := file(t)
	here, there := openConfig(t, Config{Path: path, Listen: true}), open(t, path)
	stay(t, here)
	heard := make(chan struct{}, 1)
	stop, ok := here.Store().Watch(func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	require.True(t, ok)
	for seq := range int64(20) {
		_, err := there.Store().Commit(t.Context(), store.CommitParams{Key: crash, Entry: plain1(seq + 1)})
		require.NoError(t, err)
		<-heard
		got := make(chan error, 1)
		go func() { got <- receiveSoon(t.Context(), here.Queue()) }()
		parked(t, here, 1)
		require.NoError(t, there.Queue().Send(t.Context(), journal.NewWake(crash, seq+1, journal.WakeStep)))
		require.NoError(t, <-got)
		<-heard
	}
	stop()
}

// stay has a file listen at once.
func stay(t *testing.T, db *DB) {
	t.Helper()
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		w.db.others.Listen(w.db.now().Add(-datafile.ListenAfter))
		return nil
	}}))
}

// Nobody waits, nobody looks; and a file that was opened for reading does not tell.
func TestWatch_where_there_is_nothing_to_do(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, path)
	idle := func() (idle bool) {
		require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
			_, waits := w.idleFor(w.db.now())
			idle = !waits
			return nil
		}}))
		return idle
	}
	require.True(t, idle())
	stop, _ := db.Store().Watch(func() {})
	require.False(t, idle())
	stop()
	require.True(t, idle())
	reader, err := Open(t.Context(), Config{Path: path, ReadOnly: true})
	require.NoError(t, err)
	_, ok := reader.Store().Watch(func() {})
	require.False(t, ok)
	require.NoError(t, reader.Close())
	memory := open(t, datafile.Memory)
	stop, ok = memory.Store().Watch(func() {})
	require.True(t, ok, "there are no others")
	defer stop()
	require.NoError(t, memory.do(t.Context(), &testOp{f: func(w *writer) error {
		_, waits := w.idleFor(w.db.now())
		require.False(t, waits)
		return nil
	}}))
}
