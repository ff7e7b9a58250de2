package llmtest_test

import (
	"testing"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
	"github.com/adjourn/adjourn/pkg/llm/scripted"
)

// The test of an adapter gives the kit a harness: how each situation of the kit is made
// with what stands behind the adapter.
func Example() {
	testModel := func(t *testing.T) {
		llmtest.Run(t, llmtest.Harness{
			Answer: func(_ *testing.T, reply llm.Reply) llm.Model { return scripted.New(reply) },
			// Fail, Break, Hang and Flood too: see the test of pkg/llm/scripted.
		})
	}
	_ = testModel // in an adapter's package: func TestModel(t *testing.T)
}
