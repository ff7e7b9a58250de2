//go:build unix

package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The data file is deleted while a tool runs: no other effect happens for a file
// that nobody has, and what became of it is told.
func TestDataDeletedUnderARun(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "a.db")
	ran := 0
	lose := tool.Define(tool.Spec[struct{}]{Name: "lose", Description: "Delete the data.", Effect: session.SideEffect},
		func(context.Context, *tool.Call, struct{}) (string, error) {
			ran++
			if ran == 1 {
				return "done", os.Remove(data)
			}
			return "done", nil
		})
	a, err := embedded.Open(t.Context(), embedded.Config{Data: data, Env: none, Registry: func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
			Name: "loser", Tools: []tool.Tool{lose},
			Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
				call := agent.Call{Name: "lose"}
				return agent.Reply{Calls: []agent.Call{call}}, nil
			}),
		}}})
	}})
	require.NoError(t, err)
	started, err := a.Runtime.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant}, Agent: "loser", Input: llm.TextParts("hi")})
	require.NoError(t, err)
	err = a.Runtime.Drive(t.Context(), started.Key, a.Only(started.Key))
	require.ErrorIs(t, err, store.ErrGone)
	require.Equal(t, runtime.CodeStoreGone, runtime.AsError(err).Code)
	require.ErrorContains(t, err, "was deleted or moved away while it was in use")
	require.Equal(t, 1, ran)
	require.NoError(t, a.Close())
	require.NoFileExists(t, data)
}
