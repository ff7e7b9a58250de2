package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
)

// The next reply follows from the messages alone: asked twice, it is the same, and a
// user message begins anew.
func TestReplies(t *testing.T) {
	t.Parallel()
	p := agent.Replies(agent.Reply{Calls: []agent.Call{{Name: "echo"}}}, agent.Reply{Text: "done"})
	result := llm.Message{Role: llm.RoleTool}
	for _, c := range []struct {
		messages []llm.Message
		text     string
		calls    int
	}{
		{[]llm.Message{llm.User("go")}, "", 1},
		{[]llm.Message{llm.User("go"), llm.Assistant(""), result}, "done", 0},
		{[]llm.Message{llm.User("go"), llm.Assistant(""), result, llm.Assistant("done"), llm.User("again")}, "", 1},
	} {
		for range 2 {
			reply, err := p.Plan(t.Context(), agent.View{Messages: c.messages})
			require.NoError(t, err)
			require.Equal(t, c.text, reply.Text)
			require.Len(t, reply.Calls, c.calls)
		}
	}
	_, err := p.Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("go"), llm.Assistant(""), result, llm.Assistant("done")}})
	require.EqualError(t, err, "agent.Replies has 2 for this task, and one more was asked for: after its last call a task needs a reply with the text that ends it")
}

// TestPlannersThatNeverPlan: a registry says so, instead of the first task.
func TestPlannersThatNeverPlan(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]agent.Planner{
		`agent "a": Planner: the function is nil: give it one`:                                                                                    agent.PlannerFunc(nil),
		`agent "a": Planner: number 2 of agent.Replies can never be given: reply: call 1: the arguments of pay cannot be made JSON`:               agent.Replies(agent.Reply{}, agent.Reply{Calls: []agent.Call{{Name: "pay", Arguments: make(chan int)}}}),
		`agent "a": Planner: number 1 of agent.Replies can never be given: reply: Parts are used instead of Text and Calls: set one or the other`: agent.Replies(agent.Reply{Text: "a", Parts: []llm.Part{}}),
	} {
		_, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "a", Planner: p}}})
		require.ErrorContains(t, err, want)
	}
}
