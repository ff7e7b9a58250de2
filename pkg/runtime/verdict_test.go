package runtime_test

import (
	"context"
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

// thawing is a session that waits for a verdict on a call whose worker is frozen between
// the effect and its ledger. thaw writes that ledger as the worker does when it goes on:
// at the revision of its mark, which nobody has moved.
func thawing(t *testing.T) (w *world, p *process, thaw func(llm.ResultStatus)) {
	t.Helper()
	made := newEffects()
	w = newWorld(t, made, helper(made, script{"go": {calls("check", `{"text":"1"}`), says("bye")}, "message": {says("heard")}}, func(a *agent.Agent) {
		a.Policy.AbandonOnMessage = true
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{
			Name: "check", OnUnknown: session.UnknownAsk, Expiry: &tool.Expiry{After: 24 * time.Hour, Outcome: session.ExpireDeny},
		}, func(context.Context, *tool.Call, textIn) (string, error) { return "did 1", nil }))
	}))
	w.start(w.process(), "go")
	w.dies(4)
	mark := w.items(store.KindTool)[0]
	require.Equal(t, journal.ToolStarted, mark.Tool.State)
	w.clock.advance(time.Hour)
	p = w.process()
	require.NoError(t, p.settle())
	require.Equal(t, session.WaitOpen, w.open(session.WaitUnknown).State)
	return w, p, func(status llm.ResultStatus) {
		mark.Tool.State, mark.Tool.Result = journal.ToolFinished, &llm.ToolResult{CallID: "c2-1", Name: "check", Status: status, Output: []byte(`"did 1"`)}
		mark.Tool.Events = []session.CustomEvent{{Name: "did"}}
		w.update(mark)
	}
}

// TestVerdict_of_a_call_that_has_finished_since: the result is what the tool returned,
// with all it brought, and not what a person concluded who could not see it.
func TestVerdict_of_a_call_that_has_finished_since(t *testing.T) {
	t.Parallel()
	verdict := func(v session.Verdict) func(*world, *process) {
		return func(w *world, p *process) {
			_, err := w.submit(p, session.WaitUnknown, session.Answer{Verdict: v})
			require.NoError(w.t, err)
		}
	}
	signalled := func(kind journal.SignalKind) func(*world, *process) {
		return func(w *world, p *process) {
			verdict(session.VerdictNotHappened)(w, p)
			_, err := p.deliverOne(context.Background()) // takes the verdict in
			require.NoError(w.t, err)
			w.signal(kind)
		}
	}
	held := func(w *world, p *process) {
		_, err := p.Submit(context.Background(), runtime.SubmitParams{
			Key: w.key, Caller: person, HoldResume: true, Answer: fill(w.open(session.WaitUnknown).Wait, session.Answer{Verdict: session.VerdictNotHappened}),
		})
		require.NoError(w.t, err)
	}
	for name, c := range map[string]struct {
		ends func(w *world, p *process)
		// what the call ends with where its worker never finished it, or did not know either
		unfinished llm.ResultStatus
	}{
		"not happened": {verdict(session.VerdictNotHappened), llm.ResultError},
		"happened":     {verdict(session.VerdictHappened), llm.ResultSuccess},
		"nobody said":  {func(w *world, _ *process) { w.clock.advance(48 * time.Hour) }, llm.ResultUnknown},
		"a message": {func(w *world, p *process) {
			_, err := resume(w, p, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
			require.NoError(w.t, err)
		}, llm.ResultUnknown},
		"a verdict that is held, and goes on": {func(w *world, p *process) {
			held(w, p)
			_, err := w.goOn(p)
			require.NoError(w.t, err)
		}, llm.ResultError},
		"a verdict, and a cancel": {signalled(journal.SignalCancel), llm.ResultError},
		"a verdict, and an abort": {signalled(journal.SignalAbort), llm.ResultError},
	} {
		for _, ledger := range []llm.ResultStatus{llm.ResultSuccess, llm.ResultUnknown, ""} {
			t.Run(name+"/"+string(ledger), func(t *testing.T) {
				t.Parallel()
				w, p, thaw := thawing(t)
				if ledger != "" {
					thaw(ledger)
				}
				c.ends(w, p)
				require.NoError(t, p.settle())
				require.True(t, w.session().Status.Ended())
				r := results(w.session())["c2-1"]
				if ledger != llm.ResultSuccess {
					require.Equal(t, c.unfinished, r.Status)
					return
				}
				require.Equal(t, llm.ResultSuccess, r.Status)
				require.JSONEq(t, `"did 1"`, string(r.Output))
				events := 0
				for _, e := range w.journal() {
					events += len(e.Events)
				}
				require.Equal(t, 1, events)
				w.checkAtRest()
			})
		}
	}
}
