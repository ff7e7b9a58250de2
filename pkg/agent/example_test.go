package agent_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func ExampleNewRegistry() {
	type In struct {
		City string `json:"city"`
	}
	weather := tool.Define(tool.Spec[In]{
		Name: "weather", Description: "The weather in a city.", Effect: session.ReadOnly,
	}, func(_ context.Context, _ *tool.Call, in In) (string, error) { return "sun over " + in.City, nil })

	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "guide", Tools: []tool.Tool{weather}, Limits: session.Limits{Steps: 50},
		Planner: agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
			if len(v.Messages) == 1 {
				return agent.Reply{Calls: []agent.Call{{Name: "weather", Arguments: In{City: v.Messages[0].Text()}}}}, nil
			}
			return agent.Reply{Text: "Take a walk."}, nil
		}),
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := registry.Rules("guide", nil)
	fmt.Println(rules.Agent, rules.Tools, rules.Limits.Steps, err)
	// Output: guide [weather] 50 <nil>
}

// Every mistake of every definition is reported at once.
func ExampleNewRegistry_mistakes() {
	_, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{
		{Name: "guide", Limits: session.Limits{Steps: -5}},
		{Name: "guide", Model: "openai:gpt-5"},
	}})
	fmt.Println(err)
	// Output:
	// agent "guide": Model: the agent has nothing that plans: set Model, Planner or Offline
	// agent "guide": Limits.Steps: -5 is negative: use session.Unlimited for no limit, zero for the default
	// agent "guide": Name: another agent has it: rename one of them
	// agent "guide": Model: "openai:gpt-5": this program has no model providers: add one to Models
}
