package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/tool"
)

func Example() {
	type In struct {
		City string `json:"city"`
	}
	weather := tool.Define(tool.Spec[In]{
		Name: "weather", Description: "The weather in a city.", Effect: tool.ReadOnly,
	}, func(_ context.Context, _ *tool.Call, in In) (string, error) { return "sun over " + in.City, nil })

	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "guide", Tools: []tool.Tool{weather}, Limits: agent.Limits{Steps: 50},
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
		{Name: "guide", Limits: agent.Limits{Steps: -5}},
		{Name: "guide", Model: "openai:gpt-5"},
	}})
	fmt.Println(err)
	// Output:
	// agent "guide": Model: the agent has nothing that plans: set Model, Planner or Offline
	// agent "guide": Limits.Steps: -5 is negative: use agent.Unlimited for no limit, zero for the default
	// agent "guide": Name: another agent has it: rename one of them
	// agent "guide": Model: "openai:gpt-5": this program has no model providers: import github.com/adjourn/adjourn/pkg/llm/openai and set Models: agent.Models{"openai": openai.Open} in the Config
}

// A planner in Go takes the place of a model: here a fixed plan that goes by the
// results so far. It may be asked again for a reply that was not committed, so it
// answers from the messages alone.
func ExamplePlanner() {
	steps := agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
		switch last := v.Messages[len(v.Messages)-1]; {
		case last.Role == agent.RoleUser:
			return agent.Reply{Calls: []agent.Call{{Name: "measure", Arguments: map[string]string{"what": last.Text()}}}}, nil
		case last.Parts[0].ToolResult.Status != agent.ResultSuccess:
			return agent.Reply{Text: "I could not measure it. Shall I try again?", NeedsInput: true}, nil
		default:
			return agent.Reply{Text: "It is " + string(last.Parts[0].ToolResult.Output) + " high."}, nil
		}
	})

	ask := agent.Message{Role: agent.RoleUser, Parts: []agent.Part{{Kind: "text", Text: "the tower"}}}
	reply, err := steps.Plan(context.Background(), agent.View{Messages: []agent.Message{ask}})
	message, _ := reply.Message()
	fmt.Println(message.ToolCalls()[0].Name, string(message.ToolCalls()[0].Arguments), err)

	for _, result := range []agent.ToolResult{
		{Status: agent.ResultSuccess, Output: json.RawMessage(`57`)}, {Status: agent.ResultDenied, Output: json.RawMessage(`"no"`)},
	} {
		answer := agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Kind: "tool_result", ToolResult: &result}}}
		reply, err = steps.Plan(context.Background(), agent.View{Messages: []agent.Message{ask, message, answer}})
		fmt.Println(reply.Text, reply.NeedsInput, err)
	}
	// Output:
	// measure {"what":"the tower"} <nil>
	// It is 57 high. false <nil>
	// I could not measure it. Shall I try again? true <nil>
}

// An agent with an output ends its tasks with the finish tool, whose arguments
// are held to the schema.
func ExampleOutputOf() {
	type Verdict struct {
		Approve bool   `json:"approve"`
		Why     string `json:"why" jsonschema:"in one sentence"`
	}
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "judge", Output: agent.OutputOf[Verdict](),
		Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
			return agent.Reply{Calls: []agent.Call{{Name: agent.FinishTool, Arguments: Verdict{Approve: true, Why: "it is small"}}}}, nil
		}),
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	finish, _ := registry.Tool("judge", agent.FinishTool)
	fmt.Println(finish.Validate(json.RawMessage(`{"approve": true, "why": "it is small"}`)))
	fmt.Println(finish.Validate(json.RawMessage(`{"approve": "yes"}`)))
	// Output:
	// <nil>
	// The arguments of __finish__ are not valid. Correct them and call it again:
	// - /approve: expected boolean, got string
	// - /why: missing, but required: expected string (in one sentence)
}

func ExampleRetry() {
	patience := agent.Retry{Attempts: 4, Base: time.Second, Max: 3 * time.Second}
	for failures := 1; !patience.GivesUp(failures); failures++ {
		fmt.Println(patience.Delay(failures, 0))
	}
	fmt.Println(patience.Delay(1, time.Minute), "if the provider asks for it")
	// Output:
	// 1s
	// 2s
	// 3s
	// 1m0s if the provider asks for it
}
