package serverless_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/session"
)

// A program beside the functions of a stack, with their environment (the names of the table,
// the bucket and the queue): here it reads what waits in a session.
func Example() {
	ctx := context.Background()
	app, err := serverless.Open(ctx, serverless.Config{
		Registry: func() (*agent.Registry, error) { return agent.NewRegistry(agent.Config{}) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	waits, err := app.Runtime.Waits(ctx, session.Key{Tenant: session.DefaultTenant, ID: "s1"})
	for _, w := range waits {
		fmt.Println(w.Wait.ID, w.State)
	}
	fmt.Println(err)
}
