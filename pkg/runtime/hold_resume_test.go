package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// off sets a process's clock so far ahead of the world's, or back.
func off(w *world, by time.Duration) func(*runtime.Config) {
	return func(cfg *runtime.Config) {
		cfg.Now = func() time.Time { return w.clock.Now().Add(by) }
	}
}

// aroundUpdate is a store on which something happens before or after the next update
// of a process.
type aroundUpdate struct {
	store.Store
	before, after func()
}

func (b *aroundUpdate) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	before, after := b.before, b.after
	b.before, b.after = nil, nil
	if before != nil {
		before()
	}
	out, err := b.Store.Update(ctx, key, items...)
	if after != nil {
		after()
	}
	return out, err
}

// TestHeld_order_is_never_that_of_clocks: of two answers, one of which is only to
// be stored, the last decides whether the session goes on, whatever the clocks of
// those who gave them say, and whoever dies.
func TestHeld_order_is_never_that_of_clocks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for skew, by := range map[string]time.Duration{"a second ahead": time.Second, "a day ahead": 24 * time.Hour, "the same": 0, "a day behind": -24 * time.Hour} {
		setup := func(t *testing.T) (w *world, holder func(*aroundUpdate) *process, other *process) {
			t.Helper()
			w = newWorld(t, newEffects(), helper(newEffects(), script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
			other = w.process()
			w.run(other, "go")
			holder = func(b *aroundUpdate) *process {
				return w.process(off(w, by), func(cfg *runtime.Config) { b.Store, cfg.Store = cfg.Store, b })
			}
			return w, holder, other
		}
		answer := func(t *testing.T, w *world, p *process, i int, hold bool) runtime.Continuation {
			t.Helper()
			out, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: hold, Answer: fill(w.waits()[i].Wait, yes())})
			require.NoError(t, err)
			return out.Continuation
		}
		completesLater := func(t *testing.T, w *world) {
			t.Helper()
			w.clock.advance(25 * time.Hour)
			require.NoError(t, w.process().settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
		}
		stays := func(t *testing.T, w *world) {
			t.Helper()
			for range 3 {
				w.clock.advance(25 * time.Hour)
				sweepOf(t, w.process())
			}
			require.Empty(t, w.drain())
			require.Equal(t, session.StatusSuspended, w.session().Status)
			rests, err := w.process().AwaitRest(ctx, w.key, 0, 0)
			require.NoError(t, err)
			require.True(t, rests)
			_, err = w.process().Resume(ctx, runtime.ResumeParams{Key: w.key, Caller: person})
			require.NoError(t, err)
			completesLater(t, w)
		}
		t.Run(skew+"/held first, and the last answerer dies", func(t *testing.T) {
			t.Parallel()
			w, holder, _ := setup(t)
			require.Equal(t, runtime.ContinuationWaiting, answer(t, w, holder(&aroundUpdate{}), 0, true))
			_, err := w.fusedProcess(&fuse{at: 1, after: true}, true, 1).Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[1].Wait, yes())})
			require.ErrorIs(t, err, errDied)
			require.Empty(t, w.drain())
			completesLater(t, w)
		})
		t.Run(skew+"/held last", func(t *testing.T) {
			t.Parallel()
			w, holder, other := setup(t)
			require.Equal(t, runtime.ContinuationWaiting, answer(t, w, other, 1, false))
			require.Equal(t, runtime.ContinuationStored, answer(t, w, holder(&aroundUpdate{}), 0, true))
			stays(t, w)
		})
		t.Run(skew+"/held last, while the first answerer has not looked yet", func(t *testing.T) {
			t.Parallel()
			w, holder, _ := setup(t)
			slow := &aroundUpdate{}
			first := w.process(func(cfg *runtime.Config) { slow.Store, cfg.Store = cfg.Store, slow })
			slow.after = func() { require.Equal(t, runtime.ContinuationStored, answer(t, w, holder(&aroundUpdate{}), 0, true)) }
			require.Equal(t, runtime.ContinuationStored, answer(t, w, first, 1, false), "nor does an answerer drive on")
			stays(t, w)
		})
		t.Run(skew+"/held, while another answer comes after its look and before its write", func(t *testing.T) {
			t.Parallel()
			w, holder, other := setup(t)
			b := &aroundUpdate{}
			b.before = func() {
				require.Equal(t, runtime.ContinuationWaiting, answer(t, w, other, 1, false))
				w.clock.advance(time.Minute)
				require.Zero(t, sweepOf(t, w.process()), "one is open: the due of the other is taken away")
			}
			answer(t, w, holder(b), 0, true)
			completesLater(t, w)
		})
		t.Run(skew+"/both held, each before the other's write", func(t *testing.T) {
			t.Parallel()
			w, holder, other := setup(t)
			b := &aroundUpdate{}
			b.before = func() { require.Equal(t, runtime.ContinuationWaiting, answer(t, w, other, 1, true)) }
			require.Equal(t, runtime.ContinuationStored, answer(t, w, holder(b), 0, true))
			stays(t, w)
		})
	}
}
