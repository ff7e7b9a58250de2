package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// deaf is a queue that does not answer the next sends.
type deaf struct {
	queue.Queue
	next  int
	asked int
}

func (q *deaf) Send(ctx context.Context, wakes ...journal.Wake) error {
	q.asked++
	if q.asked > q.next {
		return q.Queue.Send(ctx, wakes...)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// counted counts what is committed.
func counted(s store.Store, commits *int) store.Store {
	return &hook{Store: s, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
		*commits++
		return s.Commit(ctx, p)
	}}
}

// The entry stands when the queue does not answer: it is not committed again, and
// what is told is that the queue is unavailable. The message that comes again sends.
func TestDeliver_a_queue_that_does_not_answer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deaf int
		told bool
	}{"once: it is sent once more": {1, false}, "at all": {100, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
				w.start(w.process(), "go")
				q, commits := &deaf{Queue: w.queue, next: c.deaf}, 0
				p := w.process(func(cfg *runtime.Config) {
					cfg.Store = counted(&fusedStore{Store: w.store, fuse: &fuse{}, detached: true}, &commits)
					cfg.Queue, cfg.CommitTimeout = q, 10*time.Second
				})
				_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
				if c.told {
					require.ErrorIs(t, err, queue.ErrUnavailable)
					require.NotErrorIs(t, err, store.ErrUnavailable, "the store did answer")
					require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, 2, q.asked)
				require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
				require.Equal(t, 2, commits, "each entry once")

				q.next = 0
				require.NoError(t, p.settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
				require.Equal(t, 1, made.count("line 1"))
				w.checkAtRest()
			})
		})
	}
}

// heldQueue is a queue whose file another process holds for the first receipts.
type heldQueue struct {
	queue.Queue
	held  int
	asked int
}

func (q *heldQueue) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	q.asked++
	if q.asked <= q.held {
		return nil, fmt.Errorf("receive: %w", store.ErrLocked)
	}
	return q.Queue.Receive(ctx, p)
}

// A worker that stays goes on when the process that held the file does; one that
// works until there is nothing left says who is in its way.
func TestWork_while_the_store_is_held(t *testing.T) {
	t.Parallel()
	for name, idle := range map[string]time.Duration{"stays": 0, "until idle": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
				p := w.process()
				w.start(p, "go")
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				worked := make(chan error, 1)
				go func() { worked <- p.Work(ctx, &heldQueue{Queue: w.queue, held: 3}, runtime.WorkParams{Idle: idle}) }()
				if idle > 0 {
					require.ErrorIs(t, <-worked, store.ErrLocked)
					return
				}
				require.Eventually(t, func() bool { return w.session().Status.Ended() }, time.Minute, time.Second)
				require.Equal(t, 1, made.count("line 1"))
				stop()
				require.NoError(t, <-worked)
			})
		})
	}
}
