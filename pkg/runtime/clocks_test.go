package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestClocks_crash_everywhere kills a process whose clock is ahead, or behind, before
// and after each of its writes. Another one, whose clock differs by hours or by
// minutes, brings the session to the end it would have had.
func TestClocks_crash_everywhere(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		if !slices.Contains([]string{"idempotent and parallel", "approval", "question and once", "delayed model", "next turn"}, sc.name) {
			continue // what they would show, these do
		}
		for _, off := range [][2]time.Duration{{3 * time.Hour, -2 * time.Hour}, {-8 * time.Minute, 5 * time.Minute}} {
			t.Run(fmt.Sprintf("%s/%v then %v", sc.name, off[0], off[1]), func(t *testing.T) {
				t.Parallel()
				crashEverywhere(t, sc, off[0] < 0, 3, off[0], off[1])
			})
		}
	}
}

// TestClocks_after_one_was_ahead: whatever a process wrote by a clock that was far
// ahead, and whatever a right clock wrote that then was set back, the session is
// found within the longest time that may rightly lie ahead. One subtest for each
// time that is read.
func TestClocks_after_one_was_ahead(t *testing.T) {
	t.Parallel()
	const bound = journal.MaxAhead + journal.Skew
	run := func(name string, lines script, f func(t *testing.T, w *world, ahead, right *process)) {
		for _, by := range []time.Duration{20 * time.Minute, time.Hour, 400 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%s/%v", name, by), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, lines))
				f(t, w, w.process(off(w, by)), w.process())
			})
		}
	}
	ends := func(t *testing.T, w *world, right *process) {
		t.Helper()
		began := w.clock.Now()
		for !w.session().Status.Ended() {
			require.Less(t, w.clock.Now().Sub(began), bound+5*time.Minute)
			w.clock.advance(time.Minute)
			sweepOf(t, right)
			require.NoError(t, right.work())
		}
		w.checkAtRest()
	}
	bye := script{"go": {says("bye")}}
	run("due of a running session", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.start(ahead, "go")
		w.drain()
		require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, right))
		require.Zero(t, sweepOf(t, right), "and is stamped by a right clock now")
		ends(t, w, right)
	})
	run("due of a running session that is cancelled soon", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.rules = cancelledAfter(20 * time.Second)
		w.start(ahead, "go")
		w.drain()
		require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, right))
		ends(t, w, right)
	})
	run("due of the sweep's own stamp", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.start(right, "go")
		w.clock.advance(time.Hour)
		sweepOf(t, ahead)
		w.drain()
		require.Equal(t, runtime.SweepResult{Resent: 1}, sweepOf(t, right))
		ends(t, w, right)
	})
	run("lease", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.start(right, "go")
		claimed := w.claimFor(ahead, "dead", 2, 20*time.Second)
		require.Equal(t, 20*time.Second, claimed.For)
		require.Equal(t, acknowledged, w.deliver(right, 2, journal.WakeStep))
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
	run("lease of a tool of fifteen minutes", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.start(right, "go")
		w.claimFor(ahead, "dead", 2, 15*time.Minute+25*time.Second)
		w.clock.advance(37 * time.Minute)
		require.Zero(t, w.deliver(right, 2, journal.WakeStep).Keep)
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
	run("lease, by the dead letters' consumer", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.start(right, "go")
		w.drain()
		w.claimFor(ahead, "dead", 2, 20*time.Second)
		d, err := right.DeadLetter(t.Context(), w.wake(2, journal.WakeStep))
		require.NoError(t, err)
		require.Zero(t, d.Keep)
		w.clock.advance(time.Minute)
		require.NoError(t, right.work())
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
	run("lease, by resume", bye, func(t *testing.T, w *world, ahead, right *process) {
		w.start(right, "go")
		w.claimFor(ahead, "dead", 2, 20*time.Second)
		w.drain()
		_, err := w.goOn(right)
		require.NoError(t, err)
		require.NoError(t, right.work())
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
	for _, after := range []time.Duration{time.Second, 20 * time.Minute} {
		lines := script{"go": {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: after}), says("bye")}}
		run(fmt.Sprintf("retry in %v", after), lines, func(t *testing.T, w *world, ahead, right *process) {
			w.start(ahead, "go")
			w.drain()
			w.deliver(ahead, 2, journal.WakeStep)
			require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
			w.drain()
			ends(t, w, right)
		})
	}
	run("message of a retry", script{"go": {fails(busy), says("bye")}}, func(t *testing.T, w *world, ahead, right *process) {
		w.start(ahead, "go")
		require.Equal(t, acknowledged, w.deliver(ahead, 2, journal.WakeStep))
		w.clock.advance(time.Second)
		require.NoError(t, right.work())
		require.Equal(t, session.StatusCompleted, w.session().Status, "at once")
	})
	run("whether an entry is young", script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}, func(t *testing.T, w *world, ahead, right *process) {
		w.start(right, "go")
		w.deliver(ahead, 2, journal.WakeStep)
		w.drain() // it died before it sent
		require.Zero(t, w.deliver(right, 2, journal.WakeStep).Keep)
		require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain())
	})
	run("due of an answer", script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}, func(t *testing.T, w *world, ahead, right *process) {
		w.run(right, "go")
		_, err := w.submit(ahead, session.WaitApproval, yes())
		require.NoError(t, err)
		w.drain()
		require.Equal(t, runtime.SweepResult{Resumed: 1}, sweepOf(t, right))
		keys, err := right.Unresumed(t.Context())
		require.NoError(t, err)
		require.Len(t, keys, 1)
		ends(t, w, right)
	})
	run("due of an answer, by whoever asks what was not resumed", script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}, func(t *testing.T, w *world, ahead, right *process) {
		w.run(right, "go")
		_, err := w.submit(ahead, session.WaitApproval, yes())
		require.NoError(t, err)
		keys, err := right.Unresumed(t.Context())
		require.NoError(t, err)
		require.Equal(t, []session.Key{w.key}, keys)
	})
	run("due of a session that went back to waiting", script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, func(t *testing.T, w *world, ahead, right *process) {
		w.run(right, "go")
		w.interrupt()
		_, err := w.goOn(ahead)
		require.NoError(t, err)
		require.Zero(t, sweepOf(t, right))
		require.Nil(t, w.head().Head.Due)
	})
}

// TestClocks_a_deadline_may_be_far_away: it is a person's time, and not what a clock got wrong.
func TestClocks_a_deadline_may_be_far_away(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	var n atomic.Int64
	sweeper := w.process(func(cfg *runtime.Config) { cfg.Store = updates(cfg.Store, &n) })
	require.Zero(t, sweepOf(t, sweeper))
	require.Zero(t, sweepOf(t, w.process(off(w, -400*24*time.Hour))), "nor by a clock that is far behind")
	require.Zero(t, n.Load())
	require.Equal(t, session.WaitOpen, w.waits()[0].State)
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
}

// TestClocks_a_little_apart: clocks that are right differ a little, and then a lease
// and a retry stand as they were meant.
func TestClocks_a_little_apart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newEffects(), helper(newEffects(), script{"go": {fails(busy), says("bye")}}))
	ahead, right := w.process(off(w, 2*time.Second)), w.process()
	w.start(ahead, "go")
	w.drain()
	w.claimFor(ahead, "alive", 2, 20*time.Second)
	require.Equal(t, 22*time.Second, w.deliver(right, 2, journal.WakeStep).Keep)
	w.clock.advance(22 * time.Second)
	w.deliver(ahead, 2, journal.WakeStep)
	require.Equal(t, 3*time.Second, w.deliver(right, 3, journal.WakeStep).Keep)
}

// claimFor takes a lease by the clock of a process that then dies.
func (w *world) claimFor(p *process, owner string, seq int64, lasts time.Duration) journal.Lease {
	w.t.Helper()
	now := p.now()
	item, err := w.store.Claim(w.t.Context(), store.ClaimParams{
		Key: w.key, Mode: store.ClaimTake, Owner: owner, Seq: seq, Now: now, Until: now.Add(lasts),
	})
	require.NoError(w.t, err)
	return item.Head.Lease
}

// A clock that is set back while a planner or a tool is at work loses no step: nothing is
// done a second time for it.
func TestClocks_set_back_inside_a_step(t *testing.T) {
	t.Parallel()
	var w *world
	planned := 0
	back := func(then turn) turn {
		return func(ctx context.Context, v agent.View) (agent.Reply, error) {
			planned++
			w.clock.advance(-time.Hour)
			return then(ctx, v)
		}
	}
	made := newEffects()
	w = newWorld(t, made, helper(made, script{"go": {back(calls("line", `{"text":"1"}`)), back(says("bye"))}}))
	w.run(w.process(), "go")
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 2, planned)
	require.Equal(t, 1, made.count("line 1"))
}
