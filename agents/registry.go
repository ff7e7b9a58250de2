// Package agents lists the agents of this program.
//
// Every function and the CLI build the same [Registry]. Add yours here; a model
// provider that no agent uses can be taken out, and its adapter is then not linked.
package agents

import (
	"github.com/adjourn/adjourn/agents/janitor"
	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm/openai"
)

// Registry returns the agents, or every mistake of every definition at once.
func Registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{
		Models: agent.Models{
			"scripted": lab.Open,
			"openai":   openai.Open,
		},
		Agents: []agent.Agent{
			lab.Agent(),
			janitor.Agent(),
		},
	})
}
