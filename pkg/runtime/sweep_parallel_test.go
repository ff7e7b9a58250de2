package runtime_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// slowReads is a store whose reads of items take a second, and that notes how many
// are under way at once.
type slowReads struct {
	store.Store
	mu        sync.Mutex
	now, most int
	panics    bool
}

func (s *slowReads) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if key.Tenant == store.Everywhere {
		return s.Store.Items(ctx, key, kind, id)
	}
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if s.panics {
		panic("no items")
	}
	return s.Store.Items(ctx, key, kind, id)
}

// TestSweep_at_once: the sweep looks at as many items side by side as it is told,
// does for each what it is due for, and a panic reaches whoever sweeps.
func TestSweep_at_once(t *testing.T) {
	t.Parallel()
	const sessions = 10
	lost := func(t *testing.T, atOnce int) (*bundle, *slowReads) {
		t.Helper()
		var s *slowReads
		b := setup(t, func(cfg *runtime.Config) {
			s = &slowReads{Store: cfg.Store}
			cfg.SweepAtOnce = atOnce
		})
		for range sessions {
			b.key.ID = newID()
			_, err := b.Start(t.Context(), runtime.StartParams{Key: b.key, Agent: "lab", Input: llm.TextParts("[{say: done}]"), Caller: person})
			require.NoError(t, err)
		}
		b.cfg.Store = s
		var err error
		b.Runtime, err = runtime.New(b.cfg)
		require.NoError(t, err)
		time.Sleep(time.Minute) // nobody receives what was sent
		return b, s
	}
	for name, c := range map[string]struct{ told, most int }{"one by default": {0, 1}, "four": {4, 4}, "more than there are": {32, sessions}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, s := lost(t, c.told)
				began := time.Now()
				swept, err := b.Sweep(t.Context())
				require.NoError(t, err)
				require.Equal(t, runtime.SweepResult{Resent: sessions}, swept)
				require.Equal(t, c.most, s.most)
				require.Equal(t, time.Duration((sessions+c.most-1)/c.most)*time.Second, time.Since(began))
			})
		})
	}
	t.Run("a panic", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b, s := lost(t, 4)
			s.panics = true
			require.PanicsWithValue(t, "no items", func() { _, _ = b.Sweep(t.Context()) })
			require.Zero(t, s.now, "and nothing is left behind")
		})
	})
	t.Run("one that waits for two answers is sent for once", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
		p := w.process(func(cfg *runtime.Config) { cfg.SweepAtOnce = 8 })
		w.run(p, "go")
		for range 2 {
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
		}
		w.drain()
		w.clock.advance(time.Minute)
		require.Equal(t, 1, sweepOf(t, p).Resumed)
		require.Len(t, w.drain(), 1)
	})
}

// TestSweep_with_a_clock_that_is_wrong: a clock ahead of the deadline of the context leaves the
// sweep no time by its reckoning. It still has some for each item.
func TestSweep_with_a_clock_that_is_wrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		_, err := b.Start(t.Context(), runtime.StartParams{Key: b.key, Agent: "lab", Input: llm.TextParts("[{say: done}]"), Caller: person})
		require.NoError(t, err)
		b.cfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
		b.Runtime, err = runtime.New(b.cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		swept, err := b.Sweep(ctx)
		require.NoError(t, err)
		require.Equal(t, runtime.SweepResult{Resent: 1}, swept)
	})
}
