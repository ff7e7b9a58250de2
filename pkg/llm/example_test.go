package llm_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/adjourn/adjourn/pkg/llm"
)

// echo is a model that says what it was told.
type echo struct{}

func (echo) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	said := req.Messages[len(req.Messages)-1].Text()
	return func(yield func(llm.Event, error) bool) {
		for e := range llm.Events(llm.Reply{Message: llm.Assistant(said), Stop: llm.StopEnd}) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// An adapter streams events; Collect makes a reply of them.
func Example() {
	var model llm.Model = echo{}
	reply, err := llm.Collect(model.Stream(context.Background(), llm.Request{Messages: []llm.Message{llm.User("Hello")}}), nil)
	fmt.Println(reply.Message.Text(), reply.Stop, err)
	// Output: Hello end <nil>
}
