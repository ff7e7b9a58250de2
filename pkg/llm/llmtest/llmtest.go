// Package llmtest holds the contract of [llm.Model] as tests that every adapter runs.
package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Harness makes models that behave as a test needs them to. What stands behind
// an adapter (a server, a function) is the harness's; the adapter is under test.
type Harness struct {
	// Answer makes a model that gives reply to every request. Replies hold text,
	// reasoning without opaque bytes, calls with ProviderIDs, usage and a stop.
	Answer func(t *testing.T, reply llm.Reply) llm.Model
	// Fail makes a model of which every request fails as failure says (class,
	// message, retry-after); calls tells how many requests reached the other side.
	Fail func(t *testing.T, failure llm.Error) (model llm.Model, calls func() int)
	// Break makes a model whose replies break off after some text.
	Break func(t *testing.T) llm.Model
	// Hang makes a model that says some text and then nothing until ctx is done.
	Hang func(t *testing.T) llm.Model
	// Flood makes a model whose reply says more than [llm.MaxReply], without end where
	// the other side can do so.
	Flood func(t *testing.T) llm.Model
	// Hear makes a model that answers and keeps what the request became on its way to
	// the other side, which sent returns; nil where there is no such form.
	Hear func(t *testing.T) (model llm.Model, sent func() []byte)
}

// patience is how long a test waits for what should happen at once.
const patience = time.Minute

// Run checks each sentence of the contract of [llm.Model].
func Run(t *testing.T, h Harness) {
	t.Helper()
	t.Run("a_complete_reply_ends_with_stop", func(t *testing.T) { t.Parallel(); testStopIsLast(t, h) })
	t.Run("deltas_make_the_whole", func(t *testing.T) { t.Parallel(); testWhole(t, h) })
	t.Run("stop_reasons_are_told", func(t *testing.T) { t.Parallel(); testStops(t, h) })
	t.Run("parallel_calls_keep_their_indexes", func(t *testing.T) { t.Parallel(); testParallelCalls(t, h) })
	t.Run("calls_without_arguments", func(t *testing.T) { t.Parallel(); testEmptyArguments(t, h) })
	t.Run("usage_comes_before_stop", func(t *testing.T) { t.Parallel(); testUsage(t, h) })
	t.Run("an_error_ends_the_stream", func(t *testing.T) { t.Parallel(); testErrors(t, h) })
	t.Run("adapters_do_not_retry", func(t *testing.T) { t.Parallel(); testNoRetry(t, h) })
	t.Run("a_broken_stream_is_overloaded", func(t *testing.T) { t.Parallel(); testBroken(t, h) })
	t.Run("an_endless_reply_is_refused", func(t *testing.T) { t.Parallel(); testFlood(t, h) })
	t.Run("cancellation_stops_the_stream", func(t *testing.T) { t.Parallel(); testCancel(t, h) })
	t.Run("a_deadline_is_a_timeout", func(t *testing.T) { t.Parallel(); testDeadline(t, h) })
	t.Run("a_done_context_asks_nothing", func(t *testing.T) { t.Parallel(); testDoneBefore(t, h) })
	t.Run("a_reader_may_leave_early", func(t *testing.T) { t.Parallel(); testLeaveEarly(t, h) })
	t.Run("concurrent_use", func(t *testing.T) { t.Parallel(); testConcurrent(t, h) })
	t.Run("the_request_is_only_read", func(t *testing.T) { t.Parallel(); testRequestIsRead(t, h) })
	if h.Hear != nil {
		t.Run("equal_requests_are_sent_as_equal_bytes", func(t *testing.T) { t.Parallel(); testSameBytes(t, h) })
		t.Run("reasoning_of_others_is_not_sent", func(t *testing.T) { t.Parallel(); testOthersReasoning(t, h) })
	}
}

// Request returns a request that uses every field: two tools and a conversation
// with reasoning, parallel calls and their results, ended by a user message.
func Request() llm.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	call := func(n int) llm.Part {
		return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
			ID: fmt.Sprintf("c2-%d", n), ProviderID: fmt.Sprintf("call_%d", n), Name: "echo", Arguments: json.RawMessage(`{"text":"hi"}`),
		}}
	}
	result := func(n int, status llm.ResultStatus, output string) llm.Part {
		return llm.Part{Kind: llm.PartToolResult, ToolResult: &llm.ToolResult{
			CallID: fmt.Sprintf("c2-%d", n), ProviderID: fmt.Sprintf("call_%d", n), Name: "echo", Status: status, Output: json.RawMessage(output),
		}}
	}
	return llm.Request{
		System: "You are terse.",
		Messages: []llm.Message{
			llm.User("echo hi twice"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{
				{Kind: llm.PartReasoning, Text: "two calls", Provider: "elsewhere", Opaque: []byte{0, 255}},
				llm.Text("as you wish"), call(0), call(1),
			}},
			{Role: llm.RoleTool, Parts: []llm.Part{
				result(0, llm.ResultSuccess, `{"text":"hi"}`), result(1, llm.ResultError, `"no more"`),
			}},
			llm.Assistant("done"),
			llm.User("and again"),
		},
		Tools: []llm.ToolSpec{
			{Name: "echo", Description: "Says what it is told.", Schema: schema},
			{Name: "now", Description: "Tells the time.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		},
		Choice:          llm.ChoiceAuto,
		MaxOutputTokens: 500,
	}
}

func reply(stop llm.StopReason, parts ...llm.Part) llm.Reply {
	return llm.Reply{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: parts},
		Usage:   llm.Usage{Input: 40, CacheRead: 30, Output: 12, Reasoning: 4},
		Stop:    stop,
	}
}

func call(providerID, name, arguments string) llm.Part {
	return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
		ProviderID: providerID, Name: name, Arguments: json.RawMessage(arguments),
	}}
}

// events reads a whole stream and fails on what comes after its end.
func events(t *testing.T, ctx context.Context, m llm.Model) ([]llm.Event, error) {
	t.Helper()
	var all []llm.Event
	var failure error
	for e, err := range m.Stream(ctx, Request()) {
		require.NoError(t, failure, "nothing comes after an error")
		if err != nil {
			failure = err
			continue
		}
		if n := len(all); n > 0 {
			require.NotEqual(t, llm.EventStop, all[n-1].Kind, "nothing comes after stop")
		}
		all = append(all, e)
	}
	return all, failure
}

func testStopIsLast(t *testing.T, h Harness) {
	all, err := events(t, t.Context(), h.Answer(t, reply(llm.StopEnd, llm.Text("Hello there, how are you?"))))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	require.Equal(t, llm.EventStop, all[len(all)-1].Kind)
}

// plain is a reply without its response id and model, which differ between providers.
func plain(reply llm.Reply) llm.Reply {
	reply.ResponseID, reply.Model = "", ""
	return reply
}

func testWhole(t *testing.T, h Harness) {
	want := reply(
		llm.StopToolCalls,
		llm.Part{Kind: llm.PartReasoning, Text: "The user wants <both>.\n"},
		llm.Text("Grüße, \"世界\" \u2028 & co.\n\n  indented"),
		call("call_a", "echo", `{"text":"a \"quoted\" ü"}`),
	)
	got, err := llm.Collect(h.Answer(t, want).Stream(t.Context(), Request()), nil)
	require.NoError(t, err)
	require.Equal(t, want, plain(got))
}

func testStops(t *testing.T, h Harness) {
	for _, stop := range []llm.StopReason{llm.StopEnd, llm.StopLength, llm.StopRefused} {
		got, err := llm.Collect(h.Answer(t, reply(stop, llm.Text("x"))).Stream(t.Context(), Request()), nil)
		require.NoError(t, err, stop)
		require.Equal(t, stop, got.Stop)
	}
}

func testParallelCalls(t *testing.T, h Harness) {
	want := reply(
		llm.StopToolCalls, llm.Text("three at once"),
		call("call_a", "echo", `{"text":"first, and long enough for several deltas"}`),
		call("call_b", "echo", `{"text":"second, and long enough for several deltas"}`),
		call("call_c", "now", `{}`),
	)
	m := h.Answer(t, want)
	all, err := events(t, t.Context(), m)
	require.NoError(t, err)
	names, arguments := map[int]string{}, map[int]string{}
	for _, e := range all {
		switch e.Kind {
		case llm.EventToolStart:
			require.NotContains(t, names, e.Index, "two calls have two indexes")
			require.Empty(t, e.ToolCall.ID, "our id is given when the reply is committed")
			require.NotEmpty(t, e.ToolCall.ProviderID)
			names[e.Index] = e.ToolCall.Name
			arguments[e.Index] += string(e.ToolCall.Arguments)
		case llm.EventToolArgDelta:
			require.Contains(t, names, e.Index, "a call is started before its arguments come")
			arguments[e.Index] += e.Text
		case llm.EventTextDelta, llm.EventReasoningDelta, llm.EventOpaque, llm.EventUsage, llm.EventStop:
		}
	}
	require.Len(t, names, 3)
	for i, args := range arguments {
		require.JSONEq(t, args, string(llm.Arguments([]byte(args))), "call %d", i)
	}

	got, err := llm.Collect(m.Stream(t.Context(), Request()), nil)
	require.NoError(t, err)
	require.Equal(t, want, plain(got))
}

func testEmptyArguments(t *testing.T, h Harness) {
	got, err := llm.Collect(h.Answer(t, reply(llm.StopToolCalls, call("call_a", "now", ``))).Stream(t.Context(), Request()), nil)
	require.NoError(t, err)
	require.Equal(t, reply(llm.StopToolCalls, call("call_a", "now", `{}`)), plain(got))
}

func testUsage(t *testing.T, h Harness) {
	want := reply(llm.StopEnd, llm.Text("x"))
	all, err := events(t, t.Context(), h.Answer(t, want))
	require.NoError(t, err)
	var got llm.Usage
	for _, e := range all {
		if e.Kind == llm.EventUsage {
			got = e.Usage
		}
	}
	require.Equal(t, want.Usage, got)
}

func testErrors(t *testing.T, h Harness) {
	for _, class := range []llm.ErrorClass{
		llm.ClassRateLimited, llm.ClassOverloaded, llm.ClassTimeout,
		llm.ClassContextOverflow, llm.ClassRefused, llm.ClassInvalid, llm.ClassAuth,
	} {
		want := llm.Error{Class: class, Message: "because of the test"}
		if class == llm.ClassRateLimited {
			want.RetryAfter = 7 * time.Second
		}
		m, _ := h.Fail(t, want)
		_, err := events(t, t.Context(), m)
		var got *llm.Error
		require.ErrorAs(t, err, &got, class)
		require.Equal(t, class, got.Class)
		require.Equal(t, want.RetryAfter, got.RetryAfter, class)
		require.Contains(t, got.Message, want.Message)
	}
}

func testNoRetry(t *testing.T, h Harness) {
	m, calls := h.Fail(t, llm.Error{Class: llm.ClassOverloaded, Message: "because of the test"})
	_, err := events(t, t.Context(), m)
	require.Error(t, err)
	require.Equal(t, 1, calls())
}

func testBroken(t *testing.T, h Harness) {
	_, err := llm.Collect(h.Break(t).Stream(t.Context(), Request()), nil)
	var got *llm.Error
	require.ErrorAs(t, err, &got)
	require.Equal(t, llm.ClassOverloaded, got.Class)
	require.ErrorIs(t, err, llm.ErrBrokenStream)
}

func testFlood(t *testing.T, h Harness) {
	m := h.Flood(t)
	within(t, func() {
		_, err := llm.Collect(m.Stream(t.Context(), Request()), nil)
		var got *llm.Error
		require.ErrorAs(t, err, &got)
		require.Equal(t, llm.ClassInvalid, got.Class, "the same again would cost the same")
		require.ErrorIs(t, err, llm.ErrTooLarge)
	})
}

func testCancel(t *testing.T, h Harness) {
	reason := errors.New("interrupted by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	started := false
	within(t, func() {
		for e, err := range h.Hang(t).Stream(ctx, Request()) {
			if last = err; err == nil && e.Kind == llm.EventTextDelta {
				started = true
				cancel(reason)
			}
		}
	})
	require.True(t, started, "text comes before the reply is complete")
	require.ErrorIs(t, last, context.Canceled)
	require.ErrorIs(t, last, reason)
	var failure *llm.Error
	require.NotErrorAs(t, last, &failure, "to stop was the caller's wish")
}

func testDeadline(t *testing.T, h Harness) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	m := h.Hang(t)
	within(t, func() {
		_, err := events(t, ctx, m)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var failure *llm.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, llm.ClassTimeout, failure.Class)
	})
}

func testDoneBefore(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, calls := h.Fail(t, llm.Error{Class: llm.ClassOverloaded})
	all, err := events(t, ctx, m)
	require.Empty(t, all)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, calls())
}

func testLeaveEarly(t *testing.T, h Harness) {
	m := h.Hang(t)
	within(t, func() {
		for _, err := range m.Stream(t.Context(), Request()) {
			require.NoError(t, err)
			break
		}
	})
}

func testConcurrent(t *testing.T, h Harness) {
	want := reply(
		llm.StopToolCalls, llm.Text("two at once"),
		call("call_a", "echo", `{"text":"first"}`), call("call_b", "echo", `{"text":"second"}`),
	)
	m := h.Answer(t, want)
	var group sync.WaitGroup
	replies, failures := make([]llm.Reply, 16), make([]error, 16)
	for i := range replies {
		group.Go(func() {
			replies[i], failures[i] = llm.Collect(m.Stream(t.Context(), Request()), nil)
		})
	}
	group.Wait()
	for i := range replies {
		require.NoError(t, failures[i])
		require.Equal(t, want, plain(replies[i]))
	}
}

func testRequestIsRead(t *testing.T, h Harness) {
	req := Request()
	_, err := llm.Collect(h.Answer(t, reply(llm.StopEnd, llm.Text("x"))).Stream(t.Context(), req), nil)
	require.NoError(t, err)
	require.Equal(t, Request(), req)
}

// hear returns what a request becomes.
func hear(t *testing.T, h Harness, req llm.Request) string {
	t.Helper()
	m, sent := h.Hear(t)
	_, err := llm.Collect(m.Stream(t.Context(), req), nil)
	require.NoError(t, err)
	require.NotEmpty(t, sent())
	return string(sent())
}

// A provider finds the beginning of a conversation in its cache by its bytes.
func testSameBytes(t *testing.T, h Harness) {
	first := hear(t, h, Request())
	for range 5 {
		require.Equal(t, first, hear(t, h, Request()))
	}
}

// What a provider wrote for itself goes to that provider only, and a thought without
// its signature to none: a session may change its model in the middle of a call.
func testOthersReasoning(t *testing.T, h Harness) {
	req := Request()
	without := hear(t, h, func() llm.Request {
		req := Request()
		req.Messages[1].Parts = req.Messages[1].Parts[1:]
		return req
	}())
	for _, p := range []llm.Part{
		{Kind: llm.PartReasoning, Text: "a secret thought", Provider: "elsewhere", Opaque: []byte{0, 255}},
		{Kind: llm.PartReasoning, Provider: "elsewhere", Opaque: []byte(`{"signature":"c2VjcmV0"}`)},
		{Kind: llm.PartReasoning, Text: "a secret thought"},
	} {
		req.Messages[1].Parts[0] = p
		require.Equal(t, without, hear(t, h, req))
	}
}

// within fails when f does not come back.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the stream did not stop")
	}
}
