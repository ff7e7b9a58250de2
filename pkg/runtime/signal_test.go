package runtime_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// signal puts a signal on HEAD, whether or not a worker works.
func (w *world) signal(kind journal.SignalKind) string {
	w.t.Helper()
	head := w.head()
	head.Head.Signal = &journal.Signal{ID: newID(), Task: head.Head.Task, Kind: kind, Who: "ann", At: w.clock.Now(), From: "test"}
	w.update(head)
	return head.Head.Signal.ID
}

// mail puts a message for a session that does not wait for one.
func (w *world) mail(id, message string) {
	w.t.Helper()
	head, written := w.head(), w.journal()
	newest := written[len(written)-1]
	head.Head.MailCount++
	_ = newest
	w.update(store.MailItem(journal.Mail{ID: id, Message: llm.User(message), Who: "ann", At: w.clock.Now(), From: "test"}, 0))
	w.update(head)
}

// hooked is an agent whose tools and planner call back into the test.
func hooked(made *effects, lines script, hook func(ctx context.Context, where string)) agent.Agent {
	return helper(made, lines, func(a *agent.Agent) {
		for name, effect := range map[string]session.Effect{"hook": session.SideEffect, "hookRead": session.ReadOnly} {
			a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: name, Effect: effect}, func(ctx context.Context, _ *tool.Call, in textIn) (string, error) {
				hook(ctx, in.Text)
				made.add("hook " + in.Text)
				return in.Text, ctx.Err()
			}))
		}
	})
}

// valid holds that every call has one result and the closing words are there.
func valid(t *testing.T, s *session.Session) {
	t.Helper()
	require.Empty(t, s.Calls)
	asked := map[string]int{}
	for _, m := range s.Messages {
		for _, c := range m.ToolCalls() {
			asked[c.ID]++
		}
	}
	require.Len(t, results(s), len(asked))
	require.Equal(t, engine.TextClosing, s.Messages[len(s.Messages)-1].Text())
}

func TestSignal_cancel_before_the_model_call(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("bye")}, "more": {says("again")}}))
	p := w.process()
	w.start(p, "go")
	id := w.signal(journal.SignalCancel)
	require.NoError(t, p.work())
	require.Equal(t, []session.Kind{session.KindStarted, session.KindCancelled}, w.kinds())
	valid(t, w.session())
	require.Nil(t, w.head().Head.Signal, "the entry that records its id clears it")
	require.Contains(t, asJSON(t, w.journal()[1]), id)
	w.checkAtRest()
	w.run(p, "more")
	require.Equal(t, session.StatusCompleted, w.session().Status, "a cancelled session can start a next turn")
}

func TestSignal_cancel_while_the_model_speaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		var after time.Duration
		slow := func(ctx context.Context, v agent.View) (agent.Reply, error) {
			if v.Watch != nil {
				v.Watch(llm.Event{Kind: llm.EventTextDelta, Text: "half a"})
			}
			w.signal(journal.SignalCancel)
			began := time.Now()
			<-ctx.Done()
			after = time.Since(began)
			return agent.Reply{Text: "half a sentence"}, nil
		}
		w = newWorld(t, made, helper(made, script{"go": {slow}}))
		p := w.process(func(cfg *runtime.Config) { cfg.Now, cfg.OnDelta = time.Now, func(session.Key, llm.Event) {} })
		w.clock.advance(time.Since(epoch))
		w.start(p, "go")
		require.NoError(t, p.work())
		require.Less(t, after, time.Second, "a signal is seen within a second")
		require.Equal(t, []session.Kind{session.KindStarted, session.KindCancelled}, w.kinds())
		valid(t, w.session())
		require.NotContains(t, asJSON(t, w.session().Messages), "half", "no partial text is kept")
	})
}

func TestSignal_cancel_after_a_reply_and_before_its_tools(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "line", `{"text":"2"}`)}}))
	f := &fuse{at: 5} // replied is there, the first mark is not
	p := w.fusedProcess(f, true, 1)
	w.start(p, "go")
	require.ErrorIs(t, p.work(), errDied)
	require.Equal(t, session.KindReplied, w.session().Newest.Kind, "%v", f.ops)
	w.signal(journal.SignalCancel)
	require.NoError(t, w.process().settle())
	s := w.session()
	require.Equal(t, session.StatusCancelled, s.Status)
	valid(t, s)
	for id, r := range results(s) {
		require.Equal(t, llm.ResultCancelled, r.Status, id)
		require.JSONEq(t, `"Tool execution cancelled"`, string(r.Output))
	}
	require.Empty(t, made.all())
	for _, item := range w.items(store.KindTool) {
		require.Equal(t, journal.ToolClosed, item.Tool.State, "closed first, so that it never runs")
	}
	w.checkAtRest()
}

func TestSignal_cancel_between_tools(t *testing.T) {
	t.Parallel()
	for kind, want := range map[journal.SignalKind]session.Status{
		journal.SignalCancel: session.StatusCancelled, journal.SignalInterrupt: session.StatusInterrupted, journal.SignalAbort: session.StatusFailed,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "line", `{"text":"2"}`, "deploy", `{"text":"3"}`), says("bye")}}))
			// dead after the first call had finished, before the second was started
			f := &fuse{at: 7}
			p := w.fusedProcess(f, true, 1)
			w.start(p, "go")
			require.ErrorIs(t, p.work(), errDied)
			finished := map[string]bool{}
			for _, item := range w.items(store.KindTool) {
				if item.Tool.State == journal.ToolFinished {
					finished[item.Tool.Call] = true
				}
			}
			w.signal(kind)
			second := w.process()
			require.NoError(t, second.settle())
			s := w.session()
			require.Equal(t, want, s.Status)
			for id := range finished {
				require.Equal(t, llm.ResultSuccess, results(s)[id].Status, "what is done keeps its result")
			}
			w.checkAtRest()
			if kind == journal.SignalCancel {
				valid(t, s)
			}
			if kind == journal.SignalAbort {
				require.Equal(t, "aborted", s.Failure.Type)
				require.False(t, s.Failure.Retryable)
				require.Len(t, results(s), 3)
			}
			if kind == journal.SignalInterrupt {
				_, err := second.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person})
				require.NoError(t, err)
				require.NoError(t, second.settle())
				require.Equal(t, session.StatusSuspended, w.session().Status, "it goes on to where it would have been")
				require.LessOrEqual(t, made.count("line 1"), 1)
				require.LessOrEqual(t, made.count("line 2"), 1)
			}
		})
	}
}

func TestSignal_while_a_tool_runs(t *testing.T) {
	t.Parallel()
	for kind, want := range map[journal.SignalKind]struct {
		status session.Status
		effect llm.ResultStatus
		read   llm.ResultStatus
	}{
		journal.SignalCancel:    {session.StatusCancelled, llm.ResultUnknown, llm.ResultCancelled},
		journal.SignalInterrupt: {session.StatusInterrupted, llm.ResultUnknown, ""},
		journal.SignalAbort:     {session.StatusFailed, llm.ResultUnknown, llm.ResultCancelled},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				var w *world
				var began time.Time
				w = newWorld(t, made, hooked(made, script{"go": {calls("hook", `{"text":"a"}`, "hookRead", `{"text":"b"}`, "line", `{"text":"c"}`)}}, func(ctx context.Context, where string) {
					if where == "a" {
						began = time.Now()
						w.signal(kind)
					}
					<-ctx.Done()
				}))
				p := w.process(func(cfg *runtime.Config) { cfg.Now = time.Now })
				w.clock.advance(time.Since(epoch))
				w.start(p, "go")
				require.NoError(t, p.work())
				require.Less(t, time.Since(began), time.Second, "seen by a running step within a second")
				s := w.session()
				require.Equal(t, want.status, s.Status)
				require.Equal(t, want.effect, results(s)["c2-1"].Status, "a side effect that was cut off is unknown, never failed")
				require.Equal(t, want.read, results(s)["c2-2"].Status)
				require.Equal(t, llm.ResultSuccess, results(s)["c2-3"].Status)
				require.Nil(t, w.head().Head.Signal)
			})
		})
	}
}

// A reply whose tools only read is not committed before they have run. Where the task ends it is
// kept, with what they brought; an interrupted task gives it up, and asks for another.
func TestSignal_while_tools_read(t *testing.T) {
	t.Parallel()
	for kind, want := range map[journal.SignalKind]session.Status{
		journal.SignalCancel: session.StatusCancelled, journal.SignalInterrupt: session.StatusInterrupted, journal.SignalAbort: session.StatusFailed,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				var w *world
				w = newWorld(t, made, hooked(made, script{"go": {calls("hookRead", `{"text":"a"}`, "hookRead", `{"text":"b"}`)}}, func(ctx context.Context, where string) {
					if where == "b" {
						w.mail("m1", "and this")
						w.signal(kind)
						<-ctx.Done()
					}
				}))
				p := w.process(func(cfg *runtime.Config) { cfg.Now = time.Now })
				w.clock.advance(time.Since(epoch))
				w.start(p, "go")
				require.NoError(t, p.work())
				s := w.session()
				require.Equal(t, want, s.Status)
				require.Equal(t, []session.Kind{session.KindStarted, w.journal()[1].Kind}, w.kinds())
				require.Empty(t, s.Calls)
				w.checkAtRest()
				if kind == journal.SignalInterrupt {
					require.Len(t, s.Messages, 2)
					require.Equal(t, "and this", s.Messages[1].Text(), "the mail is no part of what is given up")
					return
				}
				require.Equal(t, llm.ResultSuccess, results(s)["c2-1"].Status)
				require.Contains(t, []llm.ResultStatus{llm.ResultCancelled, llm.ResultError}, results(s)["c2-2"].Status)
				require.Len(t, s.Messages[1].ToolCalls(), 2)
				require.EqualValues(t, 1, s.Step)
			})
		})
	}
}

func TestSignal_that_comes_when_the_step_would_end(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]script{
		"suspending": {"go": {calls("hookRead", `{"text":"a"}`, "deploy", `{"text":"b"}`)}},
		"finishing":  {"go": {calls("hookRead", `{"text":"a"}`, "end", `{"text":"b"}`)}},
		"asking":     {"go": {calls("hook", `{"text":"a"}`, "pick", `{"text":"b"}`)}},
	} {
		for kind, want := range map[journal.SignalKind]session.Status{
			journal.SignalCancel: session.StatusCancelled, journal.SignalInterrupt: session.StatusInterrupted,
		} {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				var w *world
				var once sync.Once
				w = newWorld(t, made, hooked(made, lines, func(context.Context, string) { once.Do(func() { w.signal(kind) }) }))
				p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
				w.run(p, "go")
				require.Equal(t, want, w.session().Status, "suspending and finishing are conditioned on HEAD's signal")
				w.checkAtRest()
				if kind == journal.SignalCancel {
					valid(t, w.session())
					require.Len(t, results(w.session()), 2, "the reply is kept, whatever its tools do")
					require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status, "and what they brought")
					return
				}
				_, err := p.Resume(context.Background(), runtime.ResumeParams{Key: w.key, Caller: person})
				require.NoError(t, err)
				require.NoError(t, p.settle())
				for id, r := range results(w.session()) {
					require.Equal(t, llm.ResultSuccess, r.Status, "%s: %s", id, r.Output)
				}
				if name != "finishing" {
					require.Equal(t, session.StatusSuspended, w.session().Status)
				}
			})
		}
	}
}

func TestSignal_stronger_replaces_weaker(t *testing.T) {
	t.Parallel()
	require.Less(t, journal.SignalInterrupt.Strength(), journal.SignalCancel.Strength())
	require.Less(t, journal.SignalCancel.Strength(), journal.SignalAbort.Strength())
	made := newEffects()
	var w *world
	replaced := false
	w = newWorld(t, made, helper(made, script{"go": {says("bye")}}))
	p := w.process(func(cfg *runtime.Config) {
		cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
			if e.Kind == session.KindInterrupted && !replaced {
				replaced = true
				w.signal(journal.SignalCancel)
			}
		}}
	})
	w.start(p, "go")
	w.signal(journal.SignalInterrupt)
	require.NoError(t, p.work())
	require.Equal(t, []session.Kind{session.KindStarted, session.KindCancelled}, w.kinds(), "the entry that obeys is conditioned on the signal it saw")
	w.checkAtRest()
}

func TestSignal_left_over_from_an_earlier_task(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("one")}, "more": {calls("echo", `{"text":"1"}`), says("two")}}))
	p := w.process()
	w.run(p, "go")
	w.signal(journal.SignalCancel) // to an idle session
	w.run(p, "more")
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, "two", w.session().Messages[len(w.session().Messages)-1].Text())
	require.Nil(t, w.head().Head.Signal, "the end of a task leaves none")
}

func TestSignal_between_two_runs_of_a_task_is_obeyed(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`)}}))
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	w.signal(journal.SignalCancel)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCancelled, w.session().Status)
	valid(t, w.session())
	require.Empty(t, made.all())
}

func TestMail(t *testing.T) {
	t.Parallel()
	t.Run("is taken in at plan", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {says("bye")}, "also": {says("both")}}))
		p := w.process()
		w.start(p, "go")
		w.mail("m1", "also")
		require.NoError(t, p.work())
		require.Equal(t, "both", w.session().Messages[2].Text())
		require.Equal(t, []string{"m1"}, w.journal()[1].Mail)
		w.checkAtRest()
	})
	t.Run("that comes late keeps the task going", func(t *testing.T) {
		t.Parallel()
		for name, first := range map[string]turn{"completing": says("bye"), "suspending for input": needs("what?"), "finishing": calls("end", `{"text":"x"}`)} {
			made := newEffects()
			once := false
			w := newWorld(t, made, helper(made, script{"go": {first}, "also": {says("both")}}))
			p := w.process(func(cfg *runtime.Config) {
				cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
					if !once && e.Seq == 2 {
						once = true
						w.mail("m1", "also")
					}
				}}
			})
			w.run(p, "go")
			require.Equal(t, []session.Kind{session.KindStarted, session.KindStepped, session.KindCompleted}, w.kinds(), name)
			s := w.session()
			require.Equal(t, "both", s.Messages[len(s.Messages)-1].Text(), "the reply had not seen it; the next one has")
			require.True(t, s.Mail["m1"])
			w.checkAtRest()
		}
	})
	t.Run("is not left behind by a suspension", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		once := false
		w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`)}, "also": {says("both")}}))
		p := w.process(func(cfg *runtime.Config) {
			cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
				if !once && e.Seq == 2 {
					once = true
					w.mail("m1", "also")
				}
			}}
		})
		w.run(p, "go")
		require.Equal(t, session.StatusSuspended, w.session().Status)
		require.True(t, w.session().Mail["m1"], "the suspending entry took it in")
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		require.NoError(t, p.settle())
		s := w.session()
		require.Equal(t, "both", s.Messages[len(s.Messages)-1].Text())
		w.checkAtRest()
	})
	t.Run("survives a failed model call", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"also": {func(_ context.Context, v agent.View) (agent.Reply, error) {
			if v.Attempt == 0 {
				return agent.Reply{}, busy
			}
			return agent.Reply{Text: "both"}, nil
		}}}))
		p := w.process()
		w.start(p, "go")
		w.mail("m1", "also")
		require.NoError(t, p.settle())
		s := w.session()
		require.Equal(t, session.StatusCompleted, s.Status)
		require.Equal(t, "both", s.Messages[len(s.Messages)-1].Text())
	})
}
