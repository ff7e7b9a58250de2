// Support is a whole program: an agent that refunds orders and asks a person above a limit.
package main

import (
	"context"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/tool"
)

type refundIn struct {
	Order  string `json:"order" jsonschema:"the order's number"`
	Amount int    `json:"amount" jsonschema:"in dollars"`
}

type receipt struct {
	ID string `json:"id"`
}

var refund = tool.Define(tool.Spec[refundIn]{
	Name: "refund", Description: "Refund an order.",
	Approve: func(in refundIn) bool { return in.Amount > 100 }, // or tool.Always[refundIn]
}, func(_ context.Context, c *tool.Call, in refundIn) (receipt, error) {
	// Call your payment provider here, with c.IdempotencyKey().
	return receipt{ID: "refund of " + in.Order + " as " + c.ID()}, nil
})

// replies stand in for a model: one call, then a text. For a real one import
// pkg/llm/openai, set Models: agent.Models{"openai": openai.Open} in the Config,
// and run with ADJOURN_MODEL=openai:gpt-5-mini: Offline plans where no model is named.
var replies = agent.Replies(
	agent.Reply{Calls: []agent.Call{{Name: "refund", Arguments: refundIn{Order: "A-17", Amount: 250}}}},
	agent.Reply{Text: "A-17 is refunded."},
)

// Registry lists the agents of this program.
func Registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "support", System: "You help customers of a shop.", Offline: replies,
		Tools: []tool.Tool{refund}, Limits: agent.Limits{Steps: 50},
	}}})
}

func main() { cli.Main(Registry) }
