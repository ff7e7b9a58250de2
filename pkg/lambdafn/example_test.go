package lambdafn_test

import (
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

// The program of a Lambda function is its registry of agents and one call, which does not
// return.
func Example() {
	registry := func() (*agent.Registry, error) {
		return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "greeter", Planner: agent.Replies(agent.Reply{Text: "Hello."})}}})
	}
	main := func() { lambdafn.Step(registry) }
	_ = main
}
