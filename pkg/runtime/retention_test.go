package runtime_test

import (
	"context"
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

const month = 30 * 24 * time.Hour

// retained is a world whose agent keeps sessions for a month.
func retained(t *testing.T) (*world, *effects) {
	made := newEffects()
	return newWorld(t, made, helper(made, stopScript(), func(a *agent.Agent) { a.Retention = month })), made
}

// endings are the ways a session ends.
func endings() map[string]func(t *testing.T, w *world) {
	return map[string]func(t *testing.T, w *world){
		"completed": backPlaces["completed"], "cancelled": backPlaces["cancelled"], "aborted": backPlaces["aborted"],
		"failed": func(t *testing.T, w *world) {
			w.start(w.process(), "nothing of the script")
			require.NoError(t, w.process().settle())
		},
	}
}

// A session is kept for as long as its agent says after its end, and is gone for every reader then,
// whenever the sweep comes to it.
func TestRetention(t *testing.T) {
	t.Parallel()
	for name, ends := range endings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, made := retained(t)
			ends(t, w)
			require.True(t, w.session().Status.Ended())
			head := w.head().Head
			require.Equal(t, head.UpdatedAt.Add(month), *head.ExpiresAt())
			require.Equal(t, *head.ExpiresAt(), *head.Due)
			effects := made.all()
			knows := w.process()
			_, err := knows.View(context.Background(), w.key)
			require.NoError(t, err)

			w.clock.advance(head.ExpiresAt().Sub(w.clock.Now()) - time.Second)
			swept, err := w.process().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, runtime.SweepResult{}, swept)
			_, err = w.process().View(context.Background(), w.key)
			require.NoError(t, err)

			w.clock.advance(time.Second)
			before := w.head().Rev
			w.checkNotFound(knows)
			w.checkNotFound(w.process())
			require.Equal(t, before, w.head().Rev, "nobody has come to it yet")
			swept, err = w.process().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, runtime.SweepResult{Removed: 1}, swept)
			w.checkGone(knows)
			w.checkGone(w.process())
			swept, err = w.process().Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, runtime.SweepResult{}, swept)
			require.Equal(t, effects, made.all())
		})
	}
}

// A next turn, or going back, moves the end; while a task is under way nothing expires.
func TestRetention_moves_with_the_end(t *testing.T) {
	t.Parallel()
	w, _ := retained(t)
	backPlaces["cancelled"](t, w)
	first := *w.head().Head.ExpiresAt()
	w.clock.advance(month - time.Hour)
	w.start(w.process(), "go")
	require.Nil(t, w.head().Head.ExpiresAt())
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusSuspended, w.session().Status)
	w.clock.advance(3 * month)
	require.NoError(t, w.process().settle())
	require.Nil(t, w.head().Head.ExpiresAt())
	_, err := w.stop(w.process(), runtime.SignalCancel)
	require.NoError(t, err)
	require.Greater(t, w.head().Head.ExpiresAt().Sub(first), 3*month)
	began, err := w.goBack(w.process())
	require.NoError(t, err)
	require.NotEmpty(t, began.Open)
	require.Nil(t, w.head().Head.ExpiresAt())
	w.clock.advance(2 * month)
	require.NoError(t, w.process().settle())
	_, err = w.process().View(context.Background(), w.key)
	require.NoError(t, err)
}

// What began without a retention is kept for ever, whatever the agent says since; and the reverse.
func TestRetention_is_that_of_the_task(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	backPlaces["cancelled"](t, w)
	require.Nil(t, w.head().Head.ExpiresAt())
	require.Nil(t, w.head().Head.Due)
	changed, _ := retained(t)
	w.clock.advance(2 * month)
	p := w.process(func(cfg *runtime.Config) { cfg.Registry = changed.cfg.Registry })
	require.NoError(t, p.settle())
	_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, month, w.session().Rules.Retention)
	require.NotNil(t, w.head().Head.ExpiresAt())
}

// A next turn that comes between any two calls of the sweep that expires a session loses, or wins
// and keeps all of it.
func TestRetention_against_a_next_turn(t *testing.T) {
	t.Parallel()
	w, _ := retained(t)
	for at := 0; ; at++ {
		w = w.another()
		backPlaces["cancelled"](t, w)
		head := w.head()
		w.clock.advance(head.Head.ExpiresAt().Sub(w.clock.Now()))
		begun := false
		p, over := w.crossed(at, func() {
			late := w.process(func(cfg *runtime.Config) { // whose clock is behind
				cfg.Now = func() time.Time { return w.clock.Now().Add(-time.Minute) }
			})
			_, err := late.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
			if begun = err == nil; !begun {
				require.True(t, tooLate(err), "%v", err)
			}
		})
		_, err := p.Sweep(context.Background())
		require.NoError(t, err)
		require.NoError(t, w.process().settle(), "crossed at call %d", at)
		if begun {
			require.Equal(t, session.StatusCompleted, w.session().Status, "crossed at call %d", at)
		} else {
			w.checkGone(w.process())
		}
		if over() {
			require.Greater(t, at, 4)
			return
		}
	}
}

// A sweep dies at any of its writes; the next one finishes what it began.
func TestRetention_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		for _, after := range []bool{false, true} {
			w, _ := retained(t)
			backPlaces["completed"](t, w)
			w.clock.advance(month)
			f := &fuse{at: at, after: after}
			_, err := w.fusedProcess(f, true, 1).Sweep(context.Background())
			if !f.blown() {
				require.NoError(t, err)
				require.Equal(t, 3, at, "it commits, and removes")
				return
			}
			w.clock.advance(11 * time.Second)
			_, err = w.process().Sweep(context.Background())
			require.NoError(t, err, "%v", f.ops)
			w.checkGone(w.process())
		}
	}
}

// Where a read fails nothing is expired, and the sweep says so.
func TestRetention_failing_reads(t *testing.T) {
	t.Parallel()
	w, _ := retained(t)
	backPlaces["completed"](t, w)
	w.clock.advance(month)
	rev := w.head().Rev
	for at := 0; ; at++ {
		failing := &failingRead{at: at}
		p := w.process(func(cfg *runtime.Config) { failing.Store = cfg.Store; cfg.Store = failing })
		_, err := p.Sweep(context.Background())
		if failing.at >= 0 {
			require.NoError(t, err)
			require.Greater(t, at, 2)
			w.checkGone(w.process())
			return
		}
		require.ErrorIs(t, err, store.ErrUnavailable, "read %d", at)
		require.Equal(t, rev, w.head().Rev)
	}
}

// A program that does not know the retention keeps the field when it writes HEAD, and moves only what
// it knows: the time counts from the end that it wrote.
func TestRetention_beside_an_older_program(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for status, expires := range map[session.Status]bool{
		session.StatusRunning: false, session.StatusSuspended: false, session.StatusInterrupted: false,
		session.StatusCompleted: true, session.StatusFailed: true, session.StatusCancelled: true,
	} {
		head := journal.Head{Status: status, UpdatedAt: at, Retention: month}
		require.Equal(t, expires, head.Gone(at.Add(month)), status)
		require.False(t, head.Gone(at.Add(month-1)), status)
		head.Retention = 0
		require.False(t, head.Gone(at.Add(99*month)), status)
	}
}

// What is kept for long is no work for the sweeps in between.
func TestRetention_costs_the_sweep_nothing(t *testing.T) {
	t.Parallel()
	w, _ := retained(t)
	for range 3 {
		w = w.another()
		backPlaces["cancelled"](t, w)
	}
	w.clock.advance(month / 2)
	reads := 0
	p := w.process(func(cfg *runtime.Config) {
		cfg.Store = &storeHook{Store: cfg.Store, when: func(storeCall) bool { reads++; return false }, happens: func() {}}
	})
	swept, err := p.Sweep(context.Background())
	require.NoError(t, err)
	require.Equal(t, runtime.SweepResult{}, swept)
	require.Zero(t, reads, "nothing is due")
}
