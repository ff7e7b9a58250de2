package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// claimAs takes the lease of an entry for a worker that is somewhere else.
func (w *world) claimAs(owner string, seq int64) journal.Lease {
	w.t.Helper()
	item, err := w.store.Claim(context.Background(), store.ClaimParams{
		Key: w.key, Mode: store.ClaimTake, Owner: owner, Seq: seq, Now: w.clock.Now(), Until: w.clock.Now().Add(20 * time.Second),
	})
	require.NoError(w.t, err)
	return item.Head.Lease
}

// drain takes every message there is out of the queue.
func (w *world) drain() []journal.Wake {
	w.t.Helper()
	var wakes []journal.Wake
	for {
		deliveries, err := w.queue.Receive(context.Background(), queue.ReceiveParams{Max: 10, Visibility: time.Minute})
		require.NoError(w.t, err)
		if len(deliveries) == 0 {
			w.flush()
			return wakes
		}
		for _, d := range deliveries {
			wakes = append(wakes, d.Wake)
		}
		require.NoError(w.t, w.queue.Acknowledge(context.Background(), deliveries...))
	}
}

func (w *world) wake(seq int64, kind journal.WakeKind) journal.Wake {
	return journal.NewWake(w.key, seq, kind)
}

func (w *world) deliver(p *process, seq int64, kind journal.WakeKind) runtime.Disposition {
	w.t.Helper()
	d, err := p.Deliver(context.Background(), w.wake(seq, kind))
	require.NoError(w.t, err)
	return d
}

var acknowledged = runtime.Disposition{}

// TestDeliver_table is the table in docs/design/chain.md, row by row.
func TestDeliver_table(t *testing.T) {
	t.Parallel()
	lines := script{
		"go":     {calls("echo", `{"text":"1"}`), calls("echo", `{"text":"2"}`), says("bye")},
		"ask":    {calls("deploy", `{"text":"1"}`), says("bye")},
		"effect": {calls("line", `{"text":"1"}`), says("bye")},
		"busy":   {fails(busy), says("bye")},
		"hours":  {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: 2 * time.Hour}), says("bye")},
		"later":  {fails(&llm.Error{Class: llm.ClassRateLimited, RetryAfter: 10 * time.Minute}), says("bye")},
	}
	run := func(name string, f func(t *testing.T, w *world, p *process)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, lines))
			f(t, w, w.process())
		})
	}
	run("no such session: acknowledge", func(t *testing.T, w *world, p *process) {
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeResume))
	})
	run("a message that points nowhere: acknowledge", func(t *testing.T, w *world, p *process) {
		d, err := p.Deliver(context.Background(), journal.NewWake(session.Key{Tenant: "default", ID: "no/id"}, 2, journal.WakeStep))
		require.NoError(t, err)
		require.Equal(t, acknowledged, d)
	})
	run("a newer message: kept for a newer program", func(t *testing.T, w *world, p *process) {
		wake := w.wake(2, journal.WakeStep)
		wake.V = journal.WakeVersion + 1
		_, err := p.Deliver(context.Background(), wake)
		require.ErrorContains(t, err, "newer")
	})
	run("ended: acknowledge", func(t *testing.T, w *world, p *process) {
		w.run(p, "go")
		for seq := range int64(7) {
			require.Equal(t, acknowledged, w.deliver(p, seq+1, journal.WakeStep))
			require.Equal(t, acknowledged, w.deliver(p, seq+1, journal.WakeResume))
		}
		require.Len(t, w.journal(), 4)
	})
	run("k > n+1: acknowledge", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		require.Len(t, w.journal(), 1)
		require.False(t, w.head().Head.Lease.Live(w.clock.Now(), 1, false), "and the lease that was taken for it is given up")
	})
	run("step, suspended: acknowledge", func(t *testing.T, w *world, p *process) {
		w.run(p, "ask")
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		require.Len(t, w.journal(), 2)
	})
	run("step, interrupted: acknowledge", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.signal(journal.SignalInterrupt)
		require.NoError(t, p.work())
		require.Equal(t, session.StatusInterrupted, w.session().Status)
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		require.Len(t, w.journal(), 2)
	})
	run("resume, interrupted: acknowledge", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.signal(journal.SignalInterrupt)
		require.NoError(t, p.work())
		for seq := range int64(4) {
			require.Equal(t, acknowledged, w.deliver(p, seq+1, journal.WakeResume))
		}
		require.Equal(t, []session.Kind{session.KindStarted, session.KindInterrupted}, w.kinds())
		require.Less(t, w.head().Head.Lease.Seq, int64(3), "without a claim")
	})
	run("step, delayed, a signal on HEAD: obey it now", func(t *testing.T, w *world, p *process) {
		w.start(p, "busy")
		w.deliver(p, 2, journal.WakeStep)
		require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
		w.signal(journal.SignalCancel)
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		require.Equal(t, session.StatusCancelled, w.session().Status)
	})
	run("resume of a running one, delayed, a signal on HEAD: obey it now", func(t *testing.T, w *world, p *process) {
		w.start(p, "busy")
		w.deliver(p, 2, journal.WakeStep)
		w.signal(journal.SignalInterrupt)
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeResume))
		require.Equal(t, session.StatusInterrupted, w.session().Status)
	})
	run("step, delayed, a signal of an earlier task on HEAD: keep until its time has come", func(t *testing.T, w *world, p *process) {
		w.start(p, "busy")
		w.deliver(p, 2, journal.WakeStep)
		w.signal(journal.SignalCancel)
		head := w.head()
		head.Head.Signal.Task = 0
		w.update(head)
		require.Equal(t, time.Second, w.deliver(p, 3, journal.WakeStep).Keep)
	})
	run("resume, suspended with no wait open: go on", func(t *testing.T, w *world, p *process) {
		w.run(p, "ask")
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		w.drain()
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeResume))
		require.Equal(t, []session.Kind{session.KindStarted, session.KindSuspended, session.KindResumed, session.KindStepped}, w.kinds())
		require.Len(t, w.journal()[2].Answers, 1, "resumed takes the answers in")
		require.True(t, w.journal()[2].KeepsLease)
		require.Equal(t, session.WaitTaken, w.waits()[0].State)
		require.Equal(t, int64(3), w.waits()[0].TakenBy)
		require.Equal(t, session.TriggerSubmit, w.items(store.KindRun)[1].Run.Trigger)
	})
	run("resume, suspended with a wait open: acknowledge", func(t *testing.T, w *world, p *process) {
		w.run(p, "ask")
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeResume))
		require.Len(t, w.journal(), 2)
		require.Less(t, w.head().Head.Lease.Seq, int64(3), "without a claim, which would hold up the answer's own message")
	})
	run("k <= n, lease live: keep until it ends", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		w.claimAs("elsewhere", 3)
		w.clock.advance(5 * time.Second)
		require.Equal(t, 15*time.Second, w.deliver(p, 2, journal.WakeStep).Keep)
	})
	run("k <= n, entry n written for another message: acknowledge", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		w.drain()
		w.clock.advance(time.Minute)
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Empty(t, w.drain())
	})
	run("k <= n, entry n written for this one and young: come back after the grace", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.deliver(p, 2, journal.WakeStep)
		w.drain()
		w.clock.advance(time.Second)
		require.Equal(t, 2*time.Second, w.deliver(p, 2, journal.WakeStep).Keep)
		require.Empty(t, w.drain())
	})
	run("k <= n, entry n written for this one and old: the first delivery died before sending", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.deliver(p, 2, journal.WakeStep)
		w.drain()
		w.clock.advance(3 * time.Second)
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain())
	})
	run("k <= n, a delayed entry: its wake is sent with what is left of the delay", func(t *testing.T, w *world, p *process) {
		w.start(p, "busy")
		w.deliver(p, 2, journal.WakeStep)
		require.Equal(t, session.KindDelayed, w.session().Newest.Kind)
		w.drain()
		w.clock.advance(10 * time.Second)
		w.drain() // its own wake
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain())
	})
	run("k <= n, a delayed entry whose time has not come: its wake comes when it has", func(t *testing.T, w *world, p *process) {
		w.start(p, "later")
		w.deliver(p, 2, journal.WakeStep)
		w.drain()
		w.clock.advance(9 * time.Minute)
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Empty(t, w.drain())
		w.clock.advance(time.Minute)
		require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep), w.wake(3, journal.WakeStep)}, w.drain(), "its own and this one")
	})
	run("k = n+1, no live lease: claim, work, commit, send, acknowledge", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		require.Equal(t, []journal.Wake{w.wake(2, journal.WakeStep)}, w.drain())
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain())
		e := w.journal()[1]
		require.Equal(t, int64(1), e.Attempt.N)
		require.Equal(t, int64(2), e.Attempt.For, "the entry says which message it was written for")
	})
	run("k = n+1, lease live elsewhere: keep until it ends", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.claimAs("elsewhere", 2)
		require.Equal(t, 20*time.Second, w.deliver(p, 2, journal.WakeStep).Keep)
		require.Len(t, w.journal(), 1)
		w.clock.advance(20 * time.Second)
		require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
		require.Equal(t, int64(2), w.journal()[1].Attempt.N, "the second claim of the step")
	})
	run("k = n+1, a retry whose time has not come: keep until it has", func(t *testing.T, w *world, p *process) {
		w.start(p, "busy")
		w.deliver(p, 2, journal.WakeStep)
		w.clock.advance(400 * time.Millisecond)
		require.Equal(t, 600*time.Millisecond, w.deliver(p, 3, journal.WakeStep).Keep)
		w.clock.advance(600 * time.Millisecond)
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
	run("k = n+1, a retry further ahead than a queue delays: acknowledge, the sweep sends", func(t *testing.T, w *world, p *process) {
		w.start(p, "hours")
		w.deliver(p, 2, journal.WakeStep)
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		w.clock.advance(time.Hour)
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep))
		require.Len(t, w.journal(), 2)
	})
	run("an entry that goes on keeps its lease: a duplicate waits for it", func(t *testing.T, w *world, p *process) {
		w.start(p, "effect")
		// a worker that has written replied and is at the tool
		f := &fuse{at: 5}
		dying := w.fusedProcess(f, true, 1)
		_, _ = dying.Deliver(context.Background(), w.wake(2, journal.WakeStep))
		require.Equal(t, session.KindReplied, w.session().Newest.Kind, "%v", f.ops)
		require.Equal(t, 20*time.Second, w.deliver(p, 2, journal.WakeStep).Keep)
		require.Equal(t, 20*time.Second, w.deliver(p, 3, journal.WakeStep).Keep)
	})
	run("an entry that does not go on closes its lease", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		w.deliver(p, 2, journal.WakeStep)
		require.False(t, w.head().Head.Lease.Live(w.clock.Now(), 2, false))
		require.Equal(t, acknowledged, w.deliver(p, 3, journal.WakeStep), "nobody waits for it")
	})
	run("a store that does not answer: the message comes back and nothing is half-written", func(t *testing.T, w *world, p *process) {
		w.start(p, "go")
		f := &fuse{at: 2}
		_, err := w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
		require.ErrorIs(t, err, errDied)
		require.Len(t, w.journal(), 1)
		require.NoError(t, p.settle())
		w.checkAtRest()
	})
}

// TestDeliver_whoever_won_and_lost_the_lease_sends: a worker that wrote an entry
// it meant to go on from, and has lost the lease since, sends for the next one.
func TestDeliver_whoever_won_and_lost_the_lease_sends(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`)}}))
	g := newGate(2, true) // after replied, before the lease moves on
	first := w.process(func(cfg *runtime.Config) {
		cfg.Store, cfg.WatchEvery = &gatedStore{Store: w.store, gate: g, detached: true}, time.Hour
	})
	w.start(w.process(), "go")
	w.drain()
	done := make(chan runtime.Disposition, 1)
	go func() { done <- w.deliver(first, 2, journal.WakeStep) }()

	select {
	case <-g.frozen:
	case <-time.After(time.Minute):
		t.Fatal("never stopped")
	}
	w.clock.advance(21 * time.Second)
	w.claimAs("elsewhere", 3)
	close(g.thawed)
	require.Equal(t, acknowledged, <-done)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
	require.Equal(t, []journal.Wake{w.wake(3, journal.WakeStep)}, w.drain())
	require.Zero(t, made.count("line 1"))
}
