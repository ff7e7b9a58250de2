package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// tooLate reports whether a request was refused because the session is gone, or has moved on.
func tooLate(err error) bool {
	return codeOf(err) == runtime.CodeSessionNotFound || stoppedCodes[codeOf(err)]
}

// beside are what may happen to a session while it is deleted.
func beside() map[string]func(w *world, p *process) error {
	unlessLate := func(err error) error {
		if err == nil || tooLate(err) {
			return nil
		}
		return err
	}
	return map[string]func(w *world, p *process) error{
		"a worker": func(_ *world, p *process) error { return p.work() },
		"the sweep": func(w *world, p *process) error {
			w.clock.advance(time.Minute)
			_, err := p.Sweep(context.Background())
			return errors.Join(err, p.work())
		},
		"the last answers": func(w *world, p *process) error {
			for _, item := range w.items(store.KindWait) {
				_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(item.Wait.Wait, yes())})
				if unlessLate(err) != nil {
					return err
				}
			}
			return p.work()
		},
		"going back": func(w *world, p *process) error {
			for e, err := range w.store.Entries(context.Background(), w.key, 0) {
				if err != nil {
					return err
				}
				if e.Kind != session.KindSuspended {
					continue
				}
				_, err := acknowledging(p, &runtime.BackParams{Key: w.key, Checkpoint: e.Checkpoint(w.key.ID).String(), Caller: people})
				return errors.Join(unlessLate(err), p.work())
			}
			return nil // there is nothing to go back to
		},
		"cancel": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalCancel)
			return unlessLate(err)
		},
		"abort": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalAbort)
			return unlessLate(err)
		},
		"interrupt, continue": func(w *world, p *process) error {
			_, err := w.stop(p, runtime.SignalInterrupt)
			if unlessLate(err) != nil {
				return err
			}
			_, err = w.goOn(p)
			return errors.Join(unlessLate(err), p.work())
		},
		"another delete": func(w *world, p *process) error {
			_, err := w.delete(p)
			return unlessLate(err)
		},
		"a next turn": func(w *world, p *process) error {
			_, err := p.Start(context.Background(), runtime.StartParams{Key: w.key, Input: llm.TextParts("more"), Caller: person})
			return errors.Join(unlessLate(err), p.work())
		},
	}
}

// Whatever happens between any two calls of the verb, the session is gone afterwards, for good; no
// effect happens twice, and none after it was deleted.
func TestDelete_crossed_everywhere(t *testing.T) {
	t.Parallel()
	for name, place := range deletePlaces() {
		for what, crosses := range beside() {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, stopScript()))
				for at := 0; ; at++ {
					world = world.another()
					w := world
					place(t, w)
					p, over := w.crossed(at, func() { require.NoError(t, crosses(w, w.process()), "crossed at call %d", at) })
					_, err := w.delete(p)
					if err != nil {
						require.Equal(t, runtime.CodeSessionNotFound, codeOf(err), "crossed at call %d: %v", at, err)
						require.Equal(t, "another delete", what)
					}
					effects := made.all()
					w.checkGone(p)
					w.clock.advance(time.Minute)
					require.NoError(t, w.process().settle(), "crossed at call %d", at)
					w.checkGone(w.process())
					require.Equal(t, effects, made.all(), "crossed at call %d", at)
					for what, n := range made.all() {
						require.Equal(t, 1, n, "crossed at call %d: %s", at, what)
					}
					if over() {
						break
					}
				}
			})
		}
	}
}

// The session is deleted between any two calls of whatever else happens to it: that loses, or was
// first; what is deleted stays deleted.
func TestDelete_crosses_everywhere(t *testing.T) {
	t.Parallel()
	for name, place := range deletePlaces() {
		for what, does := range beside() {
			for _, removed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/removed=%v", name, what, removed), func(t *testing.T) {
					t.Parallel()
					made := newEffects()
					world := newWorld(t, made, helper(made, stopScript()))
					for at := 0; ; at++ {
						world = world.another()
						w := world
						place(t, w)
						effects, begun := map[string]int{}, false
						p, over := w.crossed(at, func() {
							// Between its entry and the removal, when no call can begin any more: one that runs
							// beside this may have begun up to that entry.
							noted := &storeHook{when: func(c storeCall) bool { return c.removes }, happens: func() { begun = w.begunCalls() }}
							deleter := w.process(func(cfg *runtime.Config) {
								noted.Store = cfg.Store
								if !removed {
									noted.Store = kept{cfg.Store}
								}
								cfg.Store = noted
							})
							_, err := w.delete(deleter)
							if errors.Is(err, errKept) && !removed {
								err = nil
							}
							if err != nil {
								require.Equal(t, "another delete", what)
								require.Equal(t, runtime.CodeSessionNotFound, codeOf(err), "crossed at call %d: %v", at, err)
							}
							effects = made.all()
						})
						require.NoError(t, does(w, p), "crossed at call %d", at)
						if over() {
							break
						}
						after := made.all()
						w.clock.advance(time.Minute)
						require.NoError(t, w.process().settle(), "crossed at call %d", at)
						w.checkGone(w.process())
						require.Equal(t, after, made.all(), "crossed at call %d: what goes on after it", at)
						for what, n := range after {
							require.Equal(t, 1, n, "crossed at call %d: %s", at, what)
							require.True(t, effects[what] == n || begun, "crossed at call %d: %s began after the session was deleted", at, what)
						}
					}
				})
			}
		}
	}
}

// A process that deletes dies at any of its writes; who asked asks again, or nobody does and the sweep
// finishes what was begun.
func TestDelete_dies_after_every_write(t *testing.T) {
	t.Parallel()
	for name, place := range deletePlaces() {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/again=%v", name, again), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, stopScript()))
				for at := 1; ; at++ {
					for _, after := range []bool{false, true} {
						world = world.another()
						w := world
						place(t, w)
						status := w.session().Status
						f := &fuse{at: at, after: after}
						params := runtime.DeleteParams{Key: w.key, Caller: people, IdempotencyKey: newID()}
						_, err := w.fusedProcess(f, true, 1).Delete(context.Background(), params)
						if !f.blown() {
							require.NoError(t, err)
							require.Greater(t, at, 2, "it commits, and removes")
							return
						}
						deleted := w.head().Head.Gone(w.clock.Now())
						if again {
							out, err := w.process().Delete(context.Background(), params)
							require.NoError(t, err, "%v", f.ops)
							require.Equal(t, runtime.Deleted{Status: status, Task: 1, Replayed: deleted}, out)
							w.checkGone(w.process())
							continue
						}
						if !deleted {
							continue // nothing has happened
						}
						w.clock.advance(time.Minute)
						require.NoError(t, w.process().settle(), "%v", f.ops)
						w.checkGone(w.process())
					}
				}
			})
		}
	}
}

// A worker is stopped before, or after, each of its writes; the session is deleted, and the worker
// goes on: it writes nothing into it, neither an entry nor a ledger, and begins no effect.
func TestDelete_frozen_everywhere(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, removed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/removed=%v", sc.name, removed), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, sc.lines, func(a *agent.Agent) { a.Policy = sc.policy }))
				runs := sampler(t)
				for n := 1; ; n++ {
					frozen := false
					for _, after := range []bool{false, true} {
						if n > 1 && !runs() {
							frozen = true
							continue
						}
						w = w.another()
						frozen = w.frozenAndDeleted(sc, newGate(n, after), removed) || frozen
					}
					if !frozen {
						return
					}
				}
			})
		}
	}
}

// entriesLeft returns how many entries the store has, of a session that is gone for every reader.
func (w *world) entriesLeft() (n int) {
	for _, err := range w.store.Entries(context.Background(), w.key, 0) {
		require.NoError(w.t, err)
		n++
	}
	return n
}

// begunCalls reports whether a call has begun whose end nobody has noted: it cannot be called back.
func (w *world) begunCalls() bool {
	return slices.ContainsFunc(w.items(store.KindTool), func(item store.Item) bool { return item.Tool.State == journal.ToolStarted })
}

// frozenAndDeleted deletes the session while its worker is frozen, and reports whether it was.
func (w *world) frozenAndDeleted(sc scenario, g *gate, removed bool) bool {
	t := w.t
	t.Helper()
	first := w.process(func(cfg *runtime.Config) {
		cfg.Store = &gatedStore{Store: w.store, gate: g, detached: true}
		cfg.Queue = &gatedQueue{Queue: w.queue, gate: g}
		cfg.WatchEvery = time.Hour // the watcher of a frozen sandbox is frozen too
	})
	for _, do := range sc.acts {
		done := make(chan error, 1)
		go func() {
			err := do(w, first)
			if err == nil {
				err = first.settle()
			}
			done <- err
		}()
		select {
		case err := <-done:
			require.NoError(t, err, g.list())
			continue
		case <-g.frozen:
		}
		for g.busy.Load() > 0 {
			goruntime.Gosched()
		}
		if len(w.items(store.KindHead)) == 0 { // nothing has begun
			close(g.thawed)
			<-done
			return true
		}
		second := w.process(func(cfg *runtime.Config) {
			if !removed {
				cfg.Store = kept{cfg.Store}
			}
		})
		begunBefore := w.begunCalls()
		_, err := w.delete(second)
		if !removed {
			require.ErrorIs(t, err, errKept)
		} else {
			require.NoError(t, err, g.list())
		}
		ledgers, head, effects := w.items(store.KindTool), w.head(), w.effects.all()
		begun := begunBefore || sc.name == "idempotent and parallel" || sc.name == "question of an idempotent tool"
		entries := w.entriesLeft()
		close(g.thawed)
		<-done      // whatever it was told
		if !begun { // what had begun, or may be begun again, is not called back
			require.Equal(t, effects, w.effects.all(), "it began something: %v", g.list())
		}
		left := w.entriesLeft()
		if removed || !w.head().Head.Deleted { // nor has its own sweep removed it
			require.Equal(t, entries, left, "it wrote an entry: %v", g.list())
			require.Equal(t, asJSON(t, ledgers), asJSON(t, w.items(store.KindTool)), "it wrote into a ledger: %v", g.list())
			require.Equal(t, head.Rev, w.head().Rev)
		}
		w.clock.advance(time.Minute)
		require.NoError(t, w.process().settle())
		w.checkGone(w.process())
		return true
	}
	return false
}

// The same at once, in goroutines: for the race detector, and for orders that no list of calls has.
func TestDelete_at_once_everywhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"just started", "waiting", "answered", "completed"} {
		for what, does := range beside() {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, stopScript()))
				for range raced() {
					world = world.another()
					w := world
					deletePlaces()[name](t, w)
					deleter, other := w.process(), w.process()
					begin, done := make(chan bool), make(chan error, 1)
					go func() {
						<-begin
						done <- does(w, other)
					}()
					close(begin)
					_, err := w.delete(deleter)
					if err != nil {
						require.Equal(t, "another delete", what, "%v", err)
						require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
					}
					require.NoError(t, <-done)
					w.clock.advance(time.Minute)
					require.NoError(t, w.process().settle())
					w.checkGone(w.process())
					for what, n := range made.all() {
						require.Equal(t, 1, n, what)
					}
				}
			})
		}
	}
}

// A worker in the middle of a tool is told within a second, before its next write.
func TestDelete_is_seen_by_the_worker(t *testing.T) {
	t.Parallel()
	for _, removed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			made := newEffects()
			var saw time.Duration
			w := realTime(t, made, hooked(made, script{"go": {calls("hook", `{"text":"a"}`), says("bye")}}, func(ctx context.Context, _ string) {
				began := time.Now()
				<-ctx.Done()
				saw = time.Since(began)
			}))
			p := w.process()
			w.start(p, "go")
			time.AfterFunc(1100*time.Millisecond, func() {
				_, err := w.delete(w.process(func(cfg *runtime.Config) {
					if !removed {
						cfg.Store = kept{cfg.Store}
					}
				}))
				require.Equal(t, removed, err == nil, "%v", err)
			})
			require.Equal(t, acknowledged, w.deliver(p, 2, journal.WakeStep))
			require.Less(t, saw, 2100*time.Millisecond)
			require.Greater(t, saw, time.Second)
		})
	}
}
