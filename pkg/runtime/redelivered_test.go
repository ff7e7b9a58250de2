package runtime_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// tooLargeResult is the store of a worker that dies of reading the whole session, as one
// does that has too little memory.
func tooLargeResult(s store.Store) store.Store {
	dead := false
	return &hook{
		Store: s,
		entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
			if after > 0 {
				return s.Entries(ctx, key, after)
			}
			return func(yield func(journal.Entry, error) bool) {
				dead = true
				yield(journal.Entry{}, errDied)
			}
		},
		claim: func(ctx context.Context, p store.ClaimParams) (store.Item, error) {
			if dead {
				return store.Item{}, errDied
			}
			return s.Claim(ctx, p)
		},
	}
}

// again is the message for an entry, received once more.
func (w *world) again(seq int64) journal.Wake {
	wake := w.wake(seq, journal.WakeStep)
	wake.Again = true
	return wake
}

// TestDeliver_again_counts_who_died_reading: a session that no worker has room for is
// given up like a step that no worker survives.
func TestDeliver_again_counts_who_died_reading(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), calls("echo", `{"text":"2"}`), calls("line", `{"text":"3"}`), says("bye")}}))
	most := func(cfg *runtime.Config) { cfg.MaxClaims = 3 }
	p := w.process(most)
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	w.deliver(p, 3, journal.WakeStep)
	dies := func(wake journal.Wake) {
		t.Helper()
		_, err := w.process(most, func(cfg *runtime.Config) { cfg.Store = tooLargeResult(cfg.Store) }).Deliver(t.Context(), wake)
		require.ErrorIs(t, err, errDied)
		w.clock.advance(time.Hour)
	}
	dies(w.wake(4, journal.WakeStep))
	require.EqualValues(t, 3, w.head().Head.Lease.Seq, "a message that comes for the first time costs no request more")
	for range 3 {
		_, err := p.DeadLetter(t.Context(), w.wake(4, journal.WakeStep))
		require.NoError(t, err)
		require.Equal(t, session.StatusRunning, w.session().Status)
		dies(w.again(4))
	}
	_, err := p.DeadLetter(t.Context(), w.wake(4, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, "step_died", w.session().Failure.Type)
	require.Empty(t, made.all())
}

// TestDeliver_again_that_is_cut_off counts a read that never fits into its worker's time.
func TestDeliver_again_that_is_cut_off(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), calls("echo", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	w.deliver(p, 3, journal.WakeStep)
	for died := range 2 {
		ctx, cut := context.WithCancelCause(t.Context())
		_, err := w.process(func(cfg *runtime.Config) { cfg.Store = readCutOff(cfg.Store, cut) }).Deliver(ctx, w.again(4))
		require.Error(t, err)
		require.EqualValues(t, died, w.head().Head.Lease.Died)
		require.NotEmpty(t, w.head().Head.Lease.Owner, "it was not given back")
		w.clock.advance(time.Hour)
	}
}

// readCutOff ends its worker's time while the whole session is read.
func readCutOff(s store.Store, cut context.CancelCauseFunc) store.Store {
	return &hook{Store: s, entries: func(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
		if after == 0 {
			cut(runtime.ErrOutOfTime)
		}
		return s.Entries(ctx, key, after)
	}}
}

// TestDeliver_again does with a message that came before what it would have done with
// it at first.
func TestDeliver_again(t *testing.T) {
	t.Parallel()
	lines := script{"go": {calls("line", `{"text":"1"}`), calls("line", `{"text":"2"}`), says("bye")}}
	begun := func(t *testing.T) *world {
		made := newEffects()
		w := newWorld(t, made, helper(made, lines))
		w.start(w.process(), "go")
		w.drain()
		return w
	}
	deliver := func(w *world, seq int64) runtime.Disposition {
		disposition, err := w.process().Deliver(context.Background(), w.again(seq))
		require.NoError(w.t, err)
		return disposition
	}
	t.Run("a step is done", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		require.Zero(t, deliver(w, 2))
		require.Equal(t, map[string]int{"line 1": 1}, w.effects.all())
		require.Equal(t, []journal.Wake{w.wake(4, journal.WakeStep)}, w.drain())
	})
	t.Run("nobody has written what it follows", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		require.Zero(t, deliver(w, 3))
		require.Empty(t, w.head().Head.Lease.Owner, "a lease for it would stand in the way")
	})
	t.Run("somebody is at it", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		w.claimAs("somebody", 2)
		require.Positive(t, deliver(w, 2).Keep)
		require.Equal(t, "somebody", w.head().Head.Lease.Owner)
	})
	t.Run("its step is done and who did it died", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		w.deliver(w.process(), 2, journal.WakeStep)
		w.drain()
		w.clock.advance(time.Minute)
		require.Zero(t, deliver(w, 2))
		require.Equal(t, []journal.Wake{w.wake(4, journal.WakeStep)}, w.drain())
	})
	t.Run("its step is put off", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		late := &llm.Error{Class: llm.ClassRateLimited, RetryAfter: time.Minute}
		w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), calls("echo", `{"text":"2"}`), fails(late), says("bye")}}))
		w.start(w.process(), "go")
		for seq := range int64(3) {
			w.deliver(w.process(), seq+2, journal.WakeStep)
		}
		_, err := w.process(func(cfg *runtime.Config) { cfg.Store = tooLargeResult(cfg.Store) }).Deliver(t.Context(), w.again(5))
		require.ErrorIs(t, err, errDied)
		require.EqualValues(t, 4, w.head().Head.Lease.Seq, "a lease would hide a signal that comes meanwhile")
		require.Positive(t, deliver(w, 5).Keep)
		require.Empty(t, w.head().Head.Lease.Owner)
	})
	t.Run("a person is waited for", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"x"}`), says("bye")}}))
		w.start(w.process(), "go")
		w.deliver(w.process(), 2, journal.WakeStep)
		w.drain()
		require.Zero(t, deliver(w, 3))
		require.Empty(t, w.drain())
	})
	t.Run("the session was deleted", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		require.NoError(t, w.store.Delete(t.Context(), w.key))
		require.Zero(t, deliver(w, 2))
		require.Empty(t, w.effects.all())
	})
}
