package runtime_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// Whatever happens between any two calls of the verb: a message that was accepted is in the history
// once, and one that was refused is not.
func TestSend_crossed_everywhere(t *testing.T) {
	t.Parallel()
	stopping := func(kind runtime.SignalKind) func(*world, *process) error {
		return func(w *world, p *process) error {
			_, err := w.stop(p, kind)
			return err
		}
	}
	unlessRefused := func(err error) error {
		if codeOf(err) != "" {
			return nil
		}
		return err
	}
	crossings := map[string]func(w *world, p *process) error{
		"a whole turn": func(w *world, p *process) error {
			_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
			if unlessRefused(err) != nil {
				return err
			}
			return p.work()
		},
		"a worker":  func(_ *world, p *process) error { return p.work() },
		"interrupt": func(w *world, p *process) error { return unlessRefused(stopping(runtime.SignalInterrupt)(w, p)) },
		"cancel":    stopping(runtime.SignalCancel),
		"abort":     stopping(runtime.SignalAbort),
		"another message": func(w *world, p *process) error {
			_, err := w.send(p, func(p *runtime.SendParams) { p.Message, p.Start = llm.TextParts("other"), true })
			return unlessRefused(err)
		},
		"the next turn": func(w *world, p *process) error {
			_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
			return unlessRefused(err)
		},
		"the answers": func(w *world, p *process) error {
			for _, record := range w.waits() {
				a := yes()
				if record.Wait.Kind == session.WaitInput {
					a = session.Answer{Message: llm.TextParts("elsewhere")}
				}
				if _, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, a)}); unlessRefused(err) != nil {
					return err
				}
			}
			return p.work()
		},
	}
	for name, c := range sendPlaces {
		for what, crosses := range crossings {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, sendScript()))
				for at := 0; ; at++ {
					w = w.another()
					c.place(t, w)
					p, over := w.crossed(at, func() { require.NoError(t, crosses(w, w.process())) })
					id := newID()
					key := func(p *runtime.SendParams) { p.IdempotencyKey = id }
					first, err := w.send(p, withStart, key)
					w.settledWith(err, fmt.Sprintf("crossed at call %d", at))
					if err == nil {
						again, err := w.send(w.process(), withStart, key)
						require.NoError(t, err)
						require.True(t, again.Replayed)
						if first.Outcome == session.SendStarted {
							entry := w.journal()[first.Seq-1]
							require.Equal(t, first.Task, entry.Task, "crossed at call %d", at)
							require.Contains(t, asJSON(t, entry.Messages), "steer", "crossed at call %d", at)
						}
						require.Equal(t, []any{first.Outcome, first.Task, first.Seq, first.Mail}, []any{again.Outcome, again.Task, again.Seq, again.Mail}, "crossed at call %d", at)
					}
					if over() {
						return
					}
				}
			})
		}
	}
}

// settledWith brings a session to rest, and holds that a message that was sent to it is in its history
// once, or, refused, not at all.
func (w *world) settledWith(err error, label string) {
	w.t.Helper()
	want := 1
	if err != nil {
		want = 0
		require.True(w.t, stoppedCodes[codeOf(err)], "%s: %v", label, err)
	}
	w.clock.advance(2 * time.Hour)
	require.NoError(w.t, w.process().settle(), label)
	if w.session().Status == session.StatusInterrupted { // an answer is only stored then
		_, err := w.goOn(w.process())
		require.NoError(w.t, err, label)
		require.NoError(w.t, w.process().settle(), label)
	}
	require.Equal(w.t, want, w.told("steer"), "%s: %v", label, w.kinds())
	for what, n := range w.effects.all() {
		require.Equal(w.t, 1, n, "%s: %s", label, what)
	}
	w.checkMail()
	w.checkNothingForgotten()
}

// A message comes between any two calls of a worker that suspends, completes, fails, puts a retry off
// or obeys a signal: it is taken in by that step or by the one after it.
func TestSend_into_a_step_everywhere(t *testing.T) {
	t.Parallel()
	scripts := byTools()
	maps.Copy(scripts, byPlanner(func(context.Context, string) {}))
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		for _, signal := range []runtime.SignalKind{"", runtime.SignalInterrupt, runtime.SignalCancel, runtime.SignalAbort} {
			t.Run(name+"/"+string(signal), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, hooked(made, scripts[name], func(context.Context, string) {}))
				for at := 0; ; at++ {
					w = w.another()
					calls := 0
					cross := &storeHook{when: func(storeCall) bool { calls++; return calls > at }}
					p := w.process(func(cfg *runtime.Config) {
						cross.Store, cfg.WatchEvery, cfg.StepsPerInvocation = cfg.Store, time.Hour, 1+at%2
						cfg.Store = cross
					})
					w.start(w.process(), "go")
					if signal != "" {
						w.signal(signal)
					}
					var err error
					cross.happens = func() { _, err = w.send(w.process()) }
					require.NoError(t, p.work())
					if calls <= at {
						return
					}
					w.settledWith(err, fmt.Sprintf("crossed at call %d", at))
				}
			})
		}
	}
}

// A process that sends dies at any of its writes; who asked asks again with the same key.
func TestSend_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for name, c := range sendPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, sendScript()))
			for at := 1; ; at++ {
				for _, after := range []bool{false, true} {
					w = w.another()
					c.place(t, w)
					f := &fuse{at: at, after: after}
					id := newID()
					key := func(p *runtime.SendParams) { p.IdempotencyKey = id }
					_, err := w.send(w.fusedProcess(f, true, 1), withStart, key)
					if !f.blown() {
						require.NoError(t, err)
						return
					}
					out, err := w.send(w.process(), withStart, key)
					require.NoError(t, err, "%v", f.ops)
					require.Equal(t, c.want, out.Outcome, "%v", f.ops)
					require.Equal(t, after || at > 1, out.Replayed, "%v", f.ops)
					w.settledWith(nil, fmt.Sprint(f.ops))
				}
			}
		})
	}
}

// Where a read fails nothing is done, or all of it: asked again, the message is taken once.
func TestSend_where_the_store_cannot_be_read(t *testing.T) {
	t.Parallel()
	for name, c := range sendPlaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, sendScript()))
			for at := 0; ; at++ {
				w = w.another()
				c.place(t, w)
				id := newID()
				key := func(p *runtime.SendParams) { p.IdempotencyKey = id }
				failing := &failingRead{Store: w.store, at: at}
				_, err := w.send(w.process(func(cfg *runtime.Config) { cfg.Store = failing }), withStart, key)
				if failing.at >= 0 {
					require.NoError(t, err)
					return
				}
				if err != nil {
					require.Equal(t, runtime.CodeStoreUnavailable, codeOf(err), "read %d", at)
					_, err = w.send(w.process(), withStart, key)
					require.NoError(t, err, "read %d", at)
				}
				w.settledWith(nil, fmt.Sprintf("read %d", at))
			}
		})
	}
}

// Messages race with the worker that suspends, completes or fails the task, and with who cancels it:
// what was accepted is in the history once.
func TestSend_races(t *testing.T) {
	t.Parallel()
	scripts := byTools()
	maps.Copy(scripts, byPlanner(func(context.Context, string) {}))
	for name, lines := range scripts {
		for _, signal := range []runtime.SignalKind{"", runtime.SignalCancel} {
			t.Run(name+"/"+string(signal), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, hooked(made, lines, func(context.Context, string) {}))
				for range raced() {
					w = w.another()
					w.start(w.process(), "go")
					works, sends, stops := w.process(), w.process(), w.process()
					var worked, sent, stopped error
					var all sync.WaitGroup
					all.Go(func() { worked = works.work() })
					all.Go(func() { _, sent = w.send(sends) })
					if signal != "" {
						all.Go(func() { _, stopped = w.stop(stops, signal) })
					}
					all.Wait()
					require.NoError(t, worked)
					require.NoError(t, stopped)
					w.settledWith(sent, "raced")
				}
			})
		}
	}
}
