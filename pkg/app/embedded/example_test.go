package embedded_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// A Go program that embeds the engine: it starts a session, drives it until it rests,
// and reads what it said.
func Example() {
	ctx := context.Background()
	app, err := embedded.Open(ctx, embedded.Config{
		Registry: func() (*agent.Registry, error) {
			return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "greeter", Planner: agent.Replies(agent.Reply{Text: "Hello."})}}})
		},
		Data: ":memory:",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close() //nolint:errcheck // it is in memory
	started, err := app.Runtime.Start(ctx, runtime.StartParams{
		Key: session.Key{Tenant: session.DefaultTenant, ID: "first"}, Agent: "greeter", Input: llm.TextParts("Hi"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := app.Runtime.Drive(ctx, started.Key, app.Only(started.Key)); err != nil {
		fmt.Println(err)
		return
	}
	s, err := app.Runtime.Session(ctx, started.Key)
	fmt.Println(s.Key, s.Status, s.Messages[1].Text(), err)
	// Output: default/first completed Hello. <nil>
}
