// Tour shows what tools and planners may do beside calling a function: ask, remember, wait for the client, end with output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/tool"
)

type place struct {
	City string `json:"city"`
}

type booking struct {
	Table string `json:"table"`
	Taken bool   `json:"taken"`
}

// A tool that runs in the client: the session waits for its result.
var locate = tool.DefineClient(tool.Spec[struct{}]{Name: "locate", Description: "Where the user is."})

// A tool that asks a person. It runs again from its top when the answer is there;
// what Once did is not done again. After an hour without an answer it is a no.
var book = tool.Define(tool.Spec[place]{Name: "book", Description: "Book a table."},
	func(ctx context.Context, c *tool.Call, in place) (booking, error) {
		table, err := tool.Once(ctx, c, "offer", func(context.Context) (string, error) {
			return "table 7 in " + in.City, nil // reserve it at the restaurant here
		})
		if err != nil {
			return booking{}, err
		}
		reply, err := c.Ask(ctx, tool.Question{
			ID: "confirm", Text: "Take " + table + "?", Choices: []tool.Choice{{ID: "yes"}, {ID: "no"}},
			Expiry: &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDefault, Value: "no"},
		})
		if err != nil {
			return booking{}, err // tool.ErrWaiting: the session pauses here
		}
		return booking{Table: table, Taken: reply.Selected[0] == "yes"}, nil
	})

// plan is an agent without a model: the next call follows from the results so far.
func plan(_ context.Context, v agent.View) (agent.Reply, error) {
	last := v.Messages[len(v.Messages)-1]
	if last.Role == agent.RoleUser {
		return agent.Reply{Calls: []agent.Call{{Name: "locate", Arguments: struct{}{}}}}, nil
	}
	result := last.Parts[0].ToolResult
	if result.Status != agent.ResultSuccess {
		return agent.Reply{}, errors.New("the tour ends here: " + string(result.Output))
	}
	next := map[string]string{"locate": "book", "book": agent.FinishTool}[result.Name]
	return agent.Reply{Calls: []agent.Call{{Name: next, Arguments: json.RawMessage(result.Output)}}}, nil
}

// Registry lists one agent, whose tasks end with a booking as their output.
func Registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "tour", Planner: agent.PlannerFunc(plan),
		Tools: []tool.Tool{locate, book}, Output: agent.OutputOf[booking](),
	}}})
}

func main() { cli.Main(Registry) }
