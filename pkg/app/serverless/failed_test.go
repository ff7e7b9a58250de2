package serverless_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/tool"
)

// A task that fails is one line of the log, the one that the template's metric
// filter counts; one that ends well is none. No line has what a person wrote.
func TestFailedTasksAreLogged(t *testing.T) {
	t.Parallel()
	nothing := tool.Define(tool.Spec[struct{}]{Name: "nothing", Description: "Does nothing.", Effect: session.ReadOnly},
		func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil })
	agents := func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{
			{Name: "endless", Tools: []tool.Tool{nothing}, Limits: session.Limits{Steps: 2}, Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
				return agent.Reply{Calls: []agent.Call{{Name: "nothing", Arguments: struct{}{}}}}, nil
			})},
			{Name: "good", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: "hello"}, nil })},
		}})
	}
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, load := newCloud(t)
	var log bytes.Buffer
	a, err := serverless.Open(t.Context(), serverless.Config{
		Registry: agents, AWS: load, Env: set(), Log: func(level slog.Level) *slog.Logger {
			return slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))
		},
		Decorate: func(p app.Parts) app.Parts { p.Store, p.Queue = db.Store(), db.Queue(); return p },
	})
	require.NoError(t, err)
	failed := func(agentName string) []map[string]any {
		log.Reset()
		started, err := a.Runtime.Start(t.Context(), runtime.StartParams{
			Key: session.Key{Tenant: "acme"}, Agent: agentName, Input: llm.TextParts("a secret of somebody"), Caller: runtime.Caller{Who: "ada"},
		})
		require.NoError(t, err)
		require.NoError(t, a.Runtime.Drive(t.Context(), started.Key, a.Queue))
		require.NotContains(t, log.String(), "secret")
		var lines []map[string]any
		for line := range strings.Lines(log.String()) {
			var fields map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &fields))
			if fields["msg"] == "task failed" {
				require.Equal(t, started.Key.ID, fields["session"])
				lines = append(lines, fields)
			}
		}
		return lines
	}
	require.Empty(t, failed("good"))
	lines := failed("endless")
	require.Len(t, lines, 1, log.String())
	require.Equal(t, "limit_reached", lines[0]["failure"])
	require.Equal(t, "acme", lines[0]["tenant"])
	require.Equal(t, "ERROR", lines[0]["level"])

	template, err := os.ReadFile("../../../template.yaml")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(template), `FilterPattern: '{ $.msg = "task failed" }'`))
}
