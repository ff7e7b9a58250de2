package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// startAs starts a session without driving it.
func startAs(t *testing.T, b *bundle, id, input string) session.Key {
	t.Helper()
	key := session.Key{Tenant: session.DefaultTenant, ID: id}
	_, err := b.Start(t.Context(), runtime.StartParams{Key: key, Agent: "a", Input: llm.TextParts(input), Caller: person})
	require.NoError(t, err)
	return key
}

// takes is a reply that takes a time.
func takes(d time.Duration, while *atomic.Int64) turn {
	return func(context.Context, agent.View) (agent.Reply, error) {
		while.Add(1)
		defer while.Add(-1)
		time.Sleep(d)
		return agent.Reply{Text: "bye"}, nil
	}
}

// Work that ends when it is idle is so for the whole of that time: a message that comes within it
// begins it anew, and so does the end of a step.
func TestWork_is_idle_for_the_whole_time(t *testing.T) {
	t.Parallel()
	work := func(t *testing.T, b *bundle) time.Duration {
		began := time.Now()
		require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: 10 * time.Second}))
		return time.Since(began)
	}
	t.Run("messages", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
			for i, after := range []time.Duration{9 * time.Second, 15 * time.Second} {
				time.AfterFunc(after, func() { startAs(t, b, fmt.Sprintf("i%d", i), "go") })
			}
			require.Equal(t, 30*time.Second, work(t, b))
		})
	})
	t.Run("a long step", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, withAgents(t, helper(newEffects(), script{"go": {takes(19*time.Second, new(atomic.Int64))}})))
			startAs(t, b, "s1", "go")
			require.Equal(t, 30*time.Second, work(t, b))
			require.Equal(t, session.StatusCompleted, b.session(t).Status)
		})
	})
}

// It is not asked whether the work is done while some is under way.
func TestWork_is_not_done_while_it_works(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int64
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {takes(time.Second, &under)}, "say": {says("bye")}})))
		keys := []session.Key{startAs(t, b, "long", "go"), startAs(t, b, "short", "say")}
		asked := 0
		require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Done: func(context.Context) (bool, error) {
			asked++
			require.Zero(t, under.Load())
			return true, nil
		}}))
		require.Equal(t, 1, asked)
		for _, key := range keys {
			s, err := b.Session(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, session.StatusCompleted, s.Status)
		}
	})
}

// More may be worked on at once than one Receive returns.
func TestWork_on_more_than_a_queue_gives_at_once(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under atomic.Int64
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {takes(time.Second, &under)}})))
		for i := range 100 {
			startAs(t, b, fmt.Sprintf("m%d", i), "go")
		}
		var most int64
		time.AfterFunc(500*time.Millisecond, func() { most = under.Load() })
		require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Concurrency: 100, Idle: 10 * time.Second}))
		require.EqualValues(t, 100, most)
	})
}

// A session of another program is logged once, however often its message comes.
func TestWork_logs_a_session_of_another_program_once(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{})))
		startGo(t, b)
		var log bytes.Buffer
		other := setupOn(t, b, withAgents(t, agent.Agent{Name: "elsewhere", Planner: script{}}), func(cfg *runtime.Config) {
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		require.ErrorIs(t, other.Work(ctx, b.queue, runtime.WorkParams{}), context.DeadlineExceeded)
		require.Equal(t, 1, strings.Count(log.String(), "msg=step"), log.String())
	})
}

// What is on the queue goes before the first sweep.
func TestWork_sweeps_after_a_moment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var sweeps []time.Duration
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})), func(cfg *runtime.Config) {
			next := cfg.Store
			cfg.Store = &hook{Store: next, find: func(ctx context.Context, p store.FindParams) (store.Page, error) {
				if since := time.Since(began); len(sweeps) == 0 || sweeps[len(sweeps)-1] != since {
					sweeps = append(sweeps, since)
				}
				return next.Find(ctx, p)
			}}
		})
		require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: 3 * time.Second, SweepEvery: time.Second}))
		require.Equal(t, []time.Duration{20 * time.Millisecond, time.Second, 2 * time.Second}, sweeps[:3])
	})
}

// Dead letters are worked on beside the work, as the sweep is.
func TestWork_handles_dead_letters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
		b.start(t, "a", "go")
		require.NoError(t, b.dead.Send(t.Context(), journal.NewWake(b.key, 2, journal.WakeStep)))
		require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: 3 * time.Second, SweepEvery: time.Second}))
		time.Sleep(time.Hour) // what was received and kept would be visible
		left, err := b.dead.Receive(t.Context(), queue.ReceiveParams{Max: 10, Visibility: time.Minute})
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// A message that the receiver has, and has not handed over when the work might end, is worked on.
func TestWork_is_not_done_while_a_message_is_on_its_way(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
		startAs(t, b, "s1", "go")
		q := &slowQueue{Queue: b.queue}
		require.NoError(t, b.Work(t.Context(), q, runtime.WorkParams{Done: func(context.Context) (bool, error) { return true, nil }}))
		require.True(t, q.held)
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
	})
}

// slowQueue hands the first messages that are waited for over a second late, or when nobody waits any more.
type slowQueue struct {
	queue.Queue
	held bool
}

func (q *slowQueue) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	deliveries, err := q.Queue.Receive(ctx, p)
	if p.Wait > 0 && len(deliveries) > 0 && !q.held {
		q.held = true
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return deliveries, err
}
