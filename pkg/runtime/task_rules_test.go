package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

func (w *world) startAsking(p *process, asked session.TaskRules, change ...func(*runtime.StartParams)) error {
	params := runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts("go"), Rules: asked, Caller: people}
	for _, c := range change {
		c(&params)
	}
	_, err := p.Start(context.Background(), params)
	return err
}

// What a caller asks of a task holds while it is tried again, until it is changed.
func TestTaskRules_limits(t *testing.T) {
	t.Parallel()
	made := newEffects()
	plan := script{"go": {calls("echo", `{"text":"1"}`), calls("echo", `{"text":"2"}`), says("bye")}}
	w := newWorld(t, made, helper(made, plan, func(a *agent.Agent) { a.Limits.Steps, a.Callers.RaiseLimits.Steps = 3, 5 }))
	require.NoError(t, w.startAsking(w.process(), session.TaskRules{Limits: session.AskedLimits{Steps: 1}}))
	require.NoError(t, w.process().work())
	require.Equal(t, "limit_reached", w.session().Failure.Type)
	again := func(limits session.AskedLimits) error {
		_, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, Rules: session.TaskRules{Limits: limits}, Caller: people})
		if err != nil {
			return err
		}
		return w.process().settle()
	}
	require.NoError(t, again(session.AskedLimits{}))
	require.Equal(t, session.StatusFailed, w.session().Status, "one step more, and it asks for another one")
	require.EqualValues(t, 1, w.session().Rules.Limits.Steps)
	require.Equal(t, runtime.CodeNotAllowed, codeOf(again(session.AskedLimits{Steps: 6})))
	require.NoError(t, again(session.AskedLimits{Steps: 5}))
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.EqualValues(t, 5, w.session().Rules.Limits.Steps)
	w.checkAtRest()
}

// A tool that is left out is not there for the task, nor for one that begins from its checkpoint.
func TestTaskRules_tools(t *testing.T) {
	t.Parallel()
	made := newEffects()
	plan := script{"go": {calls("line", `{"text":"1"}`), says("bye")}}
	w := newWorld(t, made, helper(made, plan))
	require.NoError(t, w.startAsking(w.process(), session.TaskRules{AllowedTools: []string{"note", "echo", "echo"}, HoldBatch: new(true)}))
	require.NoError(t, w.process().work())
	require.Equal(t, []string{"echo", "note"}, w.session().Rules.Tools)
	require.True(t, w.session().Rules.Policy.HoldBatch)
	require.Equal(t, llm.ResultError, results(w.session())["c2-1"].Status)
	require.Empty(t, made.all())

	_, err := acknowledging(w.process(), &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: people})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Empty(t, made.all(), "it is not there from the checkpoint either")
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Checkpoint: checkpointAt(w, 1), Caller: people})
	require.NoError(t, err)
	view, err := w.process().View(context.Background(), forked.Key)
	require.NoError(t, err)
	require.Equal(t, []string{"note", "echo", "echo"}, view.Asked.AllowedTools)

	require.NoError(t, w.startAsking(w.process(), session.TaskRules{AllowedTools: []string{}}, func(p *runtime.StartParams) { p.Input = llm.TextParts("go") }))
	require.Empty(t, w.session().Rules.Tools)
}

// A task that does not wait for approvals is denied what needs one, and nothing runs.
func TestTaskRules_no_pause(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}}))
	require.NoError(t, w.startAsking(w.process(), session.TaskRules{PauseOnApproval: new(false)}))
	require.NoError(t, w.process().work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, llm.ResultDenied, results(w.session())["c2-1"].Status)
	require.Equal(t, map[string]int{"line 2": 1}, made.all())
	w.checkAtRest()
}

// A session begins with a state and metadata; a next turn may bring other metadata.
func TestStart_with_state(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("note", `{"text":"b"}`), says("bye")}}))
	with := func(metadata map[string]string, state map[string]json.RawMessage) error {
		return w.startAsking(w.process(), session.TaskRules{}, func(p *runtime.StartParams) { p.State, p.Metadata = state, metadata })
	}
	for name, refused := range map[string]error{
		"a state that is no JSON":    with(nil, map[string]json.RawMessage{"notes": json.RawMessage("[")}),
		"metadata without a name":    with(map[string]string{"": "x"}, nil),
		"metadata of too many bytes": with(map[string]string{"a": string(make([]byte, 513))}, nil),
		"a tool that there is not":   w.startAsking(w.process(), session.TaskRules{AllowedTools: []string{"rm"}}),
		"a limit that is none":       w.startAsking(w.process(), session.TaskRules{Limits: session.AskedLimits{Steps: -2}}),
		"a model of another planner": w.startAsking(w.process(), session.TaskRules{Model: "x:y"}),
	} {
		require.Equal(t, runtime.CodeInvalidInput, codeOf(refused), "%s: %v", name, refused)
	}
	require.NoError(t, with(map[string]string{"order": "A-17"}, map[string]json.RawMessage{"notes": json.RawMessage(`["a"]`)}))
	require.NoError(t, w.process().work())
	require.Equal(t, map[string]json.RawMessage{"notes": json.RawMessage(`["a","b"]`)}, w.session().State.Snapshot())
	require.Equal(t, runtime.CodeInvalidInput, codeOf(with(nil, map[string]json.RawMessage{"notes": json.RawMessage("1")})))
	require.NoError(t, with(nil, nil))
	require.Equal(t, map[string]string{"order": "A-17"}, w.session().Metadata)
	require.NoError(t, w.process().work())
	require.NoError(t, with(map[string]string{"by": "mail"}, nil))
	require.Equal(t, map[string]string{"by": "mail"}, w.session().Metadata)
}
