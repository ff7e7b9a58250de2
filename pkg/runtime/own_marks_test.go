package runtime_test

import (
	"context"
	"errors"
	"iter"
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
	"github.com/adjourn/adjourn/pkg/tool"
)

// A worker whose reply was not written is frozen before it takes back its marks. Another one has
// written a reply of its own meanwhile, and runs a call of the same id: that mark is not taken back.
func TestMarks_of_another_worker(t *testing.T) {
	t.Parallel()
	made := newEffects()
	begun, end := make(chan struct{}), make(chan struct{})
	slow := tool.Define(tool.Spec[textIn]{Name: "slow"}, func(context.Context, *tool.Call, textIn) (string, error) {
		made.add("slow")
		if made.count("slow") == 1 {
			close(begun)
			<-end
		}
		return "did", nil
	})
	w := newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
	other := make(chan error, 1)
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &storeHook{
			Store: w.store, refuse: func(e journal.Entry) bool { return e.Kind == session.KindReplied },
			when: updateOf(store.KindTool), happens: func() {
				w.clock.advance(time.Hour)
				go func() {
					_, err := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour }).Deliver(context.Background(), w.wake(2, journal.WakeStep))
					other <- err
				}()
				<-begun
			},
		}
	})
	w.start(p, "go")
	_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
	require.ErrorIs(t, err, store.ErrUnavailable)
	select {
	case <-begun:
	default: // it has not even looked for a mark
		w.clock.advance(time.Hour)
		go func() {
			_, err := w.process().Deliver(context.Background(), w.wake(2, journal.WakeStep))
			other <- err
		}()
		<-begun
	}
	require.Equal(t, journal.ToolStarted, w.items(store.KindTool)[0].Tool.State)
	close(end)
	require.NoError(t, <-other)
	require.NoError(t, w.process().settle())
	require.Equal(t, 1, made.count("slow"))
	w.checkAtRest()
}

// unanswered is a store that writes the first reply and does not answer in time, or with an error.
// happens is called between.
func unanswered(s store.Store, answer error, happens func()) store.Store {
	first := true
	return &hook{Store: s, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
		out, err := s.Commit(ctx, p)
		if p.Entry.Kind != session.KindReplied || !first {
			return out, err
		}
		first = false
		happens()
		if answer != nil {
			return store.Committed{}, answer
		}
		<-ctx.Done()
		return store.Committed{}, context.Cause(ctx)
	}}
}

// The answer of the reply's commit is lost, and the second try finds it written, with its marks.
// They are those of calls that have not begun.
func TestMarks_whose_answer_was_lost(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.SignalKind{"", journal.SignalInterrupt, journal.SignalCancel, "end", "end with an error"} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
			ctx, end := context.WithCancel(context.Background())
			p := w.process(func(cfg *runtime.Config) {
				cfg.WatchEvery, cfg.CommitTimeout = time.Hour, 10*time.Millisecond
				var answer error
				if kind == "end with an error" {
					answer = store.ErrUnavailable
				}
				cfg.Store = unanswered(w.store, answer, func() {
					switch string(kind) {
					case "":
					case "end", "end with an error":
						end()
					default:
						w.signal(kind)
					}
				})
			})
			w.start(p, "go")
			_, err := p.Deliver(ctx, w.wake(2, journal.WakeStep))
			switch string(kind) {
			case "end":
				require.ErrorIs(t, err, context.Canceled)
			case "end with an error":
				require.ErrorIs(t, err, store.ErrUnavailable)
				require.Equal(t, journal.ToolMemo, w.items(store.KindTool)[0].Tool.State)
			default:
				require.NoError(t, err)
			}
			if kind == journal.SignalInterrupt {
				_, err := w.goOn(w.process())
				require.NoError(t, err)
			}
			require.NoError(t, w.process().settle())
			status := results(w.session())["c2-1"].Status
			if kind == journal.SignalCancel {
				require.Empty(t, made.all())
				require.Equal(t, llm.ResultCancelled, status)
			} else {
				require.Equal(t, map[string]int{"line 1": 1}, made.all())
				require.Equal(t, llm.ResultSuccess, status)
			}
			w.checkAtRest()
		})
	}
}

// Another worker has overtaken the mark of a call that has not begun here, when the entry that
// closes the call is written.
func TestMarks_that_were_overtaken(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("retry", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}}))
	tries := 0
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &hook{Store: w.store, commit: func(ctx context.Context, c store.CommitParams) (store.Committed, error) {
			if c.Entry.Kind == session.KindReplied {
				w.signal(journal.SignalCancel)
			}
			if c.Entry.Kind == session.KindCancelled {
				if tries++; tries == 1 {
					there := w.items(store.KindTool)[0]
					there.Tool.Attempt = "another"
					w.update(there)
				}
				if tries > 5 {
					return store.Committed{}, errors.New("it does not look again")
				}
			}
			return w.store.Commit(ctx, c)
		}}
	})
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, 2, tries)
	got := results(w.session())
	require.Equal(t, llm.ResultUnknown, got["c2-1"].Status)
	require.Equal(t, llm.ResultCancelled, got["c2-2"].Status)
	require.Empty(t, made.all())
	w.checkAtRest()
}

// A reply that was not written has no marks to take back, and the signal is obeyed at once.
func TestMarks_of_a_reply_that_was_not_written(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
		p := w.process(func(cfg *runtime.Config) {
			cfg.WatchEvery = time.Millisecond
			cfg.Store = &hook{
				Store: w.store, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
					if p.Entry.Kind == session.KindReplied {
						w.signal(journal.SignalInterrupt)
						time.Sleep(50 * time.Millisecond) // its watcher sees that
						return store.Committed{}, store.ErrUnavailable
					}
					return w.store.Commit(ctx, p)
				},
			}
		})
		w.start(p, "go")
		w.deliver(p, 2, journal.WakeStep)
		require.Equal(t, session.StatusInterrupted, w.session().Status)
		_, err := w.goOn(w.process())
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
		require.Equal(t, map[string]int{"line 1": 1}, made.all())
		w.checkAtRest()
	})
}

// Another worker has the lease, or has written the entry, before a marked call begins here: the call
// is given free for it.
func TestMarks_of_a_worker_that_lost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		every                    time.Duration
		before, after, interrupt func(w *world)
	}{
		"the lease": {every: time.Millisecond, after: func(w *world) {
			w.clock.advance(time.Minute)
			w.claimAs("another", 3)
			time.Sleep(50 * time.Millisecond) // its watcher is refused
		}},
		"the entry": {every: time.Hour, before: func(w *world) { w.signal(journal.SignalInterrupt) }, interrupt: func(w *world) {
			w.interrupt()
			head := w.head()
			head.Head.Signal = nil
			w.update(head)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
				do := func(f func(w *world)) {
					if f != nil {
						f(w)
					}
				}
				p := w.process(func(cfg *runtime.Config) {
					cfg.WatchEvery = tt.every
					cfg.Store = &hook{Store: w.store, commit: func(ctx context.Context, c store.CommitParams) (store.Committed, error) {
						if c.Entry.Kind == session.KindInterrupted {
							do(tt.interrupt)
							return w.store.Commit(ctx, c)
						}
						do(tt.before)
						out, err := w.store.Commit(ctx, c)
						do(tt.after)
						return out, err
					}}
				})
				w.start(w.process(), "go")
				w.deliver(p, 2, journal.WakeStep)
				require.Equal(t, journal.ToolMemo, w.items(store.KindTool)[0].Tool.State)
				if w.session().Status == session.StatusInterrupted {
					_, err := w.goOn(w.process())
					require.NoError(t, err)
				}
				require.NoError(t, w.process().settle())
				require.Equal(t, map[string]int{"line 1": 1}, made.all())
				require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			})
		})
	}
}

// Another worker has taken the call over, and a signal comes, when the tool returns: what the first
// run brought is not told.
func TestMarks_of_a_call_that_was_taken_over_and_stopped(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	slow := tool.Define(tool.Spec[textIn]{Name: "slow", OnUnknown: session.UnknownRetry}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		there := w.items(store.KindTool)[0]
		there.Tool.Attempt = "another"
		w.update(there)
		w.signal(journal.SignalCancel)
		<-ctx.Done()
		return "did", nil
	})
	w = newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
	p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Millisecond })
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
	require.NoError(t, w.process().settle())
	require.Equal(t, llm.ResultUnknown, results(w.session())["c2-1"].Status)
	w.checkAtRest()
}

// A call has asked a person when the step cannot be written: it may be started again.
func TestAsking_of_a_step_that_is_not_written(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]func(w *world){
		"mail that cannot be read":          func(w *world) { w.mail("m1", "and this") },
		"a finish mark that is not written": func(w *world) { w.signal(journal.SignalInterrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("pick", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}, "and this": {says("bye")}}))
			suspends := &storeHook{Store: w.store, when: commits(session.KindSuspended), happens: func() { comes(w) }}
			p := w.process(func(cfg *runtime.Config) {
				cfg.WatchEvery, cfg.ToolsAtOnce = time.Hour, 1
				cfg.Store = &hook{
					Store: suspends,
					items: func(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
						if kind == store.KindMail {
							return unreadItems(store.ErrUnavailable)
						}
						return w.store.Items(ctx, key, kind, id)
					},
					update: func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
						if items[0].Kind == store.KindTool && items[0].Tool.State == journal.ToolFinished {
							return nil, store.ErrUnavailable
						}
						return w.store.Update(ctx, key, items...)
					},
				}
			})
			w.start(p, "go")
			_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.ErrorIs(t, err, store.ErrUnavailable)
			states := map[string]journal.ToolState{}
			for _, item := range w.items(store.KindTool) {
				states[item.ID] = item.Tool.State
			}
			require.Equal(t, journal.ToolAsking, states["c2-1"])
		})
	}
}

// A tool that was left behind when its time was over remembers something while the entry with its
// finish mark is written: nobody else has the call, and the entry is written all the same.
func TestMarks_of_a_tool_that_was_left_behind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		over, remembered := make(chan struct{}), make(chan error, 1)
		slow := tool.Define(tool.Spec[textIn]{Name: "slow", Timeout: time.Millisecond}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
			_, err := tool.Once(ctx, c, "k", func(context.Context) (int, error) { <-over; return 1, nil })
			remembered <- err
			return "did", err
		})
		w := newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
		p := w.process(func(cfg *runtime.Config) {
			cfg.WatchEvery, cfg.ToolGrace = time.Hour, time.Millisecond
			cfg.Store = &storeHook{Store: w.store, when: commits(session.KindStepped), happens: func() {
				close(over)
				require.NoError(t, <-remembered)
			}}
		})
		w.start(p, "go")
		w.deliver(p, 2, journal.WakeStep)
		require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
		record := w.items(store.KindTool)[0].Tool
		require.Equal(t, journal.ToolFinished, record.State)
		require.Contains(t, record.Memo, "k")
		require.NoError(t, w.process().settle())
		w.checkAtRest()
	})
}

// Only calls that begin at once are marked with their reply: one that waits for its turn is not
// started, whatever happens before.
func TestMarks_of_calls_that_take_turns(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	var seen []int
	slow := tool.Define(tool.Spec[textIn]{Name: "slow"}, func(context.Context, *tool.Call, textIn) (string, error) {
		seen = append(seen, len(w.items(store.KindTool)))
		return "did", nil
	})
	w = newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`, "slow", `{"text":"2"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
	w.run(w.process(func(cfg *runtime.Config) { cfg.ToolsAtOnce = 1 }), "go")
	require.Equal(t, []int{1, 2}, seen)
	w.checkAtRest()
}

// What an ordinary tool did is on record before a finish tool runs.
func TestMarks_before_a_finish_tool(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	var state journal.ToolState
	done := tool.Define(tool.Spec[textIn]{Name: "done", Finish: true}, func(context.Context, *tool.Call, textIn) (string, error) {
		state = w.items(store.KindTool)[0].Tool.State
		return "did", nil
	})
	w = newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "done", `{"text":"2"}`)}}, func(a *agent.Agent) { a.Tools = append(a.Tools, done) }))
	w.run(w.process(), "go")
	require.Equal(t, journal.ToolFinished, state)
	require.Equal(t, session.StatusCompleted, w.session().Status)
	for _, item := range w.items(store.KindTool) {
		require.Equal(t, journal.ToolFinished, item.Tool.State, item.ID)
	}
	w.checkAtRest()
}

// A call that has begun is not given free, though it is not known here who wrote its mark.
func TestMarks_whose_answer_was_lost_of_a_call_that_began(t *testing.T) {
	t.Parallel()
	made := newEffects()
	ctx, end := context.WithCancel(context.Background())
	slow := tool.Define(tool.Spec[textIn]{Name: "slow"}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		made.add("slow")
		end()
		<-ctx.Done()
		return "did", nil
	})
	w := newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery, cfg.CommitTimeout = time.Hour, 10*time.Millisecond
		cfg.Store = unanswered(w.store, nil, func() {})
	})
	w.start(p, "go")
	_, err := p.Deliver(ctx, w.wake(2, journal.WakeStep))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, journal.ToolFinished, w.items(store.KindTool)[0].Tool.State)
	require.NoError(t, w.process().settle())
	require.Equal(t, 1, made.count("slow"))
	w.checkAtRest()
}

// A mark that may have been written could not be given free: what a signal's entry would say of its
// call is not known, so the entry is not written, and the next worker obeys.
func TestMarks_that_cannot_be_given_free(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
		p := w.process(func(cfg *runtime.Config) {
			cfg.WatchEvery = time.Millisecond
			cfg.Store = &hook{
				Store: w.store, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
					if p.Entry.Kind == session.KindReplied {
						w.signal(journal.SignalInterrupt)
						time.Sleep(50 * time.Millisecond) // its watcher sees that
						return store.Committed{}, store.ErrUnavailable
					}
					return w.store.Commit(ctx, p)
				},
				update: func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
					if items[0].Kind == store.KindTool {
						return nil, store.ErrUnavailable
					}
					return w.store.Update(ctx, key, items...)
				},
			}
		})
		w.start(p, "go")
		_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.Equal(t, []session.Kind{session.KindStarted}, w.kinds())
		w.clock.advance(time.Hour)
		w.deliver(w.process(), 2, journal.WakeStep)
		require.Equal(t, session.StatusInterrupted, w.session().Status)
		require.Empty(t, made.all())
	})
}
