package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestDeadLetter_counts_the_claims_of_its_step: that workers died at the step before
// says nothing of this one.
func TestDeadLetter_counts_the_claims_of_its_step(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.MaxClaims = 3 })
	w.start(p, "go")
	for range 2 {
		w.claimAs("dying "+newID(), 2)
		w.clock.advance(time.Minute)
	}
	w.deliver(p, 2, journal.WakeStep)
	w.drain()
	require.EqualValues(t, 2, w.head().Head.Lease.Died)
	w.clock.advance(time.Hour)
	_, err := p.DeadLetter(ctx, w.wake(3, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, session.StatusRunning, w.session().Status)
	w.clock.advance(time.Minute)
	require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain())
}

// TestDeadLetter_sends_nothing_for_what_is_over_or_waits, not later either.
func TestDeadLetter_sends_nothing_for_what_is_over_or_waits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		status string
		seq    int64
		kind   journal.WakeKind
	}{
		"k <= n": {"running", 1, journal.WakeStep}, "something is open": {"approve", 3, journal.WakeResume}, "ended": {"completed", 3, journal.WakeStep},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := in(t, c.status)
			w.drain()
			_, err := p.DeadLetter(ctx, w.wake(c.seq, c.kind))
			require.NoError(t, err)
			w.clock.advance(time.Minute)
			require.Empty(t, w.drain())
		})
	}
}

// TestSweep_beside_a_long_lease: a tool that may run again has a lease as long as its
// timeout. While it stands nobody sends; once an entry has closed it, it hides nothing.
func TestSweep_beside_a_long_lease(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	var other *process
	long := tool.Define(tool.Spec[textIn]{Name: "long", OnUnknown: session.UnknownRetry, Timeout: 2 * time.Hour}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		made.add("long")
		for range 5 {
			w.clock.advance(20 * time.Minute)
			swept, err := other.Sweep(ctx)
			if err != nil || swept != (runtime.SweepResult{}) {
				made.add(fmt.Sprint("swept ", swept, err)) // not to be failed from here
			}
		}
		return "did", nil
	})
	w = newWorld(t, made, helper(made, script{"go": {calls("long", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
		a.Limits.ActiveMillis, a.Tools = (24 * time.Hour).Milliseconds(), append(a.Tools, long)
	}))
	other = w.process()
	p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = 24 * time.Hour })
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
	require.Equal(t, map[string]int{"long": 1}, made.all(), "nobody sends while somebody is at it")
	require.Greater(t, w.head().Head.Lease.Until.Sub(w.clock.Now()), 10*time.Minute, "it was to last longer")
	w.drain() // what follows is lost
	w.clock.advance(2 * time.Minute)
	require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, other))
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, made.count("long"))
}

// TestSweep_of_a_retry_with_a_signal: what stops the task does not wait for the retry;
// what was meant for an earlier task does not hasten it.
func TestSweep_of_a_retry_with_a_signal(t *testing.T) {
	t.Parallel()
	for name, earlier := range map[string]bool{"of this task": false, "of an earlier task": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: 2 * time.Hour}), says("bye")}}))
			p := w.process()
			w.run(p, "go")
			require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
			w.clock.advance(time.Minute)
			w.signal(journal.SignalCancel)
			head := w.head()
			head.Head.Due = new(time.Time)
			*head.Head.Due = w.clock.Now() // as whoever signals has it looked at
			if earlier {
				head.Head.Signal.Task--
			}
			w.update(head)
			if earlier {
				require.Zero(t, sweepOf(t, p))
				require.Empty(t, w.drain())
				return
			}
			require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, p))
			require.NoError(t, p.work())
			require.Equal(t, session.StatusCancelled, w.session().Status)
		})
	}
}

// TestSweep_that_dies_once_a_wait_has_expired: the next one drives on.
func TestSweep_that_dies_once_a_wait_has_expired(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	w.clock.advance(2 * time.Hour)
	f := &fuse{at: 1, after: true}
	_, err := w.fusedProcess(f, true, 1).Sweep(context.Background())
	require.Error(t, err)
	require.Equal(t, session.WaitExpired, w.waits()[0].State)
	require.Empty(t, w.drain())
	w.clock.advance(time.Minute)
	require.Equal(t, runtime.SweepResult{Resumed: 1}, sweepOf(t, p))
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// TestResume_that_loses_a_race_gives_its_lease_back: a wait changed under it, and the
// message is decided on afresh at once.
func TestResume_that_loses_a_race_gives_its_lease_back(t *testing.T) {
	t.Parallel()
	w, _ := in(t, "answered")
	s := &storeHook{Store: w.store, when: anyCommit}
	s.happens = func() {
		item := w.items(store.KindWait)[0]
		item.Wait.Due = nil // as a sweep writes it
		w.update(item)
	}
	p := w.process(func(cfg *runtime.Config) { cfg.Store = s })
	require.Less(t, w.deliver(p, 3, journal.WakeResume).Keep, time.Second)
	require.Empty(t, w.head().Head.Lease.Owner)
	require.Equal(t, session.StatusSuspended, w.session().Status)
	require.Equal(t, acknowledged, w.deliver(w.process(), 3, journal.WakeResume))
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// A dead letter whose step another worker has just claimed is kept until that lease ends, however
// often it was received: what spares a queue's receives would hold up what ends the session.
func TestDeadLetter_is_kept_for_the_lease_alone(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("bye")}}))
	hook := &storeHook{}
	p := w.process(func(cfg *runtime.Config) { cfg.MaxClaims = 1; hook.Store = cfg.Store; cfg.Store = hook })
	w.start(p, "go")
	w.claimAs("dying", 2)
	w.clock.advance(time.Minute)
	hook.when = func(c storeCall) bool { return c.claim != "" }
	hook.happens = func() { w.claimAs("quick", 2) }
	d, err := p.DeadLetter(t.Context(), w.wake(2, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, 20*time.Second, d.Keep)
	require.Equal(t, 20*time.Second, d.KeepAfter(10))
}
