package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// realTime is a world on the clock of the bubble it is in.
func realTime(t *testing.T, made *effects, agents ...agent.Agent) *world {
	t.Helper()
	w := newWorld(t, made, agents...)
	w.cfg.Now = time.Now
	return w
}

func TestDrive(t *testing.T) {
	t.Parallel()
	lines := script{"go": {fails(busy), calls("line", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}}
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withAgents(t, helper(newEffects(), lines)))
		ctx := context.Background()
		_, err := b.Start(ctx, runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
		require.NoError(t, err)
		b.drive(t)
		require.Equal(t, session.StatusSuspended, b.session(t).Status, "it returns when people are needed")
		b.drive(t)
		_, err = b.Decide(ctx, runtime.DecideParams{Key: b.key, ApproveAll: true, Checkpoint: b.session(t).Checkpoint().String()})
		require.NoError(t, err)
		b.drive(t)
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
		b.drive(t)
	})
	synctest.Test(t, func(t *testing.T) { // what was lost is found while driving
		b := setup(t, withAgents(t, helper(newEffects(), lines)))
		ctx := context.Background()
		_, err := b.Start(ctx, runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("say"), Caller: person})
		require.NoError(t, err)
		deliveries, err := b.queue.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: time.Minute})
		require.NoError(t, err)
		require.NoError(t, b.queue.Acknowledge(ctx, deliveries...))
		b.drive(t)
		require.Equal(t, session.StatusCompleted, b.session(t).Status)
	})
	synctest.Test(t, func(t *testing.T) { // it ends with its context
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {func(ctx context.Context, _ agent.View) (agent.Reply, error) {
			<-ctx.Done()
			return agent.Reply{}, context.Cause(ctx)
		}}})))
		_, err := b.Start(context.Background(), runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Error(t, b.Drive(ctx, b.key, b.queue.Only(b.key)))
		require.Equal(t, session.StatusRunning, b.session(t).Status, "the end of the program is not the model's failure")
		require.Error(t, b.Drive(context.Background(), session.Key{Tenant: "default", ID: "none"}, b.queue.Only(session.Key{Tenant: "default", ID: "none"})))
	})
}

func TestWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, most := 0, 0
		slow := func(context.Context, agent.View) (agent.Reply, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return agent.Reply{Text: "bye"}, nil
		}
		b := setup(t, withAgents(t, helper(newEffects(), script{"go": {slow}})))
		ctx := context.Background()
		var keys []session.Key
		for i := range 10 {
			key := session.Key{Tenant: session.DefaultTenant, ID: fmt.Sprintf("w%d", i)}
			keys = append(keys, key)
			_, err := b.Start(ctx, runtime.StartParams{Key: key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
			require.NoError(t, err)
		}
		// a session whose agent is in no program: an error that does not stop the others
		other := setupOn(t, b, withAgents(t, agent.Agent{Name: "elsewhere", Planner: script{}}))
		_, err := other.Start(ctx, runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant, ID: "w-other"}, Agent: "elsewhere", Input: llm.TextParts("go"), Caller: person})
		require.NoError(t, err)
		working, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		require.ErrorIs(t, b.Work(working, b.queue, runtime.WorkParams{Concurrency: 4, SweepEvery: 10 * time.Second}), context.DeadlineExceeded)
		require.Equal(t, 4, most)
		for _, key := range keys {
			s, err := b.Session(ctx, key)
			require.NoError(t, err)
			require.Equal(t, session.StatusCompleted, s.Status)
		}
	})
	synctest.Test(t, func(t *testing.T) { // idle, with a sweep beside it
		b := setup(t, withAgents(t, helper(newEffects(), script{})))
		began := time.Now()
		require.NoError(t, b.Work(context.Background(), b.queue, runtime.WorkParams{Idle: 3 * time.Second, SweepEvery: time.Second}))
		require.Less(t, time.Since(began), 10*time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		require.NoError(t, b.Work(ctx, b.queue, runtime.WorkParams{}), "being told to stop is no error")
	})
}

// setupOn is another runtime on the data of b.
func setupOn(t *testing.T, b *bundle, change ...func(*runtime.Config)) *bundle {
	t.Helper()
	other := *b
	for _, c := range change {
		c(&other.cfg)
	}
	var err error
	other.Runtime, err = runtime.New(other.cfg)
	require.NoError(t, err)
	return &other
}

func TestWatch_renews_the_lease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		w = realTime(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`)}}, func(context.Context, string) {
			for range 12 {
				time.Sleep(5 * time.Second)
				require.True(t, w.head().Head.Lease.Live(time.Now(), 1, false), "a working step is never without a lease")
			}
		}))
		p := w.process()
		w.start(p, "go")
		require.NoError(t, p.work())
		require.Equal(t, 1, made.count("hook a"))
	})
}

func TestWatch_a_lease_that_is_lost_ends_the_step(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		ended := false
		w = realTime(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`)}}, func(ctx context.Context, _ string) {
			lease := w.head().Head.Lease
			_, err := w.store.Claim(ctx, store.ClaimParams{Key: w.key, Mode: store.ClaimTake, Owner: "thief", Seq: lease.Seq, Now: lease.Until, Until: lease.Until.Add(time.Minute)})
			require.NoError(t, err)
			<-ctx.Done()
			ended = true
		}))
		p := w.process()
		w.start(p, "go")
		d, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
		require.NoError(t, err)
		require.Equal(t, acknowledged, d)
		require.True(t, ended)
		require.Len(t, w.journal(), 1, "its work is thrown away")
	})
}

func TestWatch_a_store_that_does_not_answer_for_a_while(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		w := realTime(t, made, hooked(made, script{"go": {calls("hook", `{"text":"a"}`)}}, func(context.Context, string) { time.Sleep(7 * time.Second) }))
		p := w.process(func(cfg *runtime.Config) { cfg.Store = &deafStore{Store: w.store} })
		w.start(p, "go")
		require.NoError(t, p.work())
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
}

// deafStore never renews a lease.
type deafStore struct{ store.Store }

func (s *deafStore) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if p.Mode == store.ClaimRenew {
		return store.Item{}, errors.New("no answer")
	}
	return s.Store.Claim(ctx, p)
}

// TestDriveAfter has another worker take the message with which a session was told
// to go on. Until that worker has done so the session looks as if it rested; who
// told it stays, and tells it again where the worker died.
func TestDriveAfter(t *testing.T) {
	t.Parallel()
	for name, worker := range map[string]func(b *bundle, ctx context.Context, d queue.Delivery){
		"slow": func(b *bundle, ctx context.Context, d queue.Delivery) {
			time.Sleep(3 * time.Second)
			_, _ = b.Deliver(ctx, d.Wake) // the other one may have been first by then
			_ = b.queue.Acknowledge(ctx, d)
		},
		"dead": func(*bundle, context.Context, queue.Delivery) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, withAgents(t, helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}})))
				ctx := context.Background()
				_, err := b.Start(ctx, runtime.StartParams{Key: b.key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
				require.NoError(t, err)
				b.drive(t)
				waits, err := b.Waits(ctx, b.key)
				require.NoError(t, err)
				yes := true
				_, err = b.Submit(ctx, runtime.SubmitParams{Key: b.key, HoldResume: true, Caller: person, Answer: session.Answer{
					Wait: waits[0].Wait.ID, Kind: session.AnswerApproval, ApprovalID: waits[0].Wait.Nonce, Approved: &yes,
				}})
				require.NoError(t, err)
				b.drive(t)
				require.Equal(t, session.StatusSuspended, b.session(t).Status, "a held answer alone moves nothing")

				resumed, err := b.Resume(ctx, runtime.ResumeParams{Key: b.key, Mode: runtime.ResumeContinue, Caller: person})
				require.NoError(t, err)
				require.Equal(t, b.session(t).Version, resumed.After)
				taken, err := b.queue.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: time.Minute})
				require.NoError(t, err)
				require.Len(t, taken, 1)
				go worker(b, ctx, taken[0])

				began := time.Now()
				require.NoError(t, b.DriveAfter(ctx, b.key, b.queue.Only(b.key), resumed.After))
				require.Equal(t, session.StatusCompleted, b.session(t).Status)
				require.Less(t, time.Since(began), 10*time.Second)
				time.Sleep(time.Minute) // until the slow one is done
			})
		})
	}
}
