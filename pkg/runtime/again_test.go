package runtime_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// tooLarge is the store of a worker that dies of reading the whole session, as one
// does that has too little memory.
type tooLarge struct {
	store.Store
	dead bool
}

func (s *tooLarge) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[session.Entry, error] {
	if after > 0 {
		return s.Store.Entries(ctx, key, after)
	}
	return func(yield func(session.Entry, error) bool) {
		s.dead = true
		yield(session.Entry{}, errDied)
	}
}

func (s *tooLarge) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if s.dead {
		return store.Item{}, errDied
	}
	return s.Store.Claim(ctx, p)
}

// again is the message for an entry, received once more.
func (w *world) again(seq int64) session.Wake {
	wake := w.wake(seq, session.WakeStep)
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
	w.deliver(p, 2, session.WakeStep)
	w.deliver(p, 3, session.WakeStep)
	dies := func(wake session.Wake) {
		t.Helper()
		_, err := w.process(most, func(cfg *runtime.Config) { cfg.Store = &tooLarge{Store: cfg.Store} }).Deliver(t.Context(), wake)
		require.ErrorIs(t, err, errDied)
		w.clock.advance(time.Minute)
	}
	dies(w.wake(4, session.WakeStep))
	require.EqualValues(t, 3, w.head().Head.Lease.Seq, "a message that comes for the first time costs no request more")
	for range 3 {
		_, err := p.DeadLetter(t.Context(), w.wake(4, session.WakeStep))
		require.NoError(t, err)
		require.Equal(t, session.StatusRunning, w.session().Status)
		dies(w.again(4))
	}
	_, err := p.DeadLetter(t.Context(), w.wake(4, session.WakeStep))
	require.NoError(t, err)
	require.Equal(t, "step_died", w.session().Failure.Type)
	require.Empty(t, made.all())
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
		require.Equal(t, []session.Wake{w.wake(4, session.WakeStep)}, w.drain())
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
		w.deliver(w.process(), 2, session.WakeStep)
		w.drain()
		w.clock.advance(time.Minute)
		require.Zero(t, deliver(w, 2))
		require.Equal(t, []session.Wake{w.wake(4, session.WakeStep)}, w.drain())
	})
	t.Run("the session was deleted", func(t *testing.T) {
		t.Parallel()
		w := begun(t)
		require.NoError(t, w.store.Delete(t.Context(), w.key))
		require.Zero(t, deliver(w, 2))
		require.Empty(t, w.effects.all())
	})
}
