package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// A call that was approved with other arguments is left behind with those.
func TestLeftBehind_edited(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.asks(session.WaitApproval, "refund")
	answer := st.approval(0, true)
	answer.EditedInput = json.RawMessage(`{"order":"A-2"}`)
	st.resumed(answer).step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "refund", `1`)}}).says("done")
	left, err := engine.LeftBehind(key, st.entries, 2)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.JSONEq(t, `{"order":"A-2"}`, string(left[0].Call.Arguments))
}

// What a client has brought is among the calls that are left behind, with its result and when it was
// brought: where the task went on with it, and where a way back took it in and it counts for nothing.
func TestLeftBehind_brought_by_a_client(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*story){
		"the task went on with it": func(st *story) {
			st.resumed(st.answer(0, session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`"Berlin"`) }))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "locate", `"Berlin"`)}}).says("there")
		},
		"a way back took it in": func(st *story) {
			answer := st.answer(0, session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`"Berlin"`) })
			to, err := engine.Fold(key, st.entries[:2])
			require.NoError(st.t, err)
			m := engine.Restored(st.s, engine.GoingBack{To: to, Rules: taskRules(), Trigger: session.TriggerResume, Answers: []session.Answer{answer}}, st.stamp())
			require.NoError(st.t, engine.Check(st.s, &m.Entry))
			st.raw(m.Entry)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			st.asks(session.WaitClientTool, "locate")
			tell(st)
			left, err := engine.LeftBehind(key, st.entries, 2)
			require.NoError(t, err)
			require.NotEmpty(t, left)
			m := left[0]
			require.Equal(t, "c2-1", m.Call.ID)
			require.True(t, m.ByClient)
			require.NotNil(t, m.Result)
			require.JSONEq(t, `"Berlin"`, string(m.Result.Output))
			require.Equal(t, t0, m.At, "when it was brought")
		})
	}
}
