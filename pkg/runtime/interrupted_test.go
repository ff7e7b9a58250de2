package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// interrupt commits what the verb will commit where nobody works: interrupted, on
// HEAD as it is.
func (w *world) interrupt() {
	w.t.Helper()
	s, head := w.session(), w.head()
	signal := journal.Signal{ID: newID(), Task: s.Task, Kind: journal.SignalInterrupt, Who: "ann", At: w.clock.Now(), From: "test"}
	m := engine.Stopped(s, signal, engine.StepOutcome{}, engine.Stamp{Now: w.clock.Now(), By: "ann", Attempt: session.Attempt{ID: newID()}, Token: newID()})
	head.Head.Status, head.Head.StatusSeq, head.Head.Due = m.Entry.Status, m.Entry.Seq, nil
	_, err := w.store.Commit(context.Background(), store.CommitParams{Key: w.key, Entry: m.Entry, Items: []store.Item{head}})
	require.NoError(w.t, err)
}

// interruptedWaiting is a session with two open approvals that was interrupted.
func interruptedWaiting(t *testing.T) (*world, *process) {
	t.Helper()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	return w, p
}

func (w *world) answer(p *process, i int) (runtime.Submitted, error) {
	return p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[i].Wait, yes())})
}

func (w *world) goOn(p *process) (runtime.Resumed, error) {
	return p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Caller: person})
}

// TestInterrupted_with_open_waits is the rules of docs/design/chain.md for interrupted sessions.
func TestInterrupted_with_open_waits(t *testing.T) {
	t.Parallel()
	const (
		started, suspended, interrupted = session.KindStarted, session.KindSuspended, session.KindInterrupted
		resumed, completed              = session.KindResumed, session.KindCompleted
	)
	run := func(name string, f func(t *testing.T, w *world, p *process)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := interruptedWaiting(t)
			f(t, w, p)
		})
	}
	// still holds that nothing but the verb drives it on.
	still := func(t *testing.T, w *world) {
		t.Helper()
		for range 3 {
			w.clock.advance(time.Hour)
			sweepOf(t, w.process())
			require.Empty(t, w.drain())
			w.deliver(w.process(), w.session().Next(), journal.WakeResume)
		}
		require.Equal(t, session.StatusInterrupted, w.session().Status)
		require.Nil(t, w.head().Head.Due)
		for _, record := range w.waits() {
			require.Nil(t, record.Due, "the sweep takes the due of an answered wait away")
		}
		var n atomic.Int64
		sweepOf(t, w.process(func(cfg *runtime.Config) { cfg.Store = updates(cfg.Store, &n) }))
		require.Zero(t, n.Load(), "and is not hit for ever")
	}
	ends := func(t *testing.T, w *world) {
		t.Helper()
		require.NoError(t, w.process().settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Equal(t, map[string]int{"deploy 1": 1, "deploy 2": 1}, w.effects.all())
		w.checkAtRest()
	}
	run("answers are stored and drive nothing on", func(t *testing.T, w *world, p *process) {
		w.interrupt()
		out, err := w.answer(p, 0)
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationWaiting, out.Continuation)
		require.Len(t, out.Open, 1)
		out, err = w.answer(p, 1)
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationStored, out.Continuation)
		still(t, w)
		again, err := w.answer(p, 1)
		require.NoError(t, err)
		require.True(t, again.Repeated)
		require.Equal(t, runtime.ContinuationStored, again.Continuation)
		went, err := w.goOn(p)
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationResumed, went.Continuation)
		require.Equal(t, []session.Kind{started, suspended, interrupted, resumed}, w.kinds(), "the verb itself leaves it")
		require.Len(t, w.journal()[3].Answers, 2)
		ends(t, w)
	})
	run("a message closes what is open", func(t *testing.T, w *world, p *process) {
		require.False(t, w.session().Rules.Policy.AbandonOnMessage)
		w.interrupt()
		_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("rather not"), Caller: person})
		require.NoError(t, err)
		require.Equal(t, []session.Kind{started, suspended, interrupted, resumed}, w.kinds())
		for _, r := range results(w.session()) {
			require.Equal(t, llm.ResultCancelled, r.Status)
		}
		require.Empty(t, w.effects.all())
	})
	run("a resumption on its way comes too late", func(t *testing.T, w *world, p *process) {
		_, err := w.answer(p, 0)
		require.NoError(t, err)
		_, err = w.answer(p, 1)
		require.NoError(t, err)
		w.interrupt()
		require.NoError(t, p.work())
		still(t, w)
		_, err = w.goOn(p)
		require.NoError(t, err)
		ends(t, w)
	})
	run("continue goes back to the same waits", func(t *testing.T, w *world, p *process) {
		_, err := w.answer(p, 0)
		require.NoError(t, err)
		w.interrupt()
		before := w.waits()
		went, err := w.goOn(p)
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationWaiting, went.Continuation)
		require.Len(t, went.Open, 1)
		require.Equal(t, before, w.waits(), "the same ids, nonces and records")
		require.Equal(t, []session.Kind{started, suspended, interrupted, suspended}, w.kinds())
		require.Empty(t, w.journal()[3].Waits)
		require.Equal(t, w.clock.Now().Add(engine.AnsweredGrace), *w.head().Head.Due, "in the same write")
		require.Len(t, w.items(store.KindRun), 1, "no run begins")
		stands, err := p.View(context.Background(), w.key)
		require.NoError(t, err)
		require.Len(t, stands.Open, 1)
		w.clock.advance(time.Hour)
		require.Zero(t, sweepOf(t, p))
		require.Nil(t, w.head().Head.Due, "one is open: the last answer brings a due of its own")
		out, err := w.answer(p, 1)
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationResumed, out.Continuation)
		ends(t, w)
	})
	run("continue, and the last answer comes between its look and its commit", func(t *testing.T, w *world, p *process) {
		_, err := w.answer(p, 0)
		require.NoError(t, err)
		w.interrupt()
		m := &storeHook{when: anyCommit, happens: func() {
			out, err := w.answer(w.process(), 1)
			require.NoError(t, err)
			require.Equal(t, runtime.ContinuationStored, out.Continuation)
		}}
		went, err := w.goOn(w.process(func(cfg *runtime.Config) { m.Store, cfg.Store = cfg.Store, m }))
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationResumed, went.Continuation)
		ends(t, w)
	})
	run("continue dies after that commit: HEAD is due, though no wait is any more", func(t *testing.T, w *world, p *process) {
		_, err := w.answer(p, 0)
		require.NoError(t, err)
		w.interrupt()
		f := &fuse{at: 1, after: true}
		m := &storeHook{when: anyCommit, happens: func() {
			_, err := w.answer(w.process(), 1)
			require.NoError(t, err)
			w.clock.advance(time.Minute)
			require.Zero(t, sweepOf(t, w.process()))
			require.Nil(t, w.waits()[1].Due)
		}}
		_, err = w.goOn(w.process(func(cfg *runtime.Config) {
			m.Store = &fusedStore{Store: cfg.Store, fuse: f}
			cfg.Store, cfg.Queue = m, &fusedQueue{Queue: cfg.Queue, fuse: f}
		}))
		require.ErrorIs(t, err, errDied)
		require.Equal(t, session.StatusSuspended, w.session().Status)
		require.Empty(t, w.drain())
		w.clock.advance(time.Minute)
		require.Equal(t, runtime.SweepResult{Resumed: 1}, sweepOf(t, w.process()))
		require.Zero(t, sweepOf(t, w.process()), "its message has a moment")
		w.drain() // lost
		w.clock.advance(time.Minute)
		require.Equal(t, runtime.SweepResult{Resumed: 1}, sweepOf(t, w.process()))
		ends(t, w)
		require.Nil(t, w.head().Head.Due)
	})
	run("continue dies after it committed resumed", func(t *testing.T, w *world, p *process) {
		_, _ = w.answer(p, 0)
		_, _ = w.answer(p, 1)
		w.interrupt()
		w.drain()
		_, err := w.goOn(w.fusedProcess(&fuse{at: 1, after: true}, true, 1))
		require.ErrorIs(t, err, errDied)
		require.Equal(t, session.KindResumed, w.session().Newest.Kind)
		require.Empty(t, w.drain())
		ends(t, w)
	})
	run("two continue at once", func(t *testing.T, w *world, p *process) {
		w.interrupt()
		m := &storeHook{when: anyCommit, happens: func() {
			went, err := w.goOn(w.process())
			require.NoError(t, err)
			require.Equal(t, runtime.ContinuationWaiting, went.Continuation)
		}}
		_, err := w.goOn(w.process(func(cfg *runtime.Config) { m.Store, cfg.Store = cfg.Store, m }))
		require.Equal(t, runtime.CodeAlreadyRunning, codeOf(err))
		_, err = w.goOn(p)
		require.Equal(t, runtime.CodeStillWaiting, codeOf(err))
		require.Len(t, w.journal(), 4)
	})
	run("its new checkpoint shows the same waits", func(t *testing.T, w *world, p *process) {
		w.interrupt()
		_, err := w.goOn(p)
		require.NoError(t, err)
		shown := w.session().Checkpoint().String()
		out, err := p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Checkpoint: shown, ApproveAll: true, Caller: person})
		require.NoError(t, err)
		require.Equal(t, runtime.ContinuationResumed, out.Continuation)
		ends(t, w)
		out, err = p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Checkpoint: shown, ApproveAll: true, Caller: person})
		require.NoError(t, err)
		require.True(t, out.Repeated)
	})
	run("interrupted and continued again and again", func(t *testing.T, w *world, p *process) {
		for range 3 {
			w.interrupt()
			_, err := w.goOn(p)
			require.NoError(t, err)
		}
		_, err := w.answer(p, 0)
		require.NoError(t, err)
		_, err = w.answer(p, 1)
		require.NoError(t, err)
		ends(t, w)
	})
}

// TestInterrupted_deadlines: the sweep expires them, and drives nothing on.
func TestInterrupted_deadlines(t *testing.T) {
	t.Parallel()
	w, p := expiring(t, session.WaitApproval, session.ExpireDeny, nil)
	w.interrupt()
	w.clock.advance(2 * time.Hour)
	require.Equal(t, 1, sweepOf(t, p).Expired)
	w.clock.advance(time.Minute)
	require.Zero(t, sweepOf(t, p))
	require.Empty(t, w.drain())
	require.Equal(t, session.StatusInterrupted, w.session().Status)
	require.Equal(t, session.WaitExpired, w.waits()[0].State)
	require.Nil(t, w.waits()[0].Due)
	_, err := w.goOn(p)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.True(t, w.session().Status.Ended())
}
