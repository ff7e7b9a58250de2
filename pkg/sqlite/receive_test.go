package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
)

// soon is how long a test waits for what must come in milliseconds.
const soon = time.Minute

// receiveSoon waits for one message.
func receiveSoon(ctx context.Context, q *Queue) error {
	got, err := q.Receive(ctx, queue.ReceiveParams{Wait: soon, Visibility: time.Hour})
	if err == nil && len(got) != 1 {
		err = errors.New("the message did not come")
	}
	return err
}

// parked waits until so many receipts are parked with the writer.
func parked(t *testing.T, db *DB, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		found := 0
		require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error { found = len(w.parked); return nil }}))
		return found == n
	}, soon, time.Millisecond)
}

// busy keeps the writer of db at work until the test ends.
func busy(t *testing.T, db *DB, pause time.Duration, callers int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for range callers {
		working.Go(func() {
			for ctx.Err() == nil {
				_ = db.do(ctx, &testOp{f: func(*writer) error { return nil }})
				time.Sleep(pause)
			}
		})
	}
	t.Cleanup(func() { stop(); working.Wait() })
}

// Messages whose times lie closer together than one look at them takes: none is
// passed over. In memory nobody polls, so one that was would lie there for ever.
func TestReceive_messages_that_become_visible_one_after_the_other(t *testing.T) {
	t.Parallel()
	const messages = 12
	for range 30 {
		db := open(t, datafile.Memory)
		got := make(chan error, messages)
		for range messages {
			go func() { got <- receiveSoon(t.Context(), db.Queue()) }()
		}
		parked(t, db, messages)
		wakes := make([]journal.Wake, messages)
		for i := range wakes {
			wakes[i] = journal.NewWake(crash, int64(i+1), journal.WakeStep)
			wakes[i].Delay = 2*time.Millisecond + time.Duration(i)*15*time.Microsecond
		}
		require.NoError(t, db.Queue().Send(t.Context(), wakes...))
		for range messages {
			require.NoError(t, <-got)
		}
	}
}

// The same with a clock that goes on by a little whenever somebody looks at it,
// so that the second message's time comes at each point of the look that finds
// the first.
func TestReceive_a_message_whose_time_comes_during_a_look(t *testing.T) {
	t.Parallel()
	const little = time.Millisecond
	for looks := range 20 {
		var mu sync.Mutex
		now, going := time.Now(), false
		db := openConfig(t, Config{Path: datafile.Memory, Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			if going {
				now = now.Add(little)
			}
			return now
		}})
		wakes := make([]journal.Wake, 2)
		for i := range wakes {
			wakes[i] = journal.NewWake(crash, int64(i+1), journal.WakeStep)
			wakes[i].Delay = 10*time.Minute + time.Duration(i*looks)*little
		}
		require.NoError(t, db.Queue().Send(t.Context(), wakes...))
		got := make(chan error, 2)
		for range cap(got) {
			go func() { got <- receiveSoon(t.Context(), db.Queue()) }()
		}
		parked(t, db, cap(got))
		mu.Lock()
		now, going = now.Add(time.Hour), true
		mu.Unlock()
		require.NoError(t, db.do(t.Context(), &testOp{f: func(*writer) error { return nil }})) // it looks at the clock
		for range cap(got) {
			require.NoError(t, <-got, "%d looks later", looks)
		}
	}
}

// What is handed over to who waits is received like any other: by this process, once,
// hidden, and gone when it is acknowledged.
func TestReceive_what_is_handed_over(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	got := make(chan []queue.Delivery, 1)
	go func() {
		d, _ := db.Queue().Receive(t.Context(), queue.ReceiveParams{Wait: soon, Visibility: time.Minute})
		got <- d
	}()
	parked(t, db, 1)
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
	d := <-got
	require.Len(t, d, 1)
	require.Equal(t, 1, d[0].Receives)
	count := func(which string) (n int64) {
		require.NoError(t, db.do(t.Context(), &testOp{job: job{durable: true}, f: func(w *writer) (err error) {
			n, err = w.c.Number("SELECT count(*) FROM messages " + which)
			return err
		}}))
		return n
	}
	require.EqualValues(t, 1, count("JOIN owners ON oid=owner WHERE receives=1 AND visible-sent=60000000000 AND name='"+db.owner+"'"))
	require.NoError(t, db.Queue().Acknowledge(t.Context(), d...))
	require.Zero(t, count(""))
}

// Who waits for dead letters is not given what goes to the queue.
func TestReceive_of_the_dead_letters(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	got := make(chan error, 1)
	go func() { got <- receiveSoon(ctx, db.DeadLetters()) }()
	parked(t, db, 1)
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
	require.Len(t, receiveNow(t, db.Queue()), 1)
	stop(enough)
	require.ErrorIs(t, <-got, enough)
}

// A process that has much to do still looks for what others sent.
func TestReceive_from_another_process_while_this_one_is_busy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	here, there := open(t, path), open(t, path)
	got := make(chan error, 1)
	go func() { got <- receiveSoon(t.Context(), here.Queue()) }()
	parked(t, here, 1)
	busy(t, here, pollEvery/10, 1)
	time.Sleep(pollEvery / 2) // it is busy by now
	require.NoError(t, there.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
	require.NoError(t, <-got)
}

// Those who ask for one quick thing after the other do not keep the writer from
// what waits for the disk.
func TestWriter_gets_to_the_disk_while_others_keep_asking(t *testing.T) {
	t.Parallel()
	for _, path := range []string{datafile.Memory, file(t)} {
		db := open(t, path)
		busy(t, db, 0, 4)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		for seq := range int64(20) {
			require.NoError(t, db.Queue().Send(ctx, journal.NewWake(crash, seq+1, journal.WakeStep)))
		}
		cancel()
	}
}

// What a transaction received that then failed is there for the next.
func TestReceive_after_a_transaction_that_failed(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
	broken := errors.New("the disk broke")
	err := db.do(t.Context(), &testOp{f: func(w *writer) error {
		first := &receiveOp{max: 1, visibility: time.Hour}
		require.NoError(t, w.receive(first))
		require.Len(t, first.deliveries, 1)
		second := &receiveOp{max: 1, visibility: time.Hour}
		require.NoError(t, w.receive(second))
		require.Empty(t, second.deliveries)
		require.True(t, w.dry[0].valid)
		w.wakeAt = w.db.now().Add(journal.MaxAhead) // further ahead would count as now
		return broken
	}})
	require.ErrorIs(t, err, broken)
	require.NoError(t, receiveSoon(t.Context(), db.Queue()))
}

// A receipt that is given up gives up no message: it has it, or another one gets it.
func TestReceive_given_up_at_any_moment(t *testing.T) {
	t.Parallel()
	for _, path := range []string{datafile.Memory, file(t)} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			const messages = 200
			db := open(t, path)
			var mu sync.Mutex
			seen := map[int64]int{}
			take := func(ctx context.Context, wait time.Duration) {
				got, _ := db.Queue().Receive(ctx, queue.ReceiveParams{Max: 2, Wait: wait, Visibility: time.Hour})
				mu.Lock()
				defer mu.Unlock()
				for _, d := range got {
					seen[d.Wake.Seq]++
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var working sync.WaitGroup
			for i := range 8 {
				working.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						wait := time.Duration((i*37+n*13)%200) * time.Microsecond
						if i%2 == 0 {
							take(ctx, wait)
							continue
						}
						brief, cancel := context.WithTimeout(ctx, wait)
						take(brief, time.Minute)
						cancel()
					}
				})
			}
			for seq := range int64(messages) {
				require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, seq+1, journal.WakeStep)))
			}
			require.Eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(seen) == messages
			}, soon, time.Millisecond)
			stop()
			working.Wait()
			for seq, n := range seen {
				require.Equal(t, 1, n, "message %d", seq)
			}
		})
	}
}
