// Support is a whole program: an agent that refunds orders and asks a person above a limit.
package main

import (
	"context"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/scripted"
	"github.com/adjourn/adjourn/pkg/session"
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

// model stands in for a real one: it asks for one refund, then says what happened.
// With openai.Open under "openai" it would be Model: "openai:gpt-5-mini".
func model(context.Context, string, func(string) string) (llm.Model, error) {
	return scripted.New(scripted.Use("refund", `{"order":"A-17","amount":250}`), scripted.Say("A-17 is refunded.")), nil
}

// Registry lists the agents of this program.
func Registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{
		Models: agent.Models{"scripted": model}, // opened on the first model call
		Agents: []agent.Agent{{
			Name: "support", Model: "scripted:demo", System: "You help customers of a shop.",
			Tools: []tool.Tool{refund}, Limits: session.Limits{Steps: 50},
		}},
	})
}

func main() { cli.Main(Registry) }
