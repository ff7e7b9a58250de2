package scripted_test

import (
	"context"
	"fmt"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/scripted"
)

// A model that first calls a tool, then says something: for tests of an agent without a real
// model.
func Example() {
	model := scripted.New(
		scripted.Use("deploy", `{"version":"1.4.0"}`),
		scripted.Say("Deployed."),
	)
	request := llm.Request{Messages: []llm.Message{llm.User("Deploy 1.4.0")}}
	reply, err := llm.Collect(model.Stream(context.Background(), request), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := reply.Message.ToolCalls()[0]
	fmt.Println(call.Name, string(call.Arguments))
	// Output: deploy {"version":"1.4.0"}
}
