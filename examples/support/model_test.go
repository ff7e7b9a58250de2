package main

import (
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm/openai"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The variant with a real model that the comment in main.go describes.
func TestModel(t *testing.T) {
	t.Parallel()
	registry, err := agent.NewRegistry(agent.Config{
		Models: agent.Models{"openai": openai.Open},
		Agents: []agent.Agent{{
			Name: "support", System: "You help customers of a shop.", Offline: replies,
			Tools: []tool.Tool{refund}, Limits: agent.Limits{Steps: 50},
		}},
	})
	require.NoError(t, err)

	comment := comments(t)
	require.Contains(t, comment, `Models: agent.Models{"openai": openai.Open} in the Config`)
	setting := regexp.MustCompile(agent.ModelVariable + `=([a-z]+:[a-z0-9-]+)`).FindStringSubmatch(comment)
	require.NotNil(t, setting, comment)
	env := func(name string) string {
		return map[string]string{agent.ModelVariable: setting[1], "OPENAI_API_KEY": "k"}[name]
	}

	offline, err := registry.Rules("support", nil)
	require.NoError(t, err)
	require.Empty(t, offline.Model)
	named, err := registry.Rules("support", env)
	require.NoError(t, err)
	require.Equal(t, setting[1], named.Model)
	_, err = registry.Planner(t.Context(), named, env)
	require.NoError(t, err)
}

// comments returns those of main.go, as one line.
func comments(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", program, parser.ParseComments)
	require.NoError(t, err)
	var text strings.Builder
	for _, group := range file.Comments {
		text.WriteString(group.Text())
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
