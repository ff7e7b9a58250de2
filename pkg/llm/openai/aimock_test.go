package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
	"github.com/adjourn/adjourn/pkg/llm/openai"
)

func TestAimock(t *testing.T) {
	t.Parallel()
	url := llmtest.Aimock(t, "testdata/aimock", "testdata/aimock/fixtures.json")
	for name, stream := range map[string]string{"streamed": "true", "whole": "false"} {
		t.Run(name, func(t *testing.T) {
			a := aimock{url: url, model: "gpt-" + name, stream: stream}
			t.Run("text_reasoning_and_usage", a.text)
			t.Run("parallel_calls_and_the_turn_after", a.calls)
			t.Run("stop_reasons", a.stops)
			t.Run("rate_limit_with_retry_after", a.rateLimit)
			t.Run("failures", a.failures)
			t.Run("hung_up", a.hungUp)
			t.Run("usage_with_details", a.details)
		})
	}
	t.Run("broken_stream", aimock{url: url, model: "gpt-cut", stream: "true"}.brokenStream)
}

type aimock struct{ url, model, stream string }

func (a aimock) open(t *testing.T, path string) llm.Model {
	t.Helper()
	m, err := openai.Open(t.Context(), a.model, environment(
		"OPENAI_BASE_URL", a.url+path, "OPENAI_API_KEY", secret, "OPENAI_STREAM", a.stream,
	))
	require.NoError(t, err)
	return m
}

func (a aimock) ask(t *testing.T, messages ...llm.Message) (llm.Reply, []llm.Event, error) {
	t.Helper()
	var events []llm.Event
	reply, err := llm.Collect(a.open(t, "/v1").Stream(t.Context(), llm.Request{
		System:   "You refund orders.",
		Messages: messages,
		Tools: []llm.ToolSpec{{
			Name: "refund", Description: "Refund an order.",
			Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"number"}},"required":["order"]}`),
		}},
	}), func(e llm.Event) { events = append(events, e) })
	return reply, events, err
}

// requests returns what this model's requests with that prompt looked like.
func (a aimock) requests(t *testing.T, prompt string) []journalled {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/__aimock/journal", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	var all, ours []journalled
	require.NoError(t, json.NewDecoder(response.Body).Decode(&all))
	for _, entry := range all {
		if entry.Body.Model == a.model && strings.Contains(fmt.Sprint(entry.Body.Messages), prompt) {
			ours = append(ours, entry)
		}
	}
	return ours
}

type journalled struct {
	Body struct {
		Model         string           `json:"model"`
		Messages      []map[string]any `json:"messages"`
		Stream        bool             `json:"stream"`
		StreamOptions map[string]any   `json:"stream_options"`
	} `json:"body"`
}

func (a aimock) text(t *testing.T) {
	reply, events, err := a.ask(t, llm.User("greet me"))
	require.NoError(t, err)
	require.NotEmpty(t, reply.ResponseID)
	require.NotEmpty(t, reply.Model)
	reply.ResponseID, reply.Model = "", ""
	require.Equal(t, llm.Reply{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
			{Kind: llm.PartReasoning, Text: "The user wants to be greeted."},
			llm.Text("Grüße aus dem Testserver, wie geht es Ihnen heute?"),
		}},
		Usage: llm.Usage{Input: 120, Output: 45}, Stop: llm.StopEnd,
	}, reply)
	deltas := 0
	for _, e := range events {
		if e.Kind == llm.EventTextDelta {
			deltas++
		}
	}
	seen := a.requests(t, "greet me")
	require.Len(t, seen, 1)
	require.Equal(t, a.stream == "true", seen[0].Body.Stream)
	if a.stream == "true" {
		require.Greater(t, deltas, 1, "it was streamed")
		require.Equal(t, map[string]any{"include_usage": true}, seen[0].Body.StreamOptions)
	}
}

func (a aimock) calls(t *testing.T) {
	history := []llm.Message{llm.User("refund both")}
	reply, events, err := a.ask(t, history...)
	require.NoError(t, err)
	require.Equal(t, llm.StopToolCalls, reply.Stop)
	require.Equal(t, []llm.Part{
		llm.Text("I refund both."),
		call("call_refund_1", "refund", `{"order":"A-1","amount":120.5}`),
		call("call_refund_2", "refund", `{"order":"A-2","amount":7}`),
	}, reply.Message.Parts)
	require.Positive(t, reply.Usage.Output)
	indexes := map[int]bool{}
	for _, e := range events {
		if e.Kind == llm.EventToolStart {
			indexes[e.Index] = true
		}
	}
	require.Len(t, indexes, 2)

	results := llm.Message{Role: llm.RoleTool}
	for i, c := range reply.Message.ToolCalls() {
		id := fmt.Sprintf("c2-%d", i)
		reply.Message.Parts[i+1].ToolCall.ID = id // as the runtime does when it commits
		r := llm.ToolResult{CallID: id, ProviderID: c.ProviderID, Name: c.Name, Status: llm.ResultSuccess, Output: json.RawMessage(`{"id":"r-1"}`)}
		if i == 1 {
			r.Status, r.Output = llm.ResultDenied, json.RawMessage(`"Tool call was not approved by the user"`)
		}
		results.Parts = append(results.Parts, llm.Part{Kind: llm.PartToolResult, ToolResult: &r})
	}
	reply, _, err = a.ask(t, append(history, reply.Message, results)...)
	require.NoError(t, err)
	require.Equal(t, "One was refunded, one was denied.", reply.Message.Text())

	seen := a.requests(t, "refund both")
	require.Len(t, seen, 2)
	sent := seen[1].Body.Messages
	require.Len(t, sent, 5, "system, user, assistant, and a message for each result")
	require.Equal(t, map[string]any{"role": "tool", "tool_call_id": "call_refund_1", "content": `{"id":"r-1"}`}, sent[3])
	require.Equal(t, map[string]any{"role": "tool", "tool_call_id": "call_refund_2", "content": "Tool call was not approved by the user"}, sent[4])
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
	require.Equal(t, &llm.Error{
		Class: llm.ClassRateLimited, Message: "Slow down.", Status: 429, RetryAfter: 7 * time.Second,
	}, failure)
	require.Len(t, a.requests(t, "too fast"), 1, "adapters do not retry")
}

func (a aimock) failures(t *testing.T) {
	for prompt, want := range map[string]llm.ErrorClass{
		"out of money": llm.ClassInvalid, "too long": llm.ClassContextOverflow,
		"overloaded": llm.ClassOverloaded, "nobody expects this": llm.ClassOverloaded, // 503 of strict mode
	} {
		_, _, err := a.ask(t, llm.User(prompt))
		var failure *llm.Error
		require.ErrorAs(t, err, &failure, prompt)
		require.Equal(t, want, failure.Class, failure)
	}
}

func (a aimock) hungUp(t *testing.T) {
	_, _, err := a.ask(t, llm.User("hang up"))
	var failure *llm.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, llm.ClassOverloaded, failure.Class)
	require.Len(t, a.requests(t, "hang up"), 1)
}

// The server tells the parts of usage only under the path of OpenRouter.
func (a aimock) details(t *testing.T) {
	reply, err := llm.Collect(a.open(t, "/api/v1").Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("greet me")}}), nil)
	require.NoError(t, err)
	require.Equal(t, llm.Usage{Input: 120, CacheRead: 100, Output: 45, Reasoning: 30}, reply.Usage)
	require.Equal(t, []llm.Part{
		{Kind: llm.PartReasoning, Text: "The user wants to be greeted."},
		llm.Text("Grüße aus dem Testserver, wie geht es Ihnen heute?"),
	}, reply.Message.Parts)
}

func (a aimock) brokenStream(t *testing.T) {
	reply, events, err := a.ask(t, llm.User("break off"))
	require.Zero(t, reply)
	require.NotEmpty(t, events, "it broke off in the middle")
	var failure *llm.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, llm.ClassOverloaded, failure.Class)
	require.ErrorIs(t, err, llm.ErrBrokenStream)
}
