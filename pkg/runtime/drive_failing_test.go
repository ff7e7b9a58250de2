package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// muteQueue does not answer some of its calls.
type muteQueue struct {
	queue.Queue
	muteReceive, muteAcknowledge, mute bool
	atRest                             bool // muteReceive is of who does not wait: a driver whose session rests
}

func silence(call string) error { return fmt.Errorf("%s: %w", call, queue.ErrUnavailable) }

func (q *muteQueue) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	if q.muteReceive && (!q.atRest || p.Wait == 0) {
		return nil, silence("receive")
	}
	return q.Queue.Receive(ctx, p)
}

func (q *muteQueue) Acknowledge(ctx context.Context, deliveries ...queue.Delivery) error {
	if q.muteAcknowledge {
		return silence("acknowledge")
	}
	return q.Queue.Acknowledge(ctx, deliveries...)
}

func (q *muteQueue) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	if q.mute {
		return silence("postpone")
	}
	return q.Queue.Postpone(ctx, d, delay)
}

// startGo starts session s1 without driving it.
func startGo(t *testing.T, b *bundle) {
	t.Helper()
	_, err := b.Start(t.Context(), runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
	require.NoError(t, err)
}

// Who drives a session, or works on all, is told with a code when the queue does not
// answer, at whatever call.
func TestDrive_a_queue_that_does_not_answer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		queue muteQueue
		// elsewhere: the program has not the agent, so that the delivery fails too.
		elsewhere bool
		want      runtime.Code
	}{
		"receive":                {queue: muteQueue{muteReceive: true}, want: runtime.CodeStoreUnavailable},
		"receive, when it rests": {queue: muteQueue{muteReceive: true, atRest: true}, want: runtime.CodeStoreUnavailable},
		"acknowledge":            {queue: muteQueue{muteAcknowledge: true}, want: runtime.CodeStoreUnavailable},
		"postpone":               {queue: muteQueue{mute: true}, elsewhere: true, want: runtime.CodeUnknownAgent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
				startGo(t, b)
				q := test.queue
				q.Queue = b.queue.Only(b.key)
				driver := b
				if test.elsewhere {
					driver = setupOn(t, b, withAgents(t, agent.Agent{Name: "elsewhere", Planner: script{}}))
				}
				err := driver.Drive(t.Context(), b.key, &q)
				require.Equal(t, test.want, codeOf(err))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		err := b.Work(t.Context(), &muteQueue{Queue: b.queue, muteReceive: true}, runtime.WorkParams{})
		require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
	})
}

// A driver whose session another worker has ends with its context.
func TestDrive_ends_while_it_waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
		startGo(t, b)
		taken, err := b.queue.Receive(t.Context(), queue.ReceiveParams{Max: 1, Visibility: time.Hour})
		require.NoError(t, err)
		require.Len(t, taken, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.Drive(ctx, b.key, b.queue.Only(b.key)), context.DeadlineExceeded)
		require.Equal(t, session.StatusRunning, b.session(t).Status)
	})
}

// blindStore finds nothing: it does not answer.
type blindStore struct{ store.Store }

func (blindStore) Find(context.Context, store.FindParams) (store.Page, error) {
	return store.Page{}, fmt.Errorf("find: %w", store.ErrUnavailable)
}

// Neither a sweep that fails nor dead letters that cannot be received end the work beside them.
func TestWork_goes_on_where_the_sweep_fails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})), func(cfg *runtime.Config) {
			cfg.Store = blindStore{cfg.Store}
			cfg.DeadLetters = &muteQueue{Queue: cfg.DeadLetters, muteReceive: true}
		})
		startGo(t, b)
		require.NoError(t, b.Work(t.Context(), b.queue, runtime.WorkParams{Idle: 3 * time.Second, SweepEvery: time.Second}))
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
		_, err := b.Sweep(t.Context())
		require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err))
		require.ErrorIs(t, err, store.ErrUnavailable)
	})
}
