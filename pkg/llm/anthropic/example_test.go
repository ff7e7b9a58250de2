package anthropic_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm/anthropic"
)

// helped is a registry whose agent asks a model of Anthropic.
func helped() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{
		Models: agent.Models{"anthropic": anthropic.Open},
		Agents: []agent.Agent{{Name: "helper", Model: "anthropic:claude-sonnet-5-5", System: "You help."}},
	})
}

// A program that asks Anthropic hands Open to its registry. Nothing is asked, and no key
// is read, before the first task starts.
func Example() {
	registry, err := helped()
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := registry.Rules("helper", nil)
	fmt.Println(rules.Model, err)
	_, err = anthropic.Open(context.Background(), "claude-sonnet-5-5", func(string) string { return "" })
	fmt.Println(err)
	// Output:
	// anthropic:claude-sonnet-5-5 <nil>
	// model call: auth: ANTHROPIC_API_KEY is not set; set it, or set ANTHROPIC_BASE_URL to a server that needs none
}
