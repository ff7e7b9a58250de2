package cli_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/tool"
)

// described is a program whose only tool is described in these words, and asks first.
func described(words string) func() (*agent.Registry, error) {
	return func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
			Name:    "toy",
			Planner: agent.Replies(agent.Reply{Calls: []agent.Call{{Name: "deploy", Arguments: noIn{}}}}, agent.Reply{Text: "ok"}),
			Tools: []tool.Tool{tool.Define(tool.Spec[noIn]{Name: "deploy", Description: words, Approve: tool.Always[noIn]},
				func(ctx context.Context, c *tool.Call, _ noIn) (string, error) {
					reply, err := c.Ask(ctx, tool.Question{ID: "where", Text: "Where?"})
					return reply.Text, err
				})},
		}}})
	}
}

// TestAskedAgain: who approved something is told why it is asked once more.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registry = described("Deploys.")
	b.start("s", "x", 10)
	b.registry = described("Deploys everywhere.")
	why := "w4-1 is asked again, because deploy (or its agent) was changed after w2-1 was approved"
	require.Contains(t, b.run("resume", "s", "--approve", "w2-1").ends(10).stderr, why+"\n")
	require.Contains(t, b.run("show", "s").ends(0).stdout, "again     "+why+"\n")
	require.NotContains(t, b.run("resume", "s", "--approve", "w4-1").ends(10).stderr, "asked again", "another question is none")
	b.registry = described("Deploys nowhere.")
	why = " is asked again, because deploy (or its agent) was changed after "
	require.Contains(t, b.run("submit", "s", "w6-1", "--reply", "here").ends(10).stderr, "w8-1"+why+"w4-1 was approved\n")
	require.Contains(t, b.run("resume", "s", "--approve", "w8-1").ends(10).stderr, "w10-1"+why+"w6-1 was answered\n")
	require.Contains(t, b.run("show", "s").ends(0).stdout, "w10-1"+why+"w6-1 was answered\n")
}
