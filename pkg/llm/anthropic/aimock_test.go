package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
)

// aimock is the third-party server, at an address.
type aimock string

func TestAimock(t *testing.T) {
	t.Parallel()
	a := aimock(llmtest.Aimock(t, "../openai/testdata/aimock", "testdata/aimock/fixtures.json"))
	t.Run("text_thinking_and_usage", a.text)
	t.Run("parallel_calls_and_the_turn_after", a.calls)
	t.Run("stop_reasons", a.stops)
	t.Run("rate_limit_with_retry_after", a.rateLimit)
	t.Run("failures", a.failures)
	t.Run("broken_off", a.brokenOff)
}

func (a aimock) ask(t *testing.T, messages ...llm.Message) (llm.Reply, []llm.Event, error) {
	t.Helper()
	var events []llm.Event
	reply, err := llm.Collect(openAt(t, string(a), "ANTHROPIC_THINKING", "1024").Stream(t.Context(), llm.Request{
		System: "You refund orders.", Messages: messages,
		Tools: []llm.ToolSpec{{
			Name: "refund", Description: "Refund an order.",
			Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"number"}},"required":["order"]}`),
		}},
	}), func(e llm.Event) { events = append(events, e) })
	return reply, events, err
}

func (a aimock) text(t *testing.T) {
	reply, events, err := a.ask(t, llm.User("greet me"))
	require.NoError(t, err)
	require.NotEmpty(t, reply.ResponseID)
	require.NotEmpty(t, reply.Model)
	require.Equal(t, llm.Usage{Input: 120, Output: 45}, reply.Usage)
	require.Equal(t, llm.StopEnd, reply.Stop)
	require.Len(t, reply.Message.Parts, 2)
	require.Equal(t, "The user wants to be greeted.", reply.Message.Parts[0].Text)
	require.NotEmpty(t, reply.Message.Parts[0].Opaque)
	require.Equal(t, llm.Text("Grüße aus dem Testserver, wie geht es Ihnen heute?"), reply.Message.Parts[1])
	deltas := 0
	for _, e := range events {
		if e.Kind == llm.EventTextDelta {
			deltas++
		}
	}
	require.Greater(t, deltas, 1, "it was streamed")
}

func (a aimock) calls(t *testing.T) {
	history := []llm.Message{llm.User("refund both")}
	reply, _, err := a.ask(t, history...)
	require.NoError(t, err)
	require.Equal(t, llm.StopToolCalls, reply.Stop)
	require.Equal(t, []llm.Part{
		llm.Text("I refund both."),
		call("toolu_refund_1", "refund", `{"order":"A-1","amount":120.5}`),
		call("toolu_refund_2", "refund", `{"order":"A-2","amount":7}`),
	}, reply.Message.Parts[1:])

	said := committed(reply)
	results := resultsOf(said)
	results.Parts[1].ToolResult.Status = llm.ResultDenied
	results.Parts[1].ToolResult.Output = json.RawMessage(`"Tool call was not approved by the user"`)
	reply, _, err = a.ask(t, append(history, said, results)...)
	require.NoError(t, err, "strict, the server checks the thinking of the turn before")
	require.Equal(t, "One was refunded, one was denied.", reply.Message.Text())
}

func (a aimock) stops(t *testing.T) {
	for prompt, want := range map[string]llm.StopReason{"stop short": llm.StopLength, "say something bad": llm.StopRefused} {
		reply, _, err := a.ask(t, llm.User(prompt))
		require.NoError(t, err)
		require.Equal(t, want, reply.Stop)
	}
}

func (a aimock) rateLimit(t *testing.T) {
	_, _, err := a.ask(t, llm.User("too fast"))
	var failure *llm.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, &llm.Error{Class: llm.ClassRateLimited, Message: "Slow down.", Status: 429, RetryAfter: 7 * time.Second}, failure)
}

func (a aimock) failures(t *testing.T) {
	for prompt, want := range map[string]llm.ErrorClass{
		"out of money": llm.ClassInvalid, "too long": llm.ClassContextOverflow, "send garbage": llm.ClassOverloaded,
		"overloaded": llm.ClassOverloaded, "hang up": llm.ClassOverloaded, "nobody expects this": llm.ClassOverloaded, // 503 of strict mode
	} {
		_, _, err := a.ask(t, llm.User(prompt))
		var failure *llm.Error
		require.ErrorAs(t, err, &failure, prompt)
		require.Equal(t, want, failure.Class, fmt.Sprint(prompt, failure))
	}
}

func (a aimock) brokenOff(t *testing.T) {
	reply, events, err := a.ask(t, llm.User("break off"))
	require.Zero(t, reply)
	require.NotEmpty(t, events, "it broke off in the middle")
	require.ErrorIs(t, err, llm.ErrBrokenStream)
}
