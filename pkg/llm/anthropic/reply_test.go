package anthropic_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/anthropic"
)

// sample reads a stream as Anthropic documents it.
func sample(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "stream_"+name+".sse"))
	require.NoError(t, err)
	return string(raw)
}

func thought(text, opaque string) llm.Part {
	p := llm.Part{Kind: llm.PartReasoning, Text: text}
	if opaque != "" {
		p.Provider, p.Opaque = "anthropic", []byte(opaque)
	}
	return p
}

// samples are the replies that the streams in testdata bring.
func samples() map[string]llm.Reply {
	says := func(id, model string, usage llm.Usage, stop llm.StopReason, parts ...llm.Part) llm.Reply {
		return llm.Reply{
			Message: llm.Message{Role: llm.RoleAssistant, Parts: parts},
			Usage:   usage, Stop: stop, ResponseID: id, Model: model,
		}
	}
	return map[string]llm.Reply{
		"stream_text": says("msg_01A", "claude-sonnet-5-5", llm.Usage{Input: 1832, CacheRead: 1800, CacheWrite: 20, Output: 15}, llm.StopEnd,
			llm.Text("Your order is on its way.")),
		"stream_parallel_calls": says("msg_01B", "claude-sonnet-5-5", llm.Usage{Input: 472, Output: 89}, llm.StopToolCalls,
			llm.Text("I refund both."),
			call("toolu_01T1", "refund", `{"order":"A-1"}`), call("toolu_01T2", "refund", `{"order":"A-2"}`), call("toolu_01T3", "now", `{}`)),
		"stream_thinking": says("msg_01C", "claude-opus-5-5", llm.Usage{Input: 52, CacheRead: 7, CacheWrite: 5, Output: 120, Reasoning: 64}, llm.StopToolCalls,
			thought("The user wants a refund.\nOrder <A-1> it is.", `{"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h+/=="}`),
			thought("", `{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4+/=="}`),
			thought("", `{"signature":"omitted-text-has-a-signature-too"}`),
			call("toolu_01R1", "refund", `{"order":"A-1"}`)),
		"stream_refusal": says("msg_01D", "claude-opus-5-5", llm.Usage{Input: 9, Output: 1}, llm.StopRefused,
			llm.Text("This request was declined by a safety classifier.")),
		"stream_error": {},
	}
}

func TestReply_of_the_samples(t *testing.T) {
	t.Parallel()
	goldentest.Complete(t, "testdata", ".sse", samples())
	for name, want := range samples() {
		m := open(t, streams(sample(t, name[len("stream_"):])))
		if want.Stop == "" {
			failure := failureOf(t, m)
			require.Equal(t, llm.ClassOverloaded, failure.Class)
			require.Equal(t, "Overloaded", failure.Message)
			continue
		}
		require.Equal(t, want, mustAsk(t, m), name)
	}
}

// What compatible servers send differs from what Anthropic documents, and the API grows.
func TestReply(t *testing.T) {
	t.Parallel()
	text := func(i int, s string) []object {
		return []object{block(i, object{"type": "text", "text": ""}), delta(i, object{"type": "text_delta", "text": s}), blockEnd(i)}
	}
	tool := func(i int, id, name string, input any) object {
		return block(i, object{"type": "tool_use", "id": id, "name": name, "input": input})
	}
	arguments := func(i int, s string) object { return delta(i, object{"type": "input_json_delta", "partial_json": s}) }
	for name, c := range map[string]struct {
		events []object
		parts  []llm.Part
		stop   llm.StopReason
	}{
		"text_with_the_beginning": {
			[]object{block(0, object{"type": "text", "text": "Hel"}), delta(0, object{"type": "text_delta", "text": "lo"}), blockEnd(0), because("end_turn")},
			[]llm.Part{llm.Text("Hello")},
			llm.StopEnd,
		},
		"texts_stay_apart": {
			append(append(text(0, "a"), text(1, "b")...), because("stop_sequence")),
			[]llm.Part{llm.Text("a"), llm.Text("b")},
			llm.StopEnd,
		},
		"arguments_with_the_beginning": {
			[]object{tool(0, "a", "f", object{"n": 1}), blockEnd(0), because("tool_use")},
			[]llm.Part{call("a", "f", `{"n":1}`)},
			llm.StopToolCalls,
		},
		"arguments_as_deltas_count": {
			[]object{tool(0, "a", "f", object{"n": 1}), arguments(0, `{"n":2}`), blockEnd(0), because("tool_use")},
			[]llm.Part{call("a", "f", `{"n":2}`)},
			llm.StopToolCalls,
		},
		"interleaved_calls": {
			[]object{tool(0, "a", "f", object{}), tool(1, "b", "g", object{}), arguments(1, `{"n":`), arguments(0, `{"n":1}`), arguments(1, `2}`), blockEnd(0), blockEnd(1), because("tool_use")},
			[]llm.Part{call("a", "f", `{"n":1}`), call("b", "g", `{"n":2}`)},
			llm.StopToolCalls,
		},
		"broken_arguments": {
			[]object{tool(0, "a", "f", object{}), arguments(0, `{"n": `), blockEnd(0), because("max_tokens")},
			[]llm.Part{call("a", "f", `"{\"n\":"`)},
			llm.StopLength,
		},
		"calls_and_end_turn": {
			[]object{tool(0, "a", "f", object{}), blockEnd(0), because("end_turn")},
			[]llm.Part{call("a", "f", `{}`)},
			llm.StopToolCalls,
		},
		"tool_use_said_of_none": {append(text(0, "x"), because("tool_use")), []llm.Part{llm.Text("x")}, llm.StopEnd},
		"thinking_without_a_signature": {
			[]object{block(0, object{"type": "thinking", "thinking": "h"}), delta(0, object{"type": "thinking_delta", "thinking": "m"}), blockEnd(0), because("end_turn")},
			[]llm.Part{thought("hm", "")},
			llm.StopEnd,
		},
		"signature_in_pieces": {
			[]object{block(0, object{"type": "thinking", "thinking": "", "signature": "a"}), delta(0, object{"type": "signature_delta", "signature": "b"}), delta(0, object{"type": "signature_delta", "signature": "c"}), blockEnd(0), because("end_turn")},
			[]llm.Part{thought("", `{"signature":"abc"}`)},
			llm.StopEnd,
		},
		"what_the_api_may_add": {
			append(append([]object{
				{"type": "weather"}, block(0, object{"type": "hologram", "id": "x"}), delta(0, object{"type": "text_delta", "text": "not read"}), delta(0, object{"type": "hologram_delta"}), blockEnd(0),
			}, text(1, "x")...), object{"type": "content_block_delta", "index": 1, "delta": object{}}),
			nil, "",
		},
		"blocks_that_are_not_known": {
			append(append([]object{{"type": "weather"}, block(0, object{"type": "hologram", "id": "x"}), delta(0, object{"type": "text_delta", "text": "not read"}), blockEnd(0)}, text(1, "x")...), because("end_turn")),
			[]llm.Part{llm.Text("x")},
			llm.StopEnd,
		},
		"citations": {
			[]object{block(0, object{"type": "text", "text": "x"}), delta(0, object{"type": "citations_delta", "citation": object{"type": "char_location"}}), blockEnd(0), because("end_turn")},
			[]llm.Part{llm.Text("x")},
			llm.StopEnd,
		},
		"refusal_after_some_text": {append(text(0, "Well"), because("refusal", "stop_details", object{"type": "refusal", "explanation": "no"})), []llm.Part{llm.Text("Well")}, llm.StopRefused},
		"nothing_said":            {[]object{because("end_turn")}, nil, llm.StopEnd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := open(t, streams(events(append(append([]object{begin}, c.events...), end)...)))
			if c.stop == "" {
				require.ErrorIs(t, failureOf(t, m), llm.ErrBrokenStream)
				return
			}
			require.Equal(t, llm.Reply{
				Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts},
				Usage:   llm.Usage{Input: 10, Output: 7}, Stop: c.stop, ResponseID: "msg_1", Model: "claude-test",
			}, mustAsk(t, m))
		})
	}
}

// A reply that did not come to its end is no reply.
func TestReply_that_is_not_complete(t *testing.T) {
	t.Parallel()
	text := block(0, object{"type": "text", "text": "x"})
	for name, stream := range map[string]string{
		"empty":                   "",
		"half":                    half,
		"no_stop":                 events(begin, text, blockEnd(0), because("end_turn")),
		"no_reason":               events(begin, text, blockEnd(0), end),
		"block_without_end":       events(begin, text, because("end_turn"), end),
		"block_begins_twice":      events(begin, text, text, blockEnd(0), because("end_turn"), end),
		"delta_without_beginning": events(begin, delta(0, object{"type": "text_delta", "text": "x"}), because("end_turn"), end),
		"end_without_beginning":   events(begin, blockEnd(3), because("end_turn"), end),
		"delta_of_another_kind":   events(begin, text, delta(0, object{"type": "input_json_delta", "partial_json": "{}"}), blockEnd(0), because("tool_use"), end),
		"call_without_a_name":     events(begin, block(0, object{"type": "tool_use", "id": "a", "input": object{}}), blockEnd(0), because("tool_use"), end),
		"redacted_without_data":   events(begin, block(0, object{"type": "redacted_thinking"}), blockEnd(0), because("end_turn"), end),
		"garbage_in_the_stream":   half + "event: content_block_delta\ndata: {\"type\":\"content_bl\n\n",
		"garbage_of_another_kind": half + "event: content_block_delta\ndata: [1]\n\n",
		"garbage_instead":         "<html>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, open(t, streams(stream)))
			require.Equal(t, llm.ClassOverloaded, failure.Class, failure)
			require.ErrorIs(t, failure, llm.ErrBrokenStream)
		})
	}
	failure := failureOf(t, open(t, body(200, `{malformed`)))
	require.ErrorIs(t, failure, llm.ErrBrokenStream)
}

// Reasons to stop after which what was said is no answer, and the same call again
// would not help.
func TestReply_that_stops_for_another_reason(t *testing.T) {
	t.Parallel()
	for reason, class := range map[string]llm.ErrorClass{
		"model_context_window_exceeded": llm.ClassContextOverflow, "pause_turn": llm.ClassInvalid, "of_the_future": llm.ClassInvalid,
	} {
		failure := failureOf(t, open(t, streams(events(begin, block(0, object{"type": "text", "text": "x"}), blockEnd(0), because(reason), end))))
		require.Equal(t, class, failure.Class, reason)
		require.False(t, failure.Retryable())
	}
}

// FuzzReply: whatever a server streams, there is a reply or an error, and no more than
// one of them.
func FuzzReply(f *testing.F) {
	for _, name := range []string{"text", "parallel_calls", "thinking", "refusal", "error"} {
		raw, err := os.ReadFile(filepath.Join("testdata", "stream_"+name+".sse"))
		require.NoError(f, err)
		f.Add(string(raw))
	}
	f.Add("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"name\":\"f\",\"input\":null}}\n\n")
	m, err := anthropic.Open(f.Context(), "claude-test", environment("ANTHROPIC_API_KEY", secret))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, stream string) {
		reply, err := ask(t, anthropic.Through(m, inProcess(stream)))
		if err != nil {
			require.Zero(t, reply)
			var failure *llm.Error
			require.ErrorAs(t, err, &failure)
			return
		}
		require.NotEmpty(t, reply.Stop)
		for _, p := range reply.Message.Parts {
			require.True(t, p.Text != "" || p.Opaque != nil || p.ToolCall != nil && p.ToolCall.Name != "")
		}
		next := anthropic.Through(m, inProcess(streamed(llm.Reply{Stop: llm.StopEnd})))
		_, err = llm.Collect(next.Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi"), committed(reply), llm.User("more")}}), nil)
		require.NoError(t, err, "what was said can be sent back")
	})
}

// inProcess is a server that answers every request with this text as a stream of events.
type inProcess string

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(string(p))),
	}, nil
}
