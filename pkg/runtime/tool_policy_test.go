package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

func policyOf(modes map[string]session.ToolMode) session.TaskRules {
	return session.TaskRules{Policy: &session.ToolPolicy{Tools: modes}}
}

// What the policy of a task has prompted for waits, what it forbids is denied, and auto loosens nothing.
func TestToolPolicy(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`, "note", `{"text":"3"}`), says("bye")}}))
	w.rules = policyOf(map[string]session.ToolMode{"line": session.ToolPrompt, "deploy": session.ToolAuto, "note": session.ToolNever, "rm": session.ToolNever})
	w.run(w.process(), "go")
	require.Contains(t, w.session().Rules.Needs, session.NeedsToolPolicy)
	require.Equal(t, session.StatusSuspended, w.session().Status)
	require.Len(t, w.waits(), 2, "line by the policy, deploy by itself")
	require.Empty(t, made.all())
	for range 2 {
		_, err := w.submit(w.process(), session.WaitApproval, yes())
		require.NoError(t, err)
	}
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, map[string]int{"line 1": 1, "deploy 2": 1}, made.all())
	require.Equal(t, llm.ResultDenied, results(w.session())["c2-3"].Status)
	require.Contains(t, asJSON(t, results(w.session())["c2-3"]), "not allowed in this task")
	w.checkAtRest()
}

// The default is for tools that are not named.
func TestToolPolicy_default(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "echo", `{"text":"2"}`), says("bye")}}))
	w.rules = session.TaskRules{Policy: &session.ToolPolicy{Default: session.ToolNever, Tools: map[string]session.ToolMode{"echo": session.ToolAuto}}}
	w.run(w.process(), "go")
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Empty(t, made.all())
	require.Equal(t, llm.ResultDenied, results(w.session())["c2-1"].Status)
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-2"].Status)
}

// What is forbidden while it is open does not run, though it was approved; what had taken effect before is
// not said to have been denied.
func TestToolPolicy_changes_while_calls_are_open(t *testing.T) {
	t.Parallel()
	t.Run("approved", func(t *testing.T) {
		t.Parallel()
		w, made := interrupted(t)
		for i := range 2 {
			_, err := w.answer(w.process(), i)
			require.NoError(t, err)
		}
		_, err := w.withRules(w.process(), policyOf(map[string]session.ToolMode{"deploy": session.ToolNever}))
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		require.Equal(t, map[string]int{"line 1": 1}, made.all())
		require.Equal(t, llm.ResultDenied, results(w.session())["c4-1"].Status)
	})
	for at, want := range map[int]llm.ResultStatus{4: llm.ResultUnknown, 5: llm.ResultSuccess} { // started, finished
		for _, mode := range []session.ToolMode{session.ToolNever, session.ToolPrompt} {
			t.Run(fmt.Sprintf("%s/%s", want, mode), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, stopScript()))
				w.start(w.process(), "go")
				w.drain()
				w.dies(at)
				w.clock.advance(time.Minute)
				_, err := w.stop(w.process(), runtime.SignalInterrupt)
				require.NoError(t, err)
				effects := made.all()
				_, err = w.withRules(w.process(), policyOf(map[string]session.ToolMode{"line": mode}))
				require.NoError(t, err)
				require.NoError(t, w.process().settle())
				require.Equal(t, want, results(w.session())["c2-1"].Status)
				require.Equal(t, effects, made.all())
			})
		}
	}
}

func TestToolPolicy_refused(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	for _, policy := range []session.ToolPolicy{{Default: "ask"}, {Tools: map[string]session.ToolMode{"line": "yes"}}, {Tools: map[string]session.ToolMode{"line": ""}}} {
		_, err := w.process().Start(context.Background(), runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts("go"), Caller: person, Rules: session.TaskRules{Policy: &policy}})
		require.Equal(t, runtime.CodeInvalidInput, codeOf(err))
		require.ErrorContains(t, err, "auto, prompt or never")
	}
}

// A policy holds from a checkpoint on too, until it is changed, and denies where the task does not pause.
func TestToolPolicy_goes_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people, Rules: policyOf(map[string]session.ToolMode{"deploy": session.ToolNever})}
	_, err := acknowledging(w.process(), &params)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status, "nobody is asked")
	params = runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: people, Rules: session.TaskRules{
		PauseOnApproval: new(false), Policy: &session.ToolPolicy{Default: session.ToolPrompt},
	}}
	_, err = acknowledging(w.process(), &params)
	require.NoError(t, err)
	before := made.all()
	require.NoError(t, w.process().settle())
	require.Equal(t, before, made.all(), "what is prompted for is denied")
	w.checkAtRest()
}
