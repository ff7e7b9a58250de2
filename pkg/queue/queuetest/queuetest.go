// Package queuetest holds the contract of the queue port as tests.
//
// Every sentence of queue's comments is a subtest. An adapter runs all of them:
//
//	queuetest.Run(t, func(t *testing.T) queuetest.Fixture { … })
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Fixture is a queue of its own.
type Fixture struct {
	Queue queue.Queue
	// DeadLetters is where messages go that were received too often.
	DeadLetters queue.Queue
	// MaxReceives is how often that is.
	MaxReceives int
	// Second is the kit's unit of time: the smallest the adapter keeps well.
	// Delays and visibilities are one or two of them.
	Second time.Duration
}

// Run runs the contract against queues made by open: a fresh one per subtest,
// all of them in parallel.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(&fixture{T: t, Fixture: open(t)})
		})
	}
}

type fixture struct {
	*testing.T
	Fixture
}

func key(id string) session.Key { return session.Key{Tenant: "acme", ID: id} }

func wake(seq int64) journal.Wake { return journal.NewWake(key("s-1"), seq, journal.WakeStep) }

func delayed(delay time.Duration) journal.Wake {
	w := wake(1)
	w.Delay = delay
	return w
}

func (f *fixture) send(wakes ...journal.Wake) {
	f.Helper()
	require.NoError(f, f.Queue.Send(f.Context(), wakes...))
}

// long is a visibility no test outlives, and a wait no test needs all of.
func (f *fixture) long() time.Duration { return 60 * f.Second }

// receive waits for one message and hides it for long.
func (f *fixture) receive() queue.Delivery {
	f.Helper()
	return f.receiveFor(f.long())
}

func (f *fixture) receiveFor(visibility time.Duration) queue.Delivery {
	f.Helper()
	got, err := f.Queue.Receive(f.Context(), queue.ReceiveParams{Wait: f.long(), Visibility: visibility})
	require.NoError(f, err)
	require.Len(f, got, 1)
	return got[0]
}

// empty requires that nothing comes within a wait.
func (f *fixture) empty(q queue.Queue, wait time.Duration) {
	f.Helper()
	got, err := q.Receive(f.Context(), queue.ReceiveParams{Max: 10, Wait: wait, Visibility: f.long()})
	require.NoError(f, err)
	require.Empty(f, got)
}

// receiveAll receives until n different messages came.
func (f *fixture) receiveAll(n int) map[int64]queue.Delivery {
	f.Helper()
	all := map[int64]queue.Delivery{}
	for len(all) < n {
		got, err := f.Queue.Receive(f.Context(), queue.ReceiveParams{Max: 10, Wait: f.long(), Visibility: f.long()})
		require.NoError(f, err)
		require.NotEmpty(f, got)
		require.LessOrEqual(f, len(got), 10)
		for _, d := range got {
			require.NotContains(f, all, d.Wake.Seq)
			all[d.Wake.Seq] = d
		}
	}
	return all
}

var errEnough = errors.New("enough")

var tests = []struct {
	name string
	run  func(f *fixture)
}{
	{"a wake comes back as it was sent", func(f *fixture) {
		sent := journal.NewWake(session.Key{Tenant: "globex", ID: "s_9-Z"}, 12345, journal.WakeResume)
		f.send(sent)
		got := f.receive()
		require.Equal(f, sent, got.Wake)
		require.Equal(f, 1, got.Receives)
		require.NotEmpty(f, got.Receipt)
	}},
	{"sending nothing is no error", func(f *fixture) {
		f.send()
		f.empty(f.Queue, 0)
	}},
	{"several wakes are several messages", func(f *fixture) {
		f.send(wake(1), wake(2), wake(3))
		f.receiveAll(3)
		f.empty(f.Queue, 0)
	}},
	{"the same wake sent twice is two messages", func(f *fixture) {
		f.send(wake(1), wake(1))
		first, second := f.receive(), f.receive()
		require.NotEqual(f, first.Receipt, second.Receipt)
		require.NotEmpty(f, first.Message)
		require.NotEqual(f, journal.ForWake("", first.Named()), journal.ForWake("", second.Named()), "a worker can tell them apart")
	}},
	{"a worker learns that a message was received before", func(f *fixture) {
		f.send(wake(1))
		first := f.receive()
		require.False(f, first.Named().Again)
		first.Receives++
		require.True(f, first.Named().Again)
	}},
	{"the time of sending is known or zero", func(f *fixture) {
		before := time.Now().Add(-f.long())
		f.send(wake(1))
		if at := f.receive().SentAt; !at.IsZero() {
			require.WithinRange(f, at, before, time.Now().Add(f.long()))
		}
	}},
	{"a delayed wake is not received before its delay has passed", func(f *fixture) {
		start := time.Now()
		f.send(delayed(2 * f.Second))
		got := f.receive()
		require.GreaterOrEqual(f, time.Since(start), 2*f.Second)
		require.Zero(f, got.Wake.Delay, "it is no part of the message")
	}},
	{"a delayed wake holds up no other", func(f *fixture) {
		f.send(delayed(f.long()))
		f.send(wake(2))
		require.EqualValues(f, 2, f.receive().Wake.Seq)
	}},
	{"a wake delayed by more than 15 minutes is taken and does not come early", func(f *fixture) {
		f.send(delayed(15*time.Minute+time.Second), wake(2))
		require.EqualValues(f, 2, f.receive().Wake.Seq)
		f.empty(f.Queue, f.Second)
	}},
	{"a wake delayed by centuries does not come early", func(f *fixture) {
		f.send(delayed(math.MaxInt64), wake(2))
		require.EqualValues(f, 2, f.receive().Wake.Seq)
		f.empty(f.Queue, f.Second)
	}},
	{"receive returns at most max messages", func(f *fixture) {
		f.send(wake(1), wake(2), wake(3), wake(4), wake(5))
		got, err := f.Queue.Receive(f.Context(), queue.ReceiveParams{Max: 3, Wait: f.long(), Visibility: f.long()})
		require.NoError(f, err)
		require.NotEmpty(f, got)
		require.LessOrEqual(f, len(got), 3)
	}},
	{"receive returns at most max messages though others go to the dead letters meanwhile", func(f *fixture) {
		f.send(wake(1))
		for range f.MaxReceives {
			require.NoError(f, f.Queue.Postpone(f.Context(), f.receive(), 0))
		}
		f.send(wake(2), wake(3), wake(4), wake(5))
		got, err := f.Queue.Receive(f.Context(), queue.ReceiveParams{Max: 2, Wait: f.long(), Visibility: f.long()})
		require.NoError(f, err)
		require.NotEmpty(f, got)
		require.LessOrEqual(f, len(got), 2)
		for _, d := range got {
			require.NotEqualValues(f, 1, d.Wake.Seq)
		}
		require.NotContains(f, f.receiveAll(4-len(got)), int64(1))
	}},
	{"receive returns one message by default", func(f *fixture) {
		f.send(wake(1), wake(2))
		f.receive()
	}},
	{"receive returns none and no error when there is none", func(f *fixture) {
		f.empty(f.Queue, 0)
		f.empty(f.Queue, f.Second)
	}},
	{"a waiting receive gets what is sent meanwhile", func(f *fixture) {
		got := make(chan []queue.Delivery, 1)
		go func() {
			d, _ := f.Queue.Receive(f.Context(), queue.ReceiveParams{Wait: f.long(), Visibility: f.long()})
			got <- d
		}()
		f.send(wake(1))
		require.Len(f, <-got, 1)
	}},
	{"a waiting receive gets no delayed wake and no more than max", func(f *fixture) {
		for range 10 { // it may not wait yet when they are sent
			got := make(chan []queue.Delivery, 1)
			go func() {
				d, _ := f.Queue.Receive(f.Context(), queue.ReceiveParams{Max: 2, Wait: f.long(), Visibility: f.long()})
				got <- d
			}()
			runtime.Gosched()
			f.send(delayed(2*f.long()), wake(2), wake(3), wake(4), wake(5))
			first := <-got
			require.NotEmpty(f, first)
			require.LessOrEqual(f, len(first), 2)
			for _, d := range first {
				require.NotEqualValues(f, 1, d.Wake.Seq)
			}
			rest := f.receiveAll(4 - len(first))
			require.NotContains(f, rest, int64(1))
		}
	}},
	{"a received message is hidden for its visibility and then visible again", func(f *fixture) {
		f.send(wake(1))
		start := time.Now()
		first := f.receiveFor(2 * f.Second)
		second := f.receive()
		require.GreaterOrEqual(f, time.Since(start), 2*f.Second)
		require.Equal(f, first.Wake, second.Wake)
		require.Equal(f, first.Message, second.Message)
		require.Equal(f, 2, second.Receives)
	}},
	{"each receipt counts", func(f *fixture) {
		f.send(wake(1))
		for i := 1; i < f.MaxReceives; i++ {
			d := f.receive()
			require.Equal(f, i, d.Receives)
			require.NoError(f, f.Queue.Postpone(f.Context(), d, 0))
		}
	}},
	{"a message received too often goes to the dead letters", func(f *fixture) {
		f.send(wake(7))
		for range f.MaxReceives {
			require.NoError(f, f.Queue.Postpone(f.Context(), f.receive(), 0))
		}
		f.send(wake(8))
		require.EqualValues(f, 8, f.receive().Wake.Seq)
		f.empty(f.Queue, f.Second)
		got, err := f.DeadLetters.Receive(f.Context(), queue.ReceiveParams{Wait: f.long(), Visibility: f.long()})
		require.NoError(f, err)
		require.Len(f, got, 1)
		require.Equal(f, wake(7), got[0].Wake)
		require.NoError(f, f.DeadLetters.Acknowledge(f.Context(), got...))
		f.empty(f.DeadLetters, 0)
	}},
	{"no message is in the dead letters before", func(f *fixture) {
		f.send(wake(1))
		for range f.MaxReceives {
			require.NoError(f, f.Queue.Postpone(f.Context(), f.receive(), 0))
		}
		f.empty(f.DeadLetters, 0)
	}},
	{"an acknowledged message is gone for good", func(f *fixture) {
		f.send(wake(1))
		d := f.receiveFor(f.Second)
		require.NoError(f, f.Queue.Acknowledge(f.Context(), d))
		f.empty(f.Queue, 2*f.Second)
	}},
	{"several messages are acknowledged at once and others are not", func(f *fixture) {
		f.send(wake(1), wake(2), wake(3))
		all := map[int64]queue.Delivery{}
		for range 3 {
			d := f.receive()
			all[d.Wake.Seq] = d
		}
		require.Len(f, all, 3)
		require.NoError(f, f.Queue.Acknowledge(f.Context(), all[1], all[3]))
		require.NoError(f, f.Queue.Postpone(f.Context(), all[2], 0))
		require.EqualValues(f, 2, f.receive().Wake.Seq)
		f.empty(f.Queue, 0)
	}},
	{"acknowledging twice or nothing is no error", func(f *fixture) {
		f.send(wake(1))
		d := f.receive()
		require.NoError(f, f.Queue.Acknowledge(f.Context()))
		require.NoError(f, f.Queue.Acknowledge(f.Context(), d))
		require.NoError(f, f.Queue.Acknowledge(f.Context(), d))
	}},
	{"acknowledging what was received again is no error", func(f *fixture) {
		f.send(wake(1))
		first := f.receiveFor(f.Second)
		second := f.receive()
		require.NoError(f, f.Queue.Acknowledge(f.Context(), first))
		require.NoError(f, f.Queue.Acknowledge(f.Context(), second))
		f.empty(f.Queue, 0)
	}},
	{"postponing by nothing makes a message visible at once", func(f *fixture) {
		f.send(wake(1))
		require.NoError(f, f.Queue.Postpone(f.Context(), f.receive(), 0))
		require.Equal(f, 2, f.receive().Receives)
	}},
	{"a waiting receive gets what is postponed by nothing", func(f *fixture) {
		f.send(wake(1))
		d := f.receive()
		got := make(chan []queue.Delivery, 1)
		go func() {
			d, _ := f.Queue.Receive(f.Context(), queue.ReceiveParams{Wait: f.long(), Visibility: f.long()})
			got <- d
		}()
		require.NoError(f, f.Queue.Postpone(f.Context(), d, 0))
		require.Len(f, <-got, 1)
	}},
	{"postponing counts from now and not from the receipt", func(f *fixture) {
		f.send(wake(1))
		d := f.receiveFor(f.long())
		start := time.Now()
		require.NoError(f, f.Queue.Postpone(f.Context(), d, 2*f.Second))
		f.receive()
		require.GreaterOrEqual(f, time.Since(start), 2*f.Second)
	}},
	{"postponing hides a message for longer and it can still be acknowledged", func(f *fixture) {
		f.send(wake(1))
		d := f.receiveFor(8 * f.Second) // long enough for a slow machine to postpone it in time
		require.NoError(f, f.Queue.Postpone(f.Context(), d, f.long()))
		f.empty(f.Queue, 9*f.Second)
		require.NoError(f, f.Queue.Postpone(f.Context(), d, 2*f.Second))
		require.NoError(f, f.Queue.Acknowledge(f.Context(), d))
		f.empty(f.Queue, 3*f.Second)
	}},
	{"two receivers never share a message", func(f *fixture) {
		const messages, receivers = 200, 8
		for i := range messages / 10 {
			var wakes []journal.Wake
			for j := range 10 {
				wakes = append(wakes, wake(int64(i*10+j+1)))
			}
			f.send(wakes...)
		}
		got := make(chan int64, messages)
		errs := make(chan error, receivers)
		for r := range receivers {
			go func() {
				for len(got) < messages {
					ds, err := f.Queue.Receive(f.Context(), queue.ReceiveParams{Max: 1 + r, Wait: f.Second, Visibility: f.long()})
					if err != nil {
						errs <- err
						return
					}
					for _, d := range ds {
						if d.Receives != 1 {
							errs <- fmt.Errorf("message %d was received %d times", d.Wake.Seq, d.Receives)
							return
						}
						select {
						case got <- d.Wake.Seq:
						default:
							errs <- fmt.Errorf("message %d is one more than were sent", d.Wake.Seq)
							return
						}
					}
					if err := f.Queue.Acknowledge(f.Context(), ds...); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		seen := map[int64]bool{}
		for range receivers {
			require.NoError(f, <-errs)
		}
		close(got)
		for seq := range got {
			require.False(f, seen[seq], seq)
			seen[seq] = true
		}
		require.Len(f, seen, messages)
		f.empty(f.Queue, 0)
	}},
	{"messages of several tenants and sessions keep whose they are", func(f *fixture) {
		want := map[session.Key]bool{}
		for _, tenant := range []string{"acme", "globex"} {
			for _, id := range []string{"a", "b"} {
				k := session.Key{Tenant: tenant, ID: id}
				want[k] = true
				f.send(journal.NewWake(k, 1, journal.WakeStep))
			}
		}
		got := map[session.Key]bool{}
		for range 4 {
			got[f.receive().Wake.Key()] = true
		}
		require.Equal(f, want, got)
	}},
	{"params out of range are refused", func(f *fixture) {
		for _, p := range []queue.ReceiveParams{{Max: 65, Visibility: f.Second}, {Max: -1, Visibility: f.Second}, {Max: 1}} {
			_, err := f.Queue.Receive(f.Context(), p)
			require.Error(f, err)
		}
	}},
	{"a receive whose context ends returns its cause", func(f *fixture) {
		ctx, cancel := context.WithCancelCause(f.Context())
		done := make(chan error, 1)
		go func() {
			_, err := f.Queue.Receive(ctx, queue.ReceiveParams{Wait: f.long(), Visibility: f.long()})
			done <- err
		}()
		cancel(errEnough)
		require.ErrorIs(f, <-done, errEnough)
		f.send(wake(1))
		f.receive()
	}},
}
