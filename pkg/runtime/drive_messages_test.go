package runtime_test

import (
	"context"
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

// What a driver does with each message that it received.

// seenQueue tells what is asked of a queue.
type seenQueue struct {
	queue.Queue
	receives  func(queue.ReceiveParams)
	postponed []time.Duration
	deaf      bool // what is sent is lost
}

func (q *seenQueue) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	if q.receives != nil {
		q.receives(p)
	}
	return q.Queue.Receive(ctx, p)
}

func (q *seenQueue) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	q.postponed = append(q.postponed, delay)
	return q.Queue.Postpone(ctx, d, delay)
}

func (q *seenQueue) Send(ctx context.Context, wakes ...journal.Wake) error {
	if q.deaf {
		return nil
	}
	return q.Queue.Send(ctx, wakes...)
}

// received returns how many messages of s1 are visible.
func (b *bundle) received(t *testing.T) int {
	t.Helper()
	got, err := b.queue.Receive(t.Context(), queue.ReceiveParams{Max: 10, Visibility: time.Hour})
	require.NoError(t, err)
	return len(got)
}

// approve answers the one approval that session s1 waits for.
func (b *bundle) approve(t *testing.T) {
	t.Helper()
	waits, err := b.Waits(t.Context(), b.key)
	require.NoError(t, err)
	yes := true
	_, err = b.Submit(t.Context(), runtime.SubmitParams{Key: b.key, Caller: person, Answer: session.Answer{
		Wait: waits[0].Wait.ID, Kind: session.AnswerApproval, ApprovalID: waits[0].Wait.Nonce, Approved: &yes,
	}})
	require.NoError(t, err)
}

// A message that a worker has received and does not begin, because it stops, is there for another
// one at once.
func TestWork_hands_back_what_it_does_not_begin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ agent.View) (agent.Reply, error) {
			<-ctx.Done()
			return agent.Reply{}, context.Cause(ctx)
		}
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {slow}})))
		for _, id := range []string{"s1", "s2"} {
			_, err := b.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant, ID: id}, Agent: "a", Input: llm.TextParts("go"), Caller: person})
			require.NoError(t, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Work(ctx, b.queue, runtime.WorkParams{Concurrency: 1}) }()
		synctest.Wait()
		require.Zero(t, b.received(t), "it has both")
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, 1, b.received(t), "the other failed, and comes a second later")
		time.Sleep(time.Second)
		require.Equal(t, 1, b.received(t))
	})
}

// A session rests, and is resumed just before its driver looks for a message the last time.
func TestDrive_looks_for_a_message_before_it_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}})))
		b.start(t, "a", "go")
		require.Equal(t, session.StatusSuspended, b.session(t).Status)
		last := 0
		q := &seenQueue{Queue: b.queue.Only(b.key)}
		q.receives = func(p queue.ReceiveParams) {
			if p.Wait == 0 {
				if last++; last == 1 {
					b.approve(t)
				}
			}
		}
		require.NoError(t, b.Drive(t.Context(), b.key, q))
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
		require.Equal(t, 2, last)
	})
}

// Every wait has its answer, and whoever gave the last one died before he sent for the session: it
// does not rest, and its driver sends.
func TestDrive_of_a_session_that_nobody_resumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}})))
		b.start(t, "a", "go")
		setupOn(t, b, func(cfg *runtime.Config) { cfg.Queue = &seenQueue{Queue: cfg.Queue, deaf: true} }).approve(t)
		require.Zero(t, b.received(t))
		b.drive(t)
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
	})
}

// A message whose delivery failed comes again a second later, not when its visibility ends.
func TestDrive_puts_off_what_failed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})))
		startGo(t, b)
		other := setupOn(t, b, withAgents(t, agent.Agent{Name: "elsewhere", Planner: script{}}))
		require.Equal(t, runtime.CodeUnknownAgent, codeOf(other.Drive(t.Context(), b.key, b.queue.Only(b.key))))
		require.Zero(t, b.received(t))
		time.Sleep(time.Second)
		require.Equal(t, 1, b.received(t))
	})
}

// A message that comes back while another worker has the session waits longer each time: a queue
// allows it few receives.
func TestWork_waits_longer_each_time(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {says("bye")}})), func(cfg *runtime.Config) { cfg.Lease = 20 * time.Second })
		startGo(t, b)
		p := store.ClaimParams{Key: b.key, Mode: store.ClaimTake, Owner: "another", Seq: 2}
		holds := func() {
			p.Now, p.Until = time.Now(), time.Now().Add(20*time.Second)
			_, err := b.store.Claim(t.Context(), p)
			require.NoError(t, err)
			p.Mode = store.ClaimRenew
		}
		holds()
		q := &seenQueue{Queue: b.queue}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Work(ctx, q, runtime.WorkParams{}) }()
		for range 30 {
			time.Sleep(5 * time.Second)
			holds()
		}
		stop()
		require.NoError(t, <-ended)
		require.GreaterOrEqual(t, len(q.postponed), 4)
		require.Equal(t, []time.Duration{20 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second}, q.postponed[:4])
	})
}
