package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// ending is a finish tool that counts, and fails the first times.
func ending(made *effects, failing int) tool.Tool {
	return tool.Define(tool.Spec[textIn]{Name: "finish", Finish: true, Effect: session.ReadOnly}, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
		made.add("finish")
		if made.count("finish") <= failing {
			return "", errors.New("not yet")
		}
		return in.Text, nil
	})
}

// TestFinish_that_fails_is_no_output: the task goes on, and the model is told.
func TestFinish_that_fails_is_no_output(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("finish", `{"text":"1"}`), calls("finish", `{"text":"2"}`)}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, ending(made, 1))
	}))
	p := w.process()
	w.run(p, "go")
	require.Equal(t, []session.Kind{session.KindStarted, session.KindStepped, session.KindCompleted}, w.kinds())
	require.Equal(t, llm.ResultError, results(w.session())["c2-1"].Status)
	require.JSONEq(t, `"2"`, string(w.session().Output))
}

// TestSignal_stops_what_has_not_begun: a tool that would begin after the signal does
// not, whether it finishes the task or waits for its turn.
func TestSignal_stops_what_has_not_begun(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"finish", "line"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			var w *world
			a := hooked(made, script{"go": {calls("hook", `{"text":"1"}`, next, `{"text":"2"}`), says("bye")}}, func(ctx context.Context, _ string) {
				w.signal(journal.SignalCancel)
				<-ctx.Done()
			})
			a.Tools = append(a.Tools, ending(made, 0))
			w = newWorld(t, made, a)
			p := w.process(func(cfg *runtime.Config) { cfg.WatchEvery, cfg.ToolsAtOnce = time.Millisecond, 1 })
			w.start(p, "go")
			require.NoError(t, p.work())
			require.Equal(t, session.StatusCancelled, w.session().Status)
			require.Equal(t, map[string]int{"hook 1": 1}, made.all())
			require.Equal(t, llm.ResultCancelled, results(w.session())["c2-2"].Status)
			w.checkAtRest()
		})
	}
}

// TestDeadline_that_fails_the_task_runs_nothing_more: what was held until all was
// decided never runs.
func TestDeadline_that_fails_the_task_runs_nothing_more(t *testing.T) {
	t.Parallel()
	made := newEffects()
	guarded := tool.Define(tool.Spec[textIn]{Name: "guarded", Approve: tool.Always[textIn], Expiry: &tool.Expiry{After: time.Hour, Outcome: session.ExpireFail}},
		func(context.Context, *tool.Call, textIn) (string, error) { made.add("guarded"); return "ran", nil })
	w := newWorld(t, made, helper(made, script{"go": {calls("guarded", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}}, func(a *agent.Agent) {
		a.Policy.HoldBatch = true
		a.Tools = append(a.Tools, guarded)
	}))
	p := w.process()
	w.run(p, "go")
	require.Empty(t, made.all())
	w.clock.advance(2 * time.Hour)
	sweepOf(t, p)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusFailed, w.session().Status)
	require.Empty(t, made.all())
	require.Len(t, results(w.session()), 2)
	w.checkAtRest()
}

// TestMail_late_beside_mail_that_was_taken_in: each is told once.
func TestMail_late_beside_mail_that_was_taken_in(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"early": {says("one"), says("two")}, "late": {says("three")}}))
	come := true
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &storeHook{Store: w.store, entry: func(e journal.Entry) {
			if e.Kind == session.KindCompleted && come {
				come = false
				w.mail("m2", "late")
			}
		}}
	})
	w.start(p, "go")
	w.mail("m1", "early")
	require.NoError(t, p.work())
	told := map[string]int{}
	for _, m := range w.session().Messages {
		told[m.Text()]++
	}
	require.Equal(t, 1, told["early"])
	require.Equal(t, 1, told["late"])
	require.Equal(t, session.StatusCompleted, w.session().Status)
	w.checkAtRest()
}
