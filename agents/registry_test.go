package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
)

// ours are the agents that come with the program; yours are beside them.
var ours = []string{"janitor", "lab"}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r, err := agents.Registry()
	require.NoError(t, err)
	require.Subset(t, r.Names(), ours)
	for _, name := range ours {
		rules, err := r.Rules(name, nil)
		require.NoError(t, err)
		planner, err := r.Planner(t.Context(), rules, nil)
		require.NoError(t, err)
		reply, err := planner.Plan(t.Context(), agent.View{Messages: []llm.Message{llm.User("what can you do?")}})
		require.NoError(t, err, "every agent answers without network or settings")
		m, err := reply.Message()
		require.NoError(t, err)
		require.NotEmpty(t, m.Text())
	}
}

func TestRegistry_with_a_model(t *testing.T) {
	t.Parallel()
	r, err := agents.Registry()
	require.NoError(t, err)
	env := agent.Env(func(key string) string {
		return map[string]string{agent.ModelVariable: "openai:gpt-5-mini", "OPENAI_API_KEY": "sk-test"}[key]
	})
	for _, name := range ours {
		rules, err := r.Rules(name, env)
		require.NoError(t, err)
		require.Equal(t, "openai:gpt-5-mini", rules.Model, "a real model drives the same tools")
		_, err = r.Planner(t.Context(), rules, env)
		require.NoError(t, err)
	}
}
