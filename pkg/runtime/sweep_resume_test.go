package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// decided is a session all of whose approvals were answered in one decision, and
// whose resumption is lost.
func decided(t *testing.T, approvals int) (*world, *process) {
	t.Helper()
	made := newEffects()
	var list []string
	for i := range approvals {
		list = append(list, "deploy", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	_, err := p.Decide(t.Context(), runtime.DecideParams{Key: w.key, Caller: person, Checkpoint: w.session().Checkpoint().String(), ApproveAll: true})
	require.NoError(t, err)
	require.NotEmpty(t, w.drain())
	w.clock.advance(time.Minute)
	return w, p
}

// dues counts the waits that are due.
func (w *world) dues() (n int) {
	for _, wait := range w.waits() {
		if wait.Due != nil {
			n++
		}
	}
	return n
}

// TestSweep_sends_once_for_a_suspension: however many answers a suspension had, the
// sweep sends one message for it and then backs off as for a session that runs; what
// it reads does not grow with the square of the answers.
func TestSweep_sends_once_for_a_suspension(t *testing.T) {
	t.Parallel()
	const approvals = 40
	w, p := decided(t, approvals)
	resume := []journal.Wake{w.wake(w.session().Next(), journal.WakeResume)}
	sweeper, s := w.tallied()
	require.Equal(t, runtime.SweepResult{Resumed: 1}, sweepOf(t, sweeper))
	require.Equal(t, resume, w.drain())
	require.LessOrEqual(t, s.items.Load(), int64(2*approvals))
	require.EqualValues(t, 1, s.writes.Load())
	require.Zero(t, w.dues(), "HEAD is due in their place")
	var after []int
	for minute := 1; minute <= 60; minute++ {
		w.clock.advance(time.Minute)
		swept := sweepOf(t, sweeper)
		if swept.Resumed > 0 {
			require.Equal(t, runtime.SweepResult{Resumed: 1}, swept)
			require.Equal(t, resume, w.drain())
			after = append(after, minute)
		}
	}
	require.Equal(t, []int{1, 3, 7, 12, 17}, after[:5], "the time doubles up to five minutes")
	require.Len(t, after, 13)
	require.Empty(t, w.drain())
	require.LessOrEqual(t, s.items.Load(), int64(2*approvals+3*len(after)), "HEAD, and the waits, each time")
	// Who asks what was not resumed finds it, also while the sweep is backing off.
	keys, err := p.Unresumed(t.Context())
	require.NoError(t, err)
	require.Equal(t, []session.Key{w.key}, keys)
	w.clock.advance(5 * time.Minute)
	sweepOf(t, sweeper)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Zero(t, w.head().Head.Resent)
	w.checkAtRest()
}

// TestSweep_of_a_suspension_that_moves: two sweeps at once send one message, and
// what is resumed while the sweep looks is not sent for, nor due again.
func TestSweep_of_a_suspension_that_moves(t *testing.T) {
	t.Parallel()
	t.Run("another sweep", func(t *testing.T) {
		t.Parallel()
		w, p := decided(t, 3)
		s := &aroundUpdate{Store: w.store, before: func() { require.Equal(t, 1, sweepOf(t, p).Resumed) }}
		slow := w.process(func(cfg *runtime.Config) { cfg.Store = s })
		require.Zero(t, sweepOf(t, slow))
		require.Len(t, w.drain(), 1)
	})
	t.Run("its resumption", func(t *testing.T) {
		t.Parallel()
		w, p := decided(t, 3)
		s := &aroundUpdate{Store: w.store, before: func() {
			w.deliver(p, w.session().Next(), journal.WakeResume)
			require.NoError(t, p.settle())
		}}
		slow := w.process(func(cfg *runtime.Config) { cfg.Store = s })
		require.Zero(t, sweepOf(t, slow))
		require.Equal(t, session.StatusCompleted, w.session().Status)
		w.checkAtRest()
	})
}

// TestSweep_that_dies_before_it_sends: HEAD is due by then, so the next sweep sends.
func TestSweep_that_dies_before_it_sends(t *testing.T) {
	t.Parallel()
	w, p := decided(t, 3)
	dies := w.process(func(cfg *runtime.Config) { cfg.Queue = &fusedQueue{Queue: cfg.Queue, fuse: &fuse{at: 1}} })
	_, err := dies.Sweep(t.Context())
	require.ErrorIs(t, err, errDied)
	require.Zero(t, w.dues())
	require.Empty(t, w.drain())
	w.clock.advance(time.Minute)
	require.Equal(t, 1, sweepOf(t, p).Resumed)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkAtRest()
}

// TestSweep_of_answers_beside_an_open_wait: it takes their due away in one write and
// sends nothing; the last answer brings a due of its own.
func TestSweep_of_answers_beside_an_open_wait(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {
		calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), says("bye"),
	}}))
	p := w.process()
	w.run(p, "go")
	for i := range 2 {
		_, err := w.answer(p, i)
		require.NoError(t, err)
	}
	require.Empty(t, w.drain())
	w.clock.advance(time.Minute)
	sweeper, s := w.tallied()
	require.Zero(t, sweepOf(t, sweeper))
	require.EqualValues(t, 1, s.writes.Load())
	require.Zero(t, w.dues())
	require.Nil(t, w.head().Head.Due)
	_, err := w.answer(p, 2)
	require.NoError(t, err)
	require.Len(t, w.drain(), 1)
	require.Equal(t, 1, w.dues())
	w.clock.advance(time.Minute)
	require.Equal(t, 1, sweepOf(t, sweeper).Resumed)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkAtRest()
}
