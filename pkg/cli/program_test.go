package cli_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli"
)

// shop is a user's own program, without an agent of ours.
func shop(t *testing.T, stdout interface{ Write([]byte) (int, error) }, args ...string) (int, string) {
	t.Helper()
	var stderr strings.Builder
	code := cli.Run(context.Background(), cli.Config{
		Registry: func() (*agent.Registry, error) {
			return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "till", Planner: agent.PlannerFunc(
				func(context.Context, agent.View) (agent.Reply, error) {
					return agent.Reply{Text: "which?", NeedsInput: true}, nil
				})}}})
		},
		Program: "go", ProgramArgs: []string{"run", "./cmd/shop"}, Env: func(name string) string { return map[string]string{configHome: os.Getenv(configHome)}[name] },
		Args: append([]string{"--data", t.TempDir() + "/shop.db"}, args...), Stdout: stdout, Stderr: &stderr,
	})
	return code, stderr.String()
}

func TestProgramOfAUserSpeaksOfItself(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	code, _ := shop(t, &help, "--help")
	require.Zero(t, code)
	require.Contains(t, help.String(), "shop inbox")
	require.Contains(t, help.String(), "  shop run \"INPUT\"                         start\n")
	require.Contains(t, help.String(), "Exit codes")
	for _, foreign := range []string{"janitor", "demo", "  adjourn "} {
		require.NotContains(t, help.String(), foreign)
	}
	for _, command := range []string{"run", "resume", "submit", "inbox", "sessions", "show", "agents", "work", "dev", "version"} {
		var help strings.Builder
		code, _ := shop(t, &help, command, "--help")
		require.Zero(t, code)
		for _, foreign := range []string{"janitor", "agent lab", "  adjourn "} {
			require.NotContains(t, help.String(), foreign, command)
		}
		if command == "dev" {
			require.NotContains(t, help.String(), "--lab")
			require.NotContains(t, help.String(), "try things out")
			require.Contains(t, help.String(), "Any number of commands")
		}
		if command == "run" {
			require.Contains(t, help.String(), "  shop run --agent till hello\n  shop run --agent till --output json < input.txt\n")
		}
	}
	var completion strings.Builder
	code, _ = shop(t, &completion, "completion", "bash")
	require.Zero(t, code)
	require.Contains(t, completion.String(), "__start_shop shop")

	var paused strings.Builder
	code, _ = shop(t, &paused, "run", "hello")
	require.Equal(t, 10, code)
	require.Contains(t, paused.String(), "go run ./cmd/shop --data")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatIsNotWrittenIsNoSuccess(t *testing.T) {
	t.Parallel()
	code, stderr := shop(t, full{}, "sessions", "--output", "json")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no space left on device")
}

func TestDataThatCannotLastIsRefused(t *testing.T) {
	t.Parallel()
	for data, words := range map[string]string{"": "--data is empty", ":memory:": "would be gone"} {
		code, stderr := shop(t, &strings.Builder{}, "--data", data, "sessions")
		require.Equal(t, 2, code)
		require.Contains(t, stderr, words)
	}
}

// TestProgramWithoutARegistry: a program that has forgotten it is told so.
func TestProgramWithoutARegistry(t *testing.T) {
	t.Parallel()
	for _, registry := range []func() (*agent.Registry, error){nil, func() (*agent.Registry, error) { return nil, nil }} { //nolint:nilnil // the mistake of this test
		b := setup(t)
		b.registry = registry
		for _, args := range [][]string{{"run", "x"}, {"agents"}, {"work"}} {
			require.Contains(t, b.run(args...).ends(1).stderr, "this program has no registry: give cli.Main a function")
		}
	}
}
