package runtime_test

import (
	"context"
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

// A worker that has lost its lease finds a call started by who has it now, and
// running: it does not say that its outcome is unknown, nor asks a person.
func TestLedger_only_the_owner_of_the_lease_says_unknown(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.UnknownPolicy{session.UnknownTell, session.UnknownAsk} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			inTool, leave, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			made := newEffects()
			slow := tool.Define(tool.Spec[textIn]{Name: "slow", OnUnknown: policy, Timeout: time.Hour}, func(context.Context, *tool.Call, textIn) (string, error) {
				made.add("slow")
				close(inTool)
				<-leave
				return "did", nil
			})
			w := newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) })).withMarksApart()
			s := &stopping{Store: w.store}
			s.beforeMark = func(n int) {
				w.clock.advance(time.Hour)
				second := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
				go func() {
					_, err := second.Deliver(context.Background(), w.wake(3, journal.WakeStep))
					over <- err
				}()
				<-inTool
			}
			first := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = s, time.Hour })
			w.start(first, "go")
			require.Equal(t, acknowledged, w.deliver(first, 2, journal.WakeStep))
			require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds(), "the call is running")
			close(leave)
			require.NoError(t, <-over)
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			require.Equal(t, 1, made.count("slow"))
		})
	}
}

// What a finished call changed is in its ledger, and comes with its result when
// the worker dies before the entry.
func TestLedger_keeps_state_and_events_of_a_finished_call(t *testing.T) {
	t.Parallel()
	made := newEffects()
	change := tool.Define(tool.Spec[textIn]{Name: "change"}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
		made.add("change")
		if err := c.Append("notes", in.Text); err != nil {
			return "", err
		}
		return "did", c.Emit("changed", in.Text)
	})
	w := newWorld(t, made, helper(made, script{"go": {calls("change", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, change) }))
	w.start(w.process(), "go")
	f := w.dies(5)
	require.Equal(t, journal.ToolFinished, w.items(store.KindTool)[0].Tool.State, f.ops)
	require.NoError(t, w.process().settle())
	s := w.session()
	notes, _ := s.State.Get("notes")
	require.JSONEq(t, `["1"]`, string(notes))
	require.Equal(t, 1, made.count("change"))
	events := 0
	for _, e := range w.journal() {
		events += len(e.Events)
	}
	require.Equal(t, 1, events)
	w.checkAtRest()
}

// While a tool runs that may run again elsewhere, the watcher renews the lease for
// less than the tool was promised: the lease does not get shorter by that.
func TestLedger_a_renewal_does_not_shorten_a_tool_s_lease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		const timeout = 10 * time.Minute
		slow := tool.Define(tool.Spec[textIn]{Name: "slow", OnUnknown: session.UnknownRetry, Timeout: timeout}, func(context.Context, *tool.Call, textIn) (string, error) {
			began := time.Now()
			for range 9 {
				require.False(t, w.head().Head.Lease.Until.Before(began.Add(timeout)), "after %s", time.Since(began))
				time.Sleep(time.Minute)
			}
			return "did", nil
		})
		w = newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
		w.clock.advance(time.Since(epoch))
		p := w.process(func(cfg *runtime.Config) { cfg.Now = time.Now })
		w.start(p, "go")
		w.deliver(p, 2, journal.WakeStep)
		require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
	})
}

// A call asked a person when the cancel came: nothing lets it be started again.
func TestLedger_a_call_that_asked_is_not_startable_after_a_cancel(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.SignalKind{journal.SignalCancel, journal.SignalAbort} {
		made := newEffects()
		var w *world
		w = newWorld(t, made, hooked(made, script{"go": {calls("hook", `{"text":"a"}`, "pick", `{"text":"b"}`)}}, func(context.Context, string) { w.signal(kind) }))
		p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
		w.start(p, "go")
		require.NoError(t, p.work())
		require.True(t, w.session().Status.Ended())
		for _, item := range w.items(store.KindTool) {
			require.NotEqual(t, journal.ToolAsking, item.Tool.State, item.ID)
		}
		w.checkAtRest()
	}
}

// Whoever overtakes a call is the one whose mark stands: what the worker before
// makes of it is refused.
func TestLedger_overtaking_supersedes_the_worker_before(t *testing.T) {
	t.Parallel()
	c := &crowd{}
	w := c.world(t, session.UnknownRetry)
	var seconds, firsts string
	c.during = func(n int32) {
		mark := w.items(store.KindTool)[0].Tool.Attempt
		if n == 2 {
			seconds = mark
			return
		}
		firsts = mark
		w.takeOver(c)
	}
	first := w.process(func(cfg *runtime.Config) { cfg.WatchEvery = time.Hour })
	w.start(first, "go")
	require.Equal(t, acknowledged, w.deliver(first, 2, journal.WakeStep))
	require.NotEqual(t, firsts, seconds)
	record := w.items(store.KindTool)[0].Tool
	require.Equal(t, seconds, record.Attempt)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
}

// What could not be folded again is never written, wherever it comes from: here a
// ledger holds a result that is not its call's.
func TestLedger_that_is_broken_breaks_no_journal(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
	w.start(w.process(), "go")
	w.dies(4)
	w.clock.advance(time.Hour)
	item := w.items(store.KindTool)[0]
	item.Tool.State = journal.ToolFinished
	item.Tool.Result = &llm.ToolResult{CallID: "c9-9", Name: "line", Status: llm.ResultSuccess, Output: []byte(`1`)}
	w.update(item)
	_, err := w.process().Deliver(context.Background(), w.wake(3, journal.WakeStep))
	require.ErrorIs(t, err, engine.ErrBrokenJournal)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds(), "and it can still be read")
}

// A worker is frozen before its mark until another one has run the call, which asked
// a person: the late mark would make the answered call one that was cut off.
func TestLedger_a_late_mark_does_not_take_back_a_question(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("pick", `{"text":"1"}`), says("bye")}})).withMarksApart()
	s := &stopping{Store: w.store}
	s.beforeMark = func(n int) {
		if n == 1 {
			w.clock.advance(time.Hour)
			w.deliver(w.process(), 3, journal.WakeStep)
		}
	}
	first := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.WatchEvery = s, time.Hour })
	w.start(first, "go")
	w.deliver(first, 2, journal.WakeStep)
	require.Equal(t, session.StatusSuspended, w.session().Status)
	require.Equal(t, journal.ToolAsking, w.items(store.KindTool)[0].Tool.State)
	p := w.process()
	_, err := w.submit(p, session.WaitQuestion, session.Answer{Selected: []string{"red"}})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
	w.checkAtRest()
}

// A call that was started is not told as not run by whoever gives it up.
func TestLedger_a_started_call_that_is_given_up_is_unknown(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.SignalKind{journal.SignalCancel, journal.SignalAbort} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`)}}))
		w.start(w.process(), "go")
		f := w.dies(4)
		started := w.items(store.KindTool)
		require.NotEmpty(t, started, f.ops)
		w.signal(kind)
		require.NoError(t, w.process().settle())
		require.True(t, w.session().Status.Ended())
		require.Equal(t, started, w.items(store.KindTool), "it was not closed: it may have run")
		for _, item := range started {
			require.Equal(t, journal.ToolStarted, item.Tool.State)
			require.Equal(t, llm.ResultUnknown, results(w.session())[item.ID].Status, item.ID)
		}
		w.checkAtRest()
	}
}

// The lease of the next step lasts as long as any, whatever the tools of the step
// before were promised: a worker that dies there is noticed as soon as elsewhere.
func TestLedger_a_tool_s_lease_ends_with_its_step(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	var left time.Duration
	long := tool.Define(tool.Spec[textIn]{Name: "long", OnUnknown: session.UnknownRetry, Timeout: time.Hour}, func(context.Context, *tool.Call, textIn) (string, error) {
		return "did", nil
	})
	look := func(context.Context, agent.View) (agent.Reply, error) {
		left = w.head().Head.Lease.Until.Sub(w.clock.Now())
		return agent.Reply{Text: "bye"}, nil
	}
	w = newWorld(t, made, helper(made, script{"go": {calls("long", `{"text":"1"}`), look}}, func(a *agent.Agent) { a.Tools = append(a.Tools, long) }))
	w.run(w.process(func(cfg *runtime.Config) { cfg.StepsPerInvocation, cfg.Lease = 9, 20*time.Second }), "go")
	require.Equal(t, 20*time.Second, left)
}

// A suspension cannot be committed: the call that asked has returned, and is not
// told as cut off by whoever does the step again.
func TestLedger_a_call_that_asked_may_ask_again_when_its_suspension_fails(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("pick", `{"text":"1"}`), says("bye")}}))
	down := &storeHook{Store: w.store, refuse: func(e journal.Entry) bool { return e.Kind == session.KindSuspended }}
	p := w.process(func(cfg *runtime.Config) { cfg.Store = down })
	w.start(p, "go")
	_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Equal(t, journal.ToolAsking, w.items(store.KindTool)[0].Tool.State)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusSuspended, w.session().Status)
	require.Equal(t, session.WaitQuestion, w.waits()[0].Wait.Kind, "it asks, and nobody asks what became of it")
}
