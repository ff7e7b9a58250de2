package runtime_test

import (
	"context"
	"fmt"
	"testing"
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

// notRun are programs whose step says of the call "guarded" that it does not run
// here, though another worker may be about to run it.
type notRun struct {
	change func(*agent.Agent)
	entry  session.Kind
	status llm.ResultStatus
}

func notRuns() map[string]notRun {
	guardedIs := func(t tool.Tool) func(*agent.Agent) {
		return func(a *agent.Agent) { a.Tools[len(a.Tools)-1] = t }
	}
	return map[string]notRun{
		"gone":       {func(a *agent.Agent) { a.Tools = a.Tools[:len(a.Tools)-1] }, session.KindStepped, llm.ResultError},
		"schema":     {guardedIs(tool.Define(tool.Spec[moreIn]{Name: "guarded"}, func(context.Context, *tool.Call, moreIn) (string, error) { return "other", nil })), session.KindStepped, llm.ResultError},
		"a client's": {guardedIs(tool.DefineClient(tool.Spec[textIn]{Name: "guarded"})), session.KindSuspended, ""},
	}
}

// about is a session whose step runs a call that nobody has started; its worker has
// died. Another program, in which the call is not to run, meets something just
// before its entry.
func (c notRun) about(t *testing.T, run func()) (w *world, p, other *process, before *storeHook) {
	t.Helper()
	made := newEffects()
	lines := script{"go": {calls("guarded", `{"text":"1"}`), says("bye")}}
	agentOf := func(change ...func(*agent.Agent)) agent.Agent {
		with := func(a *agent.Agent) {
			a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "guarded", Timeout: time.Hour}, func(context.Context, *tool.Call, textIn) (string, error) {
				made.add("guarded")
				run()
				return "ran", nil
			}))
			for _, change := range change {
				change(a)
			}
		}
		return helper(made, lines, with)
	}
	w = newWorld(t, made, agentOf())
	p = w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
	w.start(p, "go")
	w.dies(2)
	require.Equal(t, session.KindReplied, w.session().Newest.Kind)
	w.clock.advance(time.Hour)
	before = &storeHook{when: commits(c.entry)}
	other = w.process(withAgents(t, agentOf(c.change)), func(cfg *runtime.Config) {
		before.Store, cfg.Store, cfg.WatchEvery = cfg.Store, before, time.Hour
	})
	return w, p, other, before
}

// The program that refuses a call, or hands it to the client, loses its entry to one
// that runs it: then nothing was closed, and the call runs.
func TestCloseNotRun_is_closed_with_the_entry_that_says_so(t *testing.T) {
	t.Parallel()
	for name, c := range notRuns() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, other, before := c.about(t, func() {})
			met := false
			before.happens = func() {
				met = true
				require.Empty(t, w.items(store.KindTool), "nothing is closed but with the entry")
				w.clock.advance(time.Hour)
				w.deliver(p, 3, journal.WakeStep)
			}
			w.deliver(other, 3, journal.WakeStep)
			require.True(t, met)
			require.NoError(t, p.settle())
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			require.Equal(t, 1, w.effects.count("guarded"))
			w.checkAtRest()

			w, _, other, _ = c.about(t, func() {})
			w.deliver(other, 3, journal.WakeStep)
			require.Equal(t, c.entry, w.session().Newest.Kind)
			require.Equal(t, c.status, results(w.session())["c2-1"].Status)
			require.Equal(t, journal.ToolClosed, w.items(store.KindTool)[0].Tool.State)
			require.Empty(t, w.effects.all())
		})
	}
}

// A worker is frozen before its mark until the entry that says "not run" is about to
// be written: the mark comes first, and the step is done again, which says what became
// of the call.
func TestCloseNotRun_looks_again_when_the_call_is_started_meanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range notRuns() {
		for _, finished := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/finished=%v", name, finished), func(t *testing.T) {
				t.Parallel()
				inTool, leave := make(chan struct{}), make(chan struct{})
				w, _, other, before := c.about(t, func() {
					close(inTool)
					<-leave
				})
				s, over := w.pausedAtMark(3)
				before.happens = func() {
					close(s.mark)
					<-inTool
					if finished {
						close(leave)
						<-s.finished
					}
				}
				require.Equal(t, 20*time.Millisecond, w.deliver(other, 3, journal.WakeStep).Keep, "it would not have been true")
				require.Equal(t, session.KindReplied, w.session().Newest.Kind)
				w.deliver(other, 3, journal.WakeStep)
				want := llm.ResultUnknown
				if finished {
					want = llm.ResultSuccess
				}
				require.Equal(t, want, results(w.session())["c2-1"].Status)
				if !finished {
					close(leave)
					<-s.finished
				}
				close(s.goOn)
				require.NoError(t, <-over)
				require.Equal(t, 1, w.effects.count("guarded"))
				require.NoError(t, other.settle())
				w.checkAtRest()
			})
		}
	}
}

// A denial stands whoever writes it, but it too is closed with its entry; so is it
// with that of a signal which comes first.
func TestCloseNotRun_denied(t *testing.T) {
	t.Parallel()
	for kind, signal := range map[session.Kind]journal.SignalKind{
		session.KindCompleted: "", session.KindInterrupted: journal.SignalInterrupt, session.KindCancelled: journal.SignalCancel, session.KindFailed: journal.SignalAbort,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "end", `{"text":"2"}`)}}))
			p := w.process()
			w.run(p, "go")
			_, err := w.submit(p, session.WaitApproval, no())
			require.NoError(t, err)
			ends, stops := &storeHook{when: commits(session.KindCompleted)}, &storeHook{when: commits(kind)}
			unclosed := func() bool {
				for _, item := range w.items(store.KindTool) {
					if item.ID == "c2-1" {
						return false
					}
				}
				return true
			}
			ends.happens = func() {
				require.True(t, unclosed())
				if signal != "" {
					w.signal(signal)
				}
			}
			stops.happens = func() { require.True(t, unclosed()) }
			worker := w.process(func(cfg *runtime.Config) { ends.Store, stops.Store, cfg.Store = cfg.Store, ends, stops })
			_, err = worker.deliverOne(context.Background())
			require.NoError(t, err)
			require.Nil(t, ends.happens)
			require.Nil(t, stops.happens)
			require.Equal(t, kind, w.session().Newest.Kind)
			require.Equal(t, llm.ResultDenied, results(w.session())["c2-1"].Status)
			require.False(t, unclosed())
			require.Zero(t, made.count("deploy 1"))
			w.checkAtRest()
		})
	}
}

// A step that refuses a call is stopped by a signal, and the call is started just before
// the signal's entry: that says what became of it, and not that there is no such tool.
func TestCloseNotRun_looks_again_when_the_call_is_started_before_a_signal_is_obeyed(t *testing.T) {
	t.Parallel()
	for kind, c := range map[journal.SignalKind]struct {
		entry session.Kind
		want  llm.ResultStatus
	}{
		journal.SignalInterrupt: {session.KindInterrupted, ""}, // it is still open
		journal.SignalCancel:    {session.KindCancelled, llm.ResultUnknown},
		journal.SignalAbort:     {session.KindFailed, llm.ResultUnknown},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made, inTool, leave := newEffects(), make(chan struct{}), make(chan struct{})
			lines := script{"go": {calls("guarded", `{"text":"1"}`, "locate", `{"text":"2"}`), says("bye")}}
			w := newWorld(t, made, helper(made, lines, func(a *agent.Agent) {
				a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "guarded", Timeout: time.Hour}, func(context.Context, *tool.Call, textIn) (string, error) {
					made.add("guarded")
					close(inTool)
					<-leave
					return "ran", nil
				}))
			}))
			w.start(w.process(), "go")
			w.dies(2)
			require.Equal(t, session.KindReplied, w.session().Newest.Kind)
			w.clock.advance(time.Hour)
			s, over := w.pausedAtMark(3)
			waits := &storeHook{when: commits(session.KindSuspended), happens: func() { w.signal(kind) }} // guarded is refused, locate waits
			stops := &storeHook{when: commits(c.entry), happens: func() {
				close(s.mark)
				<-inTool
			}}
			without := withAgents(t, helper(made, lines))
			other := w.process(without, func(cfg *runtime.Config) { waits.Store, stops.Store, cfg.Store = cfg.Store, waits, stops })
			require.Equal(t, 20*time.Millisecond, w.deliver(other, 3, journal.WakeStep).Keep, "it would not have been true")
			require.Nil(t, waits.happens)
			require.Nil(t, stops.happens)
			require.Equal(t, session.KindReplied, w.session().Newest.Kind)
			w.deliver(other, 3, journal.WakeStep)
			require.Equal(t, c.entry, w.session().Newest.Kind)
			require.Equal(t, c.want, results(w.session())["c2-1"].Status)
			close(leave)
			<-s.finished
			close(s.goOn)
			require.NoError(t, <-over)
			require.Equal(t, 1, made.count("guarded"))
		})
	}
}

// Where more calls are refused than fit into one write the rest is closed before the
// entry, and all of them with it.
func TestCloseNotRun_of_more_calls_than_fit_beside_the_entry(t *testing.T) {
	t.Parallel()
	const many = 120
	var list []string
	for n := range many {
		list = append(list, "line", fmt.Sprintf(`{"text":"%d"}`, n))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
	w.start(w.process(), "go")
	w.dies(2)
	w.clock.advance(time.Hour)
	before := &storeHook{when: commits(session.KindStepped)}
	closed := 0
	before.happens = func() { closed = len(w.items(store.KindTool)) }
	without := helper(made, script{"go": {calls(list...), says("bye")}}, func(a *agent.Agent) { a.Tools = a.Tools[1:] })
	p := w.process(withAgents(t, without), func(cfg *runtime.Config) { before.Store, cfg.Store = cfg.Store, before })
	w.deliver(p, 3, journal.WakeStep)
	require.Equal(t, many-(store.MaxItems-4), closed)
	require.Len(t, w.items(store.KindTool), many)
	require.Len(t, results(w.session()), many)
	require.NoError(t, p.settle())
	require.Empty(t, made.all())
	w.checkAtRest()
}

// A call that a frozen worker starts while it is closed before the entry, because the entry has no room for it, is not told as refused.
func TestCloseNotRun_of_a_call_that_is_started_meanwhile(t *testing.T) {
	t.Parallel()
	const many = 120
	var list []string
	for n := range many {
		list = append(list, "line", fmt.Sprintf(`{"text":"%d"}`, n))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}})).withMarksApart()
	w.start(w.process(), "go")
	w.dies(2)
	w.clock.advance(time.Hour)
	id := ""
	s := &storeHook{}
	s.when = func(c storeCall) bool {
		if c.kind == store.KindTool && c.update != nil {
			id = c.update[0].ID
			return true
		}
		return false
	}
	s.happens = func() {
		_, err := w.store.Update(context.Background(), w.key, store.ToolItem(journal.ToolRecord{Call: id, State: journal.ToolStarted, Attempt: "frozen", At: w.clock.Now()}, 0))
		require.NoError(t, err)
	}
	without := helper(made, script{"go": {calls(list...), says("bye")}}, func(a *agent.Agent) { a.Tools = a.Tools[1:] })
	p := w.process(withAgents(t, without), func(cfg *runtime.Config) { s.Store, cfg.Store = cfg.Store, s })
	w.deliver(p, 3, journal.WakeStep)
	w.clock.advance(time.Minute)
	require.NoError(t, p.settle())
	require.NotEmpty(t, id)
	require.Equal(t, llm.ResultUnknown, results(w.session())[id].Status, "it was started")
}
