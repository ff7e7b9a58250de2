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
	require.EqualError(t, err, "there are 2 replies, and one more was asked for")
}
