package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

func durable(f func(w *writer) error) *testOp { return &testOp{job: job{durable: true}, f: f} }

// blocked begins an operation on a goroutine of its own, and returns when it is under way.
func blocked(t *testing.T, db *DB, o *testOp) (finish func() error) {
	t.Helper()
	begun, hold, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f := o.f
	o.f = func(w *writer) error { close(begun); <-hold; return f(w) }
	go func() { result <- db.do(context.Background(), o) }()
	<-begun
	return func() error { close(hold); return <-result }
}

func nothing(*writer) error { return nil }

// rest returns when the writer's goroutine sleeps, until somebody or something wakes it.
func rest(db *DB) {
	o := &testOp{job: job{done: make(chan struct{}, 1)}, f: nothing}
	db.ops <- o
	<-o.done
	db.writer.enter()
	db.writer.leave()
}

// A lone operation runs on its caller's goroutine.
func TestInline(t *testing.T) {
	t.Parallel()
	for _, path := range []string{datafile.Memory, file(t)} {
		db := open(t, path)
		rest(db)
		for _, lasts := range []bool{true, false} {
			stack := ""
			o := &testOp{job: job{durable: lasts}, f: func(*writer) error { stack = string(debug.Stack()); return nil }}
			require.NoError(t, db.do(t.Context(), o))
			require.Contains(t, stack, "testing.tRunner")
		}
	}
}

// What comes while an operation is under way shares the next transaction, and as long as operations
// come together, none runs on its caller's goroutine.
func TestInline_not_where_an_fsync_is_shared(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	rest(db)
	finish := blocked(t, db, durable(nothing))
	const callers = 16
	var all sync.WaitGroup
	var shared [callers]int
	for i := range callers {
		all.Go(func() {
			o := durable(func(w *writer) error { shared[i] = len(w.batch); return nil })
			if err := db.do(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	for len(db.ops) < callers-1 { // the writer's goroutine has the first, and waits
		runtime.Gosched()
	}
	require.NoError(t, finish())
	all.Wait()
	for i := range shared {
		require.Equal(t, callers, shared[i])
	}
	alone := 0
	for p := handedOver; p == handedOver; alone++ {
		o := durable(nothing)
		var err error
		p, err = db.submit(t.Context(), o)
		require.NoError(t, err)
		if p == handedOver {
			<-o.done
		}
	}
	require.Greater(t, alone, 3, "it is not known at once that nobody else comes")
	require.Less(t, alone, 20)
}

// An acknowledgement does not wake the writer's goroutine. It is carried out by the next durable
// transaction, whoever does that.
func TestInline_takes_the_lazy_along(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	rest(db)
	order, shared := "", 0
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		w.sort(&testOp{job: job{lazy: true}, f: func(*writer) error { order += "lazy "; return nil }})
		w.overdue.Stop() // nobody else does it
		return nil
	}}))
	require.NoError(t, db.do(t.Context(), &testOp{f: func(*writer) error { order += "quick "; return nil }}))
	require.NoError(t, db.do(t.Context(), durable(func(w *writer) error { order += "durable"; shared = len(w.batch); return nil })))
	require.Equal(t, "quick lazy durable", order)
	require.Equal(t, 2, shared)
	p, err := db.submit(t.Context(), &testOp{job: job{lazy: true}, f: nothing})
	require.NoError(t, err)
	require.Equal(t, carriedOut, p)
}

// Where another process holds the file, the caller waits as long as its context allows, and what it
// handed over is carried out all the same, with what waited beside it.
func TestInline_of_a_held_file(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := openConfig(t, Config{Path: path, Wait: time.Hour})
	holder, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Close()) }()
	stopped, err := holder.Conn(t.Context())
	require.NoError(t, err)
	for range 2 { // the second time the connection has to lose its patience again
		rest(db)
		_, err = stopped.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		require.NoError(t, err)
		var lazy, ran bool
		db.writer.enter()
		db.writer.sort(&testOp{job: job{lazy: true}, f: func(*writer) error { lazy = true; return nil }})
		db.writer.overdue.Stop()
		db.writer.leave()
		ctx, cancel := context.WithCancel(t.Context())
		o := durable(func(*writer) error { ran = true; return nil })
		p, err := db.submit(ctx, o)
		require.NoError(t, err)
		require.Equal(t, handedOver, p, "it was not waited for the file")
		gone := make(chan error, 1)
		go func() { gone <- db.do(ctx, durable(nothing)) }()
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		_, err = stopped.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		<-o.done
		require.NoError(t, o.err)
		require.True(t, ran)
		require.True(t, lazy)
		for p = handedOver; p == handedOver; { // until nothing is left to the writer's goroutine
			last := durable(nothing)
			p, err = db.submit(t.Context(), last)
			require.NoError(t, err)
			if p == handedOver {
				<-last.done
			}
		}
	}
	require.NoError(t, stopped.Close())
}

// The connection that writes waits for locks when the writer's goroutine needs it, and only then.
func TestInline_waits_for_locks(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := openConfig(t, Config{Path: path, Wait: 20 * time.Millisecond})
	holder, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Close()) }()
	stopped, err := holder.Conn(t.Context())
	require.NoError(t, err)
	rest(db)
	w := db.writer
	w.enter()
	defer w.leave()
	is := func(milliseconds int) {
		t.Helper()
		n, err := w.c.Number("PRAGMA busy_timeout")
		require.NoError(t, err)
		require.EqualValues(t, milliseconds, n)
	}
	is(20)
	for range 2 {
		_, err = stopped.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		require.NoError(t, err)
		require.True(t, datafile.IsBusy(w.file.TryBegin()))
		is(0)
		require.True(t, datafile.IsBusy(w.file.Begin()))
		is(20)
		_, err = stopped.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, w.file.TryBegin())
		require.NoError(t, w.file.Rollback())
		require.NoError(t, w.file.Begin())
		require.NoError(t, w.file.Rollback())
		is(0)
	}
	require.NoError(t, stopped.Close())
}

// SQLite's failure of one operation is not one of those that share its transaction.
func TestInline_fails_alone(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	rest(db)
	for range 2 { // the second to prove that the store works on
		lazy := &testOp{job: job{lazy: true}, f: nothing}
		_, err := db.submit(t.Context(), lazy)
		require.NoError(t, err)
		require.ErrorIs(t, db.do(t.Context(), durable(func(*writer) error { return errDisk })), errDisk)
		require.NoError(t, lazy.err)
		require.ErrorIs(t, db.do(t.Context(), &testOp{f: func(*writer) error { return errDisk }}), errDisk)
	}
}

// A panic that a caller catches leaves the transaction undone and the writer at work.
func TestInline_panics(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	rest(db)
	require.PanicsWithError(t, errDisk.Error(), func() {
		_ = db.do(t.Context(), durable(func(w *writer) error {
			if _, err := w.newSID(crash); err != nil {
				return err
			}
			panic(errDisk)
		}))
	})
	require.NoError(t, db.do(t.Context(), durable(func(w *writer) error {
		sid, err := w.sid(crash)
		require.Zero(t, sid)
		return err
	})))
}

// Close waits for an operation that runs on its caller's goroutine, and carries out what such a one
// has left to the writer's goroutine.
func TestInline_and_close(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, path)
	rest(db)
	finish := blocked(t, db, durable(func(w *writer) error { _, err := w.newSID(crash); return err }))
	left := durable(func(w *writer) error { _, err := w.newSID(benchKey(1)); return err })
	left.done = make(chan struct{}, 1)
	db.writer.sort(left) // as the operation under way would; nobody else looks
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	<-db.closing
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case <-db.closed:
		require.Fail(t, "the operation is still under way")
	default:
	}
	require.NoError(t, finish())
	require.NoError(t, <-closed)
	<-left.done
	require.NoError(t, left.err)
	require.ErrorIs(t, db.do(t.Context(), durable(nothing)), datafile.ErrClosed)
	require.False(t, db.writer.tryEnter(), "nobody works with a closed file")

	again := open(t, path)
	require.NoError(t, again.do(t.Context(), &testOp{f: func(w *writer) error {
		for _, key := range []int{0, 1} {
			k := crash
			if key == 1 {
				k = benchKey(1)
			}
			sid, err := w.sid(k)
			require.NoError(t, err)
			require.NotZero(t, sid)
		}
		return nil
	}}))
}

// Callers that commit while the file is closed: what was confirmed is in the file.
func TestInline_races_with_close(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 2, 7} {
		path := file(t)
		db := open(t, path)
		var all sync.WaitGroup
		confirmed := make([]int64, callers)
		begun := make(chan struct{}, callers)
		for i := range callers {
			all.Go(func() {
				for seq := int64(1); ; seq++ {
					_, err := db.Store().Commit(t.Context(), store.CommitParams{Key: benchKey(i), Entry: plainEntry(seq)})
					if err != nil {
						if !errors.Is(err, datafile.ErrClosed) {
							t.Error(err)
						}
						return
					}
					if confirmed[i] = seq; seq == 5 {
						begun <- struct{}{}
					}
				}
			})
		}
		for range callers {
			<-begun
		}
		require.NoError(t, db.Close())
		all.Wait()
		db = open(t, path)
		for i := range callers {
			n := int64(0)
			for e, err := range db.Store().Entries(t.Context(), benchKey(i), 0) {
				require.NoError(t, err)
				n = e.Seq
			}
			require.GreaterOrEqual(t, n, confirmed[i])
		}
	}
}

// The writer's goroutine sleeps as long as it knows of nothing. What callers do themselves may
// change that: somebody waits now, or a message comes earlier.
func TestInline_wakes_the_writer(t *testing.T) {
	t.Parallel()
	send := func(t *testing.T, db *DB, delay time.Duration) {
		wake := journal.NewWake(crash, 1, journal.WakeStep)
		wake.Delay = delay
		require.NoError(t, db.Queue().Send(t.Context(), wake))
	}
	receive := func(t *testing.T, db *DB) func() {
		begin := time.Now()
		got := make(chan int, 1)
		go func() {
			all, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Wait: journal.MaxAhead, Visibility: time.Minute})
			if err != nil {
				t.Error(err)
			}
			got <- len(all)
		}()
		synctest.Wait()
		return func() {
			require.Equal(t, 1, <-got)
			require.InDelta(t, 2*time.Second, time.Since(begin), float64(pollEvery))
		}
	}
	for _, path := range []string{datafile.Memory, file(t)} {
		synctest.Test(t, func(t *testing.T) {
			db := open(t, path)
			synctest.Wait() // the writer's goroutine sleeps
			send(t, db, 2*time.Second)
			receive(t, db)()
			require.NoError(t, db.Close())
		})
	}
	synctest.Test(t, func(t *testing.T) {
		db := open(t, datafile.Memory)
		received := receive(t, db)
		send(t, db, time.Minute)
		synctest.Wait()
		send(t, db, 2*time.Second)
		received()
		require.NoError(t, db.Close())
	})
	synctest.Test(t, func(t *testing.T) { // the clock is set
		var ahead time.Duration
		db := openConfig(t, Config{Path: datafile.Memory, Now: func() time.Time { return time.Now().Add(ahead) }})
		received := receive(t, db)
		send(t, db, time.Minute)
		synctest.Wait()
		require.NoError(t, db.do(t.Context(), &testOp{f: func(*writer) error { ahead = time.Minute - 2*time.Second; return nil }}))
		received()
		require.NoError(t, db.Close())
	})
	synctest.Test(t, func(t *testing.T) { // and somebody who waits for the writer's turn does not stop the time
		db := open(t, datafile.Memory)
		require.NoError(t, db.do(t.Context(), durable(func(*writer) error {
			go func() { _ = db.do(context.Background(), durable(nothing)) }()
			time.Sleep(time.Second)
			return nil
		})))
		require.NoError(t, db.Close())
	})
}

// What is left to the writer's goroutine comes before what a caller begins later.
func TestInline_not_before_what_waits(t *testing.T) {
	t.Parallel()
	db := open(t, file(t))
	rest(db)
	var order []string
	as := func(name string) *testOp {
		return durable(func(*writer) error { order = append(order, name); return nil })
	}
	left := as("left")
	left.done = make(chan struct{}, 1)
	db.writer.enter()
	db.writer.sort(left) // as for a caller that found the file held
	db.writer.leave()
	require.NoError(t, db.do(t.Context(), as("later")))
	require.Equal(t, []string{"left", "later"}, order)
	<-left.done
}

// What a caller has left to the writer's goroutine is carried out though nothing else comes.
func TestInline_what_is_left_alone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := open(t, datafile.Memory)
		for _, lasts := range []bool{true, false} {
			synctest.Wait() // the writer's goroutine sleeps
			ran := false
			left := &testOp{job: job{durable: lasts, done: make(chan struct{}, 1)}, f: func(*writer) error { ran = true; return nil }}
			w := db.writer
			w.enter()
			w.sort(left) // as for a caller that found the file held
			w.nudge()
			w.leave()
			synctest.Wait()
			require.Len(t, left.done, 1)
			require.True(t, ran)
		}
		require.NoError(t, db.Close())
	})
}

// In a file too the writer's goroutine wakes for a message that comes before it had meant to look.
func TestInline_wakes_the_writer_of_a_file(t *testing.T) {
	t.Parallel()
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		db := open(t, path)
		came := make(chan time.Time, 1)
		go func() {
			all, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Wait: time.Minute, Visibility: time.Minute})
			if err != nil || len(all) != 1 {
				t.Error(len(all), err)
			}
			came <- time.Now()
		}()
		synctest.Wait()
		wake := journal.NewWake(crash, 1, journal.WakeStep)
		wake.Delay = checkEvery / 5
		visible := time.Now().Add(wake.Delay)
		require.NoError(t, db.Queue().Send(t.Context(), wake))
		require.Equal(t, visible, <-came)
		require.NoError(t, db.Close())
	})
}
