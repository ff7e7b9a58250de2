package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// lastRenewal ends a process with the first renewal of its lease: nothing that it
// writes afterwards arrives.
type lastRenewal struct {
	store.Store
	dead  bool
	lease journal.Lease
}

func (s *lastRenewal) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if s.dead {
		return store.Item{}, errDied
	}
	item, err := s.Store.Claim(ctx, p)
	if err == nil && p.Mode == store.ClaimRenew {
		s.dead, s.lease = true, item.Head.Lease
	}
	return item, err
}

func (s *lastRenewal) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if s.dead {
		return nil, errDied
	}
	return s.Store.Update(ctx, key, items...)
}

func (s *lastRenewal) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if s.dead {
		return store.Committed{}, errDied
	}
	return s.Store.Commit(ctx, p)
}

// TestRenewal_after_the_clock_was_ahead: a worker claims while its clock is far
// ahead, the clock is set right, it renews for a tool and dies in it. The renewal
// asks for what the tool needs from now, so somebody else goes on when that is over.
func TestRenewal_after_the_clock_was_ahead(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ten minutes": 10 * time.Minute, "a day": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("retry", `{"text":"1"}`), says("bye")}})).withMarksApart()
			dies := &lastRenewal{Store: w.store}
			first := w.process(func(cfg *runtime.Config) {
				cfg.Now = func() time.Time { return w.clock.Now().Add(ahead) }
				cfg.WatchEvery = time.Hour
				cfg.Store = &storeHook{Store: dies, when: updateOf(store.KindTool), happens: func() { ahead = 0 }} // the clock is set right
			})
			w.start(first, "go")
			_, err := first.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.ErrorIs(t, err, errDied)
			require.Equal(t, 1, made.count("retry 1"))
			require.Equal(t, dies.lease.For, dies.lease.Until.Sub(w.clock.Now()), "it lasts as long as was asked for now")
			require.Less(t, dies.lease.For, 10*time.Minute)
			other := w.process()
			lapses := dies.lease.Until.Add(2 * time.Minute)
			for w.clock.Now().Before(lapses) && !w.session().Status.Ended() {
				w.clock.advance(time.Minute)
				sweepOf(t, other)
				require.NoError(t, other.work())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status)
			require.Equal(t, 2, made.count("retry 1"))
			w.checkAtRest()
		})
	}
}

// lateRenewal holds up the first renewal that a watcher asks for, and none that
// it asks for later arrives.
type lateRenewal struct {
	store.Store
	lasts                time.Duration // what the watcher asks for
	asked                atomic.Bool
	held, goOn, answered chan struct{}
}

func (s *lateRenewal) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	switch {
	case p.Mode != store.ClaimRenew || p.Until.Sub(p.Now) != s.lasts:
		return s.Store.Claim(ctx, p)
	case s.asked.CompareAndSwap(false, true):
		close(s.held)
		<-s.goOn
		defer close(s.answered)
		return s.Store.Claim(context.WithoutCancel(ctx), p)
	}
	<-ctx.Done()
	return store.Item{}, ctx.Err()
}

// TestRenewal_that_arrives_late: the watcher has asked for a short lease when a tool
// that takes a minute asks for one that outlives it, and the watcher's request
// arrives last. Nobody else may be in the tool while it runs, for its lease lasts as
// long as the tool asked for.
func TestRenewal_that_arrives_late(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	s := &lateRenewal{held: make(chan struct{}), goOn: make(chan struct{}), answered: make(chan struct{})}
	var inside, most, runs atomic.Int32
	slow := tool.Define(tool.Spec[textIn]{Name: "slow", OnUnknown: session.UnknownRetry, Timeout: time.Minute}, func(context.Context, *tool.Call, textIn) (string, error) {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		if runs.Add(1) > 1 {
			return "second", nil
		}
		close(s.goOn)
		<-s.answered
		w.clock.advance(30 * time.Second) // the worker is stopped inside the tool
		other := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
		w.deliver(other, w.session().Next(), journal.WakeStep)
		return "first", nil
	})
	w = newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, slow)
	})).withMarksApart()
	p := w.process(func(cfg *runtime.Config) {
		cfg.Lease, cfg.RenewEvery, cfg.WatchEvery = 20*time.Second, 5*time.Second, time.Millisecond
		s.lasts = cfg.Lease
		s.Store = &storeHook{Store: w.store, when: updateOf(store.KindTool), happens: func() {
			w.clock.advance(6 * time.Second) // it is time to renew
			<-s.held
		}}
		cfg.Store = s
	})
	w.start(p, "go")
	_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
	require.NoError(t, err)
	require.EqualValues(t, 1, most.Load(), "two workers were in the tool at once")
	require.NoError(t, w.process().settle())
	require.EqualValues(t, 1, runs.Load())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}
