package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestOffered(t *testing.T) {
	t.Parallel()
	plan := agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: "hello"}, nil })
	all, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "toy", Planner: plan, Trial: true}, {Name: "clerk", Planner: plan}}})
	require.NoError(t, err)
	require.Equal(t, []string{"clerk", "toy"}, all.Offered(true).Names())
	require.Empty(t, all.Offered(true).AllWithheld())

	few := all.Offered(false)
	require.Equal(t, []string{"clerk"}, few.Names())
	require.Equal(t, []string{"toy"}, few.AllWithheld())
	require.True(t, few.Withheld("toy"))
	require.False(t, few.Withheld("clerk"))
	require.False(t, few.Withheld("nobody"))
	_, ok := few.Agent("toy")
	require.False(t, ok)
	_, err = few.Rules("toy", nil)
	require.ErrorIs(t, err, agent.ErrNotOffered)
	require.NotErrorIs(t, err, agent.ErrUnknownAgent)
	require.ErrorContains(t, err, "ADJOURN_LAB=true")
	_, err = few.Planner(t.Context(), session.Rules{Agent: "toy"}, nil)
	require.ErrorIs(t, err, agent.ErrNotOffered)
	_, err = few.Rules("nobody", nil)
	require.ErrorIs(t, err, agent.ErrUnknownAgent)
	_, err = few.Rules("clerk", nil)
	require.NoError(t, err)
}
