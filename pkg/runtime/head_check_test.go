package runtime_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
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

// afterCommit is a store on which something happens right after an entry was
// committed, before the worker's next claim; detached as a store does that shares no
// transaction with its claims.
func afterCommit(s store.Store, detached bool, happens func(journal.Entry)) store.Store {
	return &hook{Store: s, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
		if detached {
			p.Claim = nil
		}
		out, err := s.Commit(ctx, p)
		if err == nil {
			happens(p.Entry)
		}
		return out, err
	}}
}

// byTools are steps that end or rest a task and run the tool hook before.
func byTools() map[string]script {
	return map[string]script{
		"finishing":  {"go": {calls("hook", `{"text":"a"}`, "end", `{"text":"b"}`)}, "also": {says("both")}},
		"suspending": {"go": {calls("hook", `{"text":"a"}`, "deploy", `{"text":"b"}`)}, "also": {says("both")}},
		"asking":     {"go": {calls("hook", `{"text":"a"}`, "pick", `{"text":"b"}`)}, "also": {says("both")}},
		"going on":   {"go": {calls("hook", `{"text":"a"}`), says("bye")}, "also": {says("both")}},
	}
}

// byPlanner are steps that do so without a tool; hook runs in their planner.
func byPlanner(hook func(context.Context, string)) map[string]script {
	then := func(next turn) turn {
		return func(ctx context.Context, v agent.View) (agent.Reply, error) {
			hook(ctx, "plan")
			return next(ctx, v)
		}
	}
	return map[string]script{
		"completing":           {"go": {then(says("bye"))}, "also": {says("both")}},
		"suspending for input": {"go": {then(needs("what?"))}, "also": {says("both")}},
		"failing":              {"go": {then(fails(&llm.Error{Class: llm.ClassInvalid}))}, "also": {says("both")}},
		"putting a retry off":  {"go": {then(fails(busy)), says("bye")}, "also": {says("both")}},
	}
}

// What comes between the reply's entry and the claim of the next is in the revision
// of HEAD that this claim hands over: it is looked at before anything is conditioned on it.
func TestHeadCheck_signal_in_the_revision_the_next_claim_hands_over(t *testing.T) {
	t.Parallel()
	for name, lines := range byTools() {
		for _, detached := range []bool{true, false} {
			for kind, want := range map[journal.SignalKind]session.Status{
				journal.SignalCancel: session.StatusCancelled, journal.SignalInterrupt: session.StatusInterrupted,
			} {
				t.Run(fmt.Sprintf("%s/%s/detached=%v", name, kind, detached), func(t *testing.T) {
					t.Parallel()
					made := newEffects()
					w := newWorld(t, made, hooked(made, lines, func(context.Context, string) {}))
					p := w.process(func(cfg *runtime.Config) {
						cfg.WatchEvery, cfg.StepsPerInvocation = time.Hour, 9
						cfg.Store = afterCommit(w.store, detached, func(e journal.Entry) {
							if e.Kind == session.KindReplied {
								w.signal(kind)
							}
						})
					})
					w.start(p, "go")
					require.NoError(t, p.work())
					require.Equal(t, want, w.session().Status, "%v", w.kinds())
					require.Nil(t, w.head().Head.Signal, "the entry that obeys it clears it")
					if detached {
						require.Empty(t, made.all(), "after a reply that asks for tools and before any runs")
					}
					w.checkAtRest()
				})
			}
		}
	}
}

// A signal or mail that comes while a step works is not passed over by the entry
// that ends it, whether the watcher has taken HEAD's new revision over or not.
func TestHeadCheck_what_comes_during_a_step(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(byTools())), slices.Sorted(maps.Keys(byPlanner(nil)))) {
		for _, watched := range []bool{true, false} {
			for _, what := range []string{"mail", "cancel"} {
				t.Run(fmt.Sprintf("%s/%s/watched=%v", name, what, watched), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						made := newEffects()
						var w *world
						var once sync.Once
						come := func(context.Context, string) {
							once.Do(func() {
								if what == "mail" {
									w.mail("m1", "also")
								} else {
									w.signal(journal.SignalCancel)
								}
							})
							if watched {
								time.Sleep(time.Second)
							}
						}
						lines := byTools()
						maps.Copy(lines, byPlanner(come))
						w = newWorld(t, made, hooked(made, lines[name], come))
						p := w.process(func(cfg *runtime.Config) {
							cfg.Now, cfg.StepsPerInvocation = time.Now, 1
							if !watched {
								cfg.WatchEvery = time.Hour
							}
						})
						w.clock.advance(time.Since(epoch))
						w.start(p, "go")
						deliveries := w.drain()
						_, err := p.Deliver(context.Background(), deliveries[0])
						require.NoError(t, err)
						s := w.session()
						switch {
						case what == "cancel" && s.Status == session.StatusRunning:
							require.Equal(t, session.KindStepped, s.Newest.Kind, "the next step obeys it")
							require.NotNil(t, w.head().Head.Signal)
						case what == "cancel":
							require.Equal(t, session.StatusCancelled, s.Status, "%v", w.kinds())
						case s.Newest.Kind == session.KindDelayed, name == "going on":
							require.EqualValues(t, 1, w.head().Head.MailCount, "the next step takes it in")
						default:
							require.True(t, s.Mail["m1"], "%v", w.kinds())
						}
					})
				})
			}
		}
	}
}

// A step that plans nothing, because calls are open, takes in the mail that was
// there before it, too.
func TestHeadCheck_mail_that_came_before_a_step_that_does_not_plan(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"end", "deploy"} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"a"}`, last, `{"text":"b"}`)}, "also": {says("both")}}))
			f := &fuse{at: 5} // replied is there, the first mark is not
			p := w.fusedProcess(f, true, 1)
			w.start(p, "go")
			require.ErrorIs(t, p.work(), errDied)
			w.mail("m1", "also")
			require.NoError(t, w.process().settle())
			s := w.session()
			require.True(t, s.Mail["m1"], "%v", w.kinds())
			if last == "end" {
				require.Equal(t, "both", s.Messages[len(s.Messages)-1].Text())
			}
			w.checkAtRest()
		})
	}
}

// A retry is put off only onto a HEAD without a signal: what stops the task does
// not wait for it.
func TestHeadCheck_signal_that_comes_when_a_retry_is_put_off(t *testing.T) {
	t.Parallel()
	for _, watch := range []bool{true, false} {
		made := newEffects()
		var w *world
		w = newWorld(t, made, helper(made, script{"go": {func(context.Context, agent.View) (agent.Reply, error) {
			if watch {
				w.signal(journal.SignalCancel)
			}
			return agent.Reply{}, busy
		}}}))
		p := w.process(func(cfg *runtime.Config) {
			cfg.WatchEvery = time.Hour
			cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
				if e.Kind == session.KindDelayed && !watch {
					watch = true
					w.signal(journal.SignalCancel)
				}
			}}
		})
		w.run(p, "go")
		require.Equal(t, []session.Kind{session.KindStarted, session.KindCancelled}, w.kinds())
		w.checkAtRest()
	}
}

// A task whose worker dies again and again is not failed over a signal.
func TestHeadCheck_signal_when_the_dead_letters_give_a_task_up(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.MaxClaims = 1 })
	w.start(p, "go")
	w.drain()
	w.claimAs("dead", 2)
	w.clock.advance(time.Hour)
	w.signal(journal.SignalCancel)
	_, err := p.DeadLetter(context.Background(), w.wake(2, journal.WakeStep))
	require.NoError(t, err)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindCancelled}, w.kinds())
}

// Somebody interrupts again just before the entry that obeys the first signal: the
// entry records the one that HEAD holds, so that none is left for who goes on.
func TestHeadCheck_signal_of_the_same_strength(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("bye")}}))
	var second string
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
			if e.Kind == session.KindInterrupted && second == "" {
				second = w.signal(journal.SignalInterrupt)
			}
		}}
	})
	w.start(p, "go")
	w.signal(journal.SignalInterrupt)
	require.NoError(t, p.work())
	require.Equal(t, []session.Kind{session.KindStarted, session.KindInterrupted}, w.kinds())
	require.Equal(t, second, w.journal()[1].Signal.ID)
	require.Nil(t, w.head().Head.Signal)
	_, err := w.goOn(p)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status, "%v", w.kinds())
}

// The entry that obeys a signal takes the mail in that came before it: nothing that was sent to a
// task is left for another one.
func TestHeadCheck_mail_beside_a_signal(t *testing.T) {
	t.Parallel()
	for kind, want := range stoppedAs {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {says("bye")}, "also": {says("both")}, "next": {says("next")}}))
			p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
			w.start(p, "go")
			w.mail("m1", "also")
			w.signal(kind)
			require.NoError(t, p.work())
			require.Len(t, w.kinds(), 2)
			require.Equal(t, kind, w.journal()[1].Signal.Kind)
			require.Equal(t, want, w.session().Status)
			require.Equal(t, []string{"m1"}, w.journal()[1].Mail)
			require.Equal(t, llm.User("also"), w.session().Messages[1])
			switch kind {
			case journal.SignalInterrupt:
				_, err := w.goOn(p)
				require.NoError(t, err)
			case journal.SignalCancel:
				w.start(p, "next")
			case journal.SignalAbort:
			}
			require.NoError(t, p.settle())
			told := 0
			for _, m := range w.session().Messages {
				if m.Text() == "also" {
					told++
				}
			}
			require.Equal(t, 1, told, "%v", w.kinds())
			w.checkAtRest()
		})
	}
}

// Mail that comes just before that entry is written refuses it, and is taken in.
func TestHeadCheck_mail_that_comes_when_a_signal_is_obeyed(t *testing.T) {
	t.Parallel()
	for kind, want := range stoppedAs {
		for _, verb := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/verb=%v", kind, verb), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
				came := false
				p := w.process(func(cfg *runtime.Config) {
					cfg.WatchEvery = time.Hour
					cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
						if e.Signal != nil && !came {
							came = true
							w.mail("m1", "also")
						}
					}}
				})
				w.start(p, "go")
				if verb {
					_, err := w.stop(p, kind)
					require.NoError(t, err)
				} else {
					w.signal(kind)
					require.NoError(t, p.work())
				}
				require.True(t, came)
				require.Equal(t, want, w.session().Status)
				require.Equal(t, []string{"m1"}, w.journal()[1].Mail)
				w.checkAtRest()
			})
		}
	}
}

// The entry that obeys a signal cannot be written: calls that asked a person have
// returned all the same, and are not told as cut off by whoever obeys it then.
func TestSignal_that_cannot_be_committed_lets_calls_that_asked_start_again(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.SignalKind{journal.SignalInterrupt, journal.SignalCancel} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			var w *world
			w = newWorld(t, made, hooked(made, script{"go": {calls("hook", `{"text":"a"}`, "pick", `{"text":"b"}`)}}, func(context.Context, string) { w.signal(kind) }))
			down := &storeHook{Store: w.store}
			p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery, cfg.Store = time.Hour, down })
			down.refuse = func(e journal.Entry) bool { return e.Signal != nil }
			w.start(p, "go")
			_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.ErrorIs(t, err, store.ErrUnavailable)
			asked := w.items(store.KindTool)[1]
			require.Equal(t, "c2-2", asked.ID)
			if kind == journal.SignalInterrupt {
				require.Equal(t, journal.ToolAsking, asked.Tool.State)
			}
			require.NoError(t, w.process().settle())
			require.NotEqual(t, llm.ResultUnknown, results(w.session())["c2-2"].Status)
			w.checkAtRest()
			if kind == journal.SignalCancel {
				require.Equal(t, journal.ToolClosed, w.items(store.KindTool)[1].Tool.State, "and it never starts again")
				return
			}
			_, err = w.process().Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person})
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			require.Equal(t, session.StatusSuspended, w.session().Status, "it asks anew")
		})
	}
}

// The time a step worked is counted, also where a signal is found when it would end.
func TestSignal_counts_the_time_worked(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	w = newWorld(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`, "deploy", `{"text":"b"}`)}}, func(context.Context, string) {
		w.clock.advance(3 * time.Second)
		w.signal(journal.SignalCancel)
	}))
	p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
	w.start(p, "go")
	require.NoError(t, p.work())
	written := w.journal()
	newest := written[len(written)-1]
	require.Equal(t, session.KindCancelled, newest.Kind)
	require.EqualValues(t, 3000, newest.Used.ActiveMillis)
}
