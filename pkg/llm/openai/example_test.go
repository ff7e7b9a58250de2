package openai_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm/openai"
)

// A program that asks OpenAI hands Open to its registry. Nothing is asked, and no key
// is read, before the first task starts.
func Example() {
	registry, err := agent.NewRegistry(agent.Config{
		Models: agent.Models{"openai": openai.Open},
		Agents: []agent.Agent{{Name: "helper", Model: "openai:gpt-5-mini", System: "You help."}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := registry.Rules("helper", nil)
	fmt.Println(rules.Model, err)
	_, err = openai.Open(context.Background(), "gpt-5-mini", func(string) string { return "" })
	fmt.Println(err != nil)
	// Output:
	// openai:gpt-5-mini <nil>
	// true
}
