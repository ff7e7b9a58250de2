package sqlite

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
)

// setClock is set by hand, back as well.
type setClock struct{ at atomic.Int64 }

func (c *setClock) now() time.Time           { return time.Unix(0, c.at.Load()) }
func (c *setClock) set(at time.Time)         { c.at.Store(at.UnixNano()) }
func (c *setClock) advance(by time.Duration) { c.at.Add(int64(by)) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func clockedQueue(t *testing.T, path string) (*Queue, *setClock) {
	t.Helper()
	c := &setClock{}
	c.set(noon)
	return openConfig(t, Config{Path: path, Now: c.now}).Queue(), c
}

func receiveOne(t *testing.T, q *Queue) []queue.Delivery {
	t.Helper()
	got, err := q.Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute})
	require.NoError(t, err)
	return got
}

// TestQueue_clocks: what a clock far ahead sent, received or postponed is visible at
// once to one that is right, and so is what a right clock wrote to one set back.
func TestQueue_clocks(t *testing.T) {
	t.Parallel()
	const bound = journal.MaxAhead + journal.Skew
	wake := journal.NewWake(session.Key{Tenant: "acme", ID: "s"}, 2, journal.WakeStep)
	for name, do := range map[string]func(t *testing.T, q *Queue){
		"sent":     func(*testing.T, *Queue) {},
		"received": func(t *testing.T, q *Queue) { require.Len(t, receiveOne(t, q), 1) },
		"postponed": func(t *testing.T, q *Queue) {
			require.NoError(t, q.Postpone(t.Context(), receiveOne(t, q)[0], 24*time.Hour))
		},
	} {
		for _, by := range []time.Duration{bound + time.Second, time.Hour, 1000 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%s/%v ahead", name, by), func(t *testing.T) {
				t.Parallel()
				path := file(t)
				right, _ := clockedQueue(t, path)
				ahead, c := clockedQueue(t, path)
				c.advance(by)
				require.NoError(t, ahead.Send(t.Context(), wake))
				do(t, ahead)
				require.Len(t, receiveOne(t, right), 1)
			})
			t.Run(fmt.Sprintf("%s/set back by %v", name, by), func(t *testing.T) {
				t.Parallel()
				q, c := clockedQueue(t, datafile.Memory)
				require.NoError(t, q.Send(t.Context(), wake))
				do(t, q)
				c.advance(-by)
				require.Len(t, receiveOne(t, q), 1)
			})
		}
	}
	t.Run("one that waits is woken", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		right, _ := clockedQueue(t, path)
		ahead, c := clockedQueue(t, path)
		c.advance(time.Hour)
		got := make(chan int, 1)
		go func() {
			deliveries, _ := right.Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute, Wait: time.Minute})
			got <- len(deliveries)
		}()
		require.NoError(t, ahead.Send(t.Context(), wake))
		require.Equal(t, 1, <-got)
	})
	t.Run("what was sent without a delay is visible whatever the clocks say", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		right, _ := clockedQueue(t, path)
		ahead, c := clockedQueue(t, path)
		c.advance(5 * time.Minute)
		delayed := wake
		delayed.Seq, delayed.Delay = 3, time.Second
		require.NoError(t, ahead.Send(t.Context(), delayed, wake))
		got := receiveOne(t, right)
		require.Len(t, got, 1)
		require.Equal(t, wake, got[0].Wake)
		require.Empty(t, receiveOne(t, right), "a delay lies ahead rightly, as far as can be told")
	})
	t.Run("and so is the next one in the same moment", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		right, _ := clockedQueue(t, path)
		ahead, c := clockedQueue(t, path)
		c.advance(time.Hour)
		for range 3 {
			require.NoError(t, ahead.Send(t.Context(), wake))
			require.Len(t, receiveOne(t, right), 1)
		}
	})
	t.Run("one among many that are visible is found too", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		right, c := clockedQueue(t, path)
		ahead, fast := clockedQueue(t, path)
		fast.advance(time.Hour)
		require.NoError(t, ahead.Send(t.Context(), wake))
		other := wake
		other.Seq = 3
		for range 5 {
			require.NoError(t, right.Send(t.Context(), other))
			c.advance(2 * time.Second)
			for _, d := range receiveOne(t, right) {
				if d.Wake == wake {
					return
				}
			}
		}
		require.Fail(t, "never received")
	})
	t.Run("a clock that is set back a little is waited for", func(t *testing.T) {
		t.Parallel()
		q, c := clockedQueue(t, datafile.Memory)
		delayed := wake
		delayed.Delay = time.Second
		require.NoError(t, q.Send(t.Context(), delayed))
		c.advance(-journal.MaxAhead)
		require.Empty(t, receiveOne(t, q))
		c.advance(journal.MaxAhead + time.Second)
		require.Len(t, receiveOne(t, q), 1)
	})
	t.Run("what is received for longer than may be is hidden for as long as may be", func(t *testing.T) {
		t.Parallel()
		q, c := clockedQueue(t, datafile.Memory)
		require.NoError(t, q.Send(t.Context(), wake))
		got, err := q.Receive(t.Context(), queue.ReceiveParams{Visibility: 24 * time.Hour})
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Empty(t, receiveOne(t, q), "it does not count as put off by a wrong clock")
		c.advance(journal.MaxAhead - 1)
		require.Empty(t, receiveOne(t, q))
		c.advance(1)
		require.Len(t, receiveOne(t, q), 1)
	})
	t.Run("what is hidden for as long as may be stays hidden", func(t *testing.T) {
		t.Parallel()
		q, c := clockedQueue(t, datafile.Memory)
		delayed := wake
		delayed.Delay = journal.MaxAhead
		require.NoError(t, q.Send(t.Context(), delayed))
		require.Empty(t, receiveOne(t, q))
		c.advance(journal.MaxAhead)
		d := receiveOne(t, q)
		require.Len(t, d, 1)
		require.NoError(t, q.Postpone(t.Context(), d[0], 24*time.Hour))
		require.Empty(t, receiveOne(t, q))
		c.advance(journal.MaxAhead)
		require.Len(t, receiveOne(t, q), 1, "more than 15 minutes are taken for 15")
	})
}
