package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/anthropic"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
)

const secret = "sk-ant-test-0123456789abcdef"

// environment is a getenv over pairs of name and value.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// open returns a model that asks handler.
func open(t *testing.T, handler http.Handler, env ...string) llm.Model {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return openAt(t, server.URL, env...)
}

func openAt(t *testing.T, url string, env ...string) llm.Model {
	t.Helper()
	m, err := anthropic.Open(t.Context(), "claude-test", environment(append(env, "ANTHROPIC_BASE_URL", url, "ANTHROPIC_API_KEY", secret)...))
	require.NoError(t, err)
	return m
}

// streams answers every request with this text as a stream of events.
func streams(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}
}

// body answers every request with one JSON text.
func body(status int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func ask(t *testing.T, m llm.Model) (llm.Reply, error) {
	t.Helper()
	return llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}}), nil)
}

func mustAsk(t *testing.T, m llm.Model) llm.Reply {
	t.Helper()
	reply, err := ask(t, m)
	require.NoError(t, err)
	return reply
}

func failureOf(t *testing.T, m llm.Model) *llm.Error {
	t.Helper()
	_, err := ask(t, m)
	var failure *llm.Error
	require.ErrorAs(t, err, &failure)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, failure, failure), secret)
	return failure
}

func call(id, name, arguments string) llm.Part {
	return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
		ProviderID: id, Name: name, Arguments: json.RawMessage(arguments),
	}}
}

type object = map[string]any

// events writes events as the API does, which names each twice.
func events(list ...object) string {
	var out strings.Builder
	for _, e := range list {
		raw, err := json.Marshal(e)
		if err != nil {
			panic(err) // a mistake of the test
		}
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", e["type"], raw)
	}
	return out.String()
}

var (
	begin = object{"type": "message_start", "message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []any{}, "stop_reason": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 1},
	}}
	end = object{"type": "message_stop"}
)

func block(index int, content object) object {
	return object{"type": "content_block_start", "index": index, "content_block": content}
}

func delta(index int, d object) object {
	return object{"type": "content_block_delta", "index": index, "delta": d}
}

func blockEnd(index int) object { return object{"type": "content_block_stop", "index": index} }

func because(reason any, more ...any) object {
	d := object{"stop_reason": reason, "stop_sequence": nil}
	for i := 0; i+1 < len(more); i += 2 {
		d[more[i].(string)] = more[i+1]
	}
	return object{"type": "message_delta", "delta": d, "usage": object{"output_tokens": 7}}
}

var reasons = map[llm.StopReason]string{
	llm.StopEnd: "end_turn", llm.StopToolCalls: "tool_use", llm.StopLength: "max_tokens", llm.StopRefused: "refusal",
}

// streamed writes reply as the API streams it.
func streamed(reply llm.Reply) string {
	u := reply.Usage
	list := []object{
		{"type": "message_start", "message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": []any{}, "stop_reason": nil,
			"usage": object{"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite, "output_tokens": 1},
		}},
		{"type": "ping"},
	}
	in := func(i, size int, text, kind, field string) {
		for rest := []rune(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			list = append(list, delta(i, object{"type": kind, field: string(rest[:min(size, len(rest))])}))
		}
	}
	for i, p := range reply.Message.Parts {
		switch p.Kind {
		case llm.PartText:
			list = append(list, block(i, object{"type": "text", "text": ""}))
			in(i, 5, p.Text, "text_delta", "text")
		case llm.PartReasoning:
			list = append(list, block(i, object{"type": "thinking", "thinking": "", "signature": ""}))
			in(i, 5, p.Text, "thinking_delta", "thinking")
		case llm.PartToolCall:
			list = append(list, block(i, object{"type": "tool_use", "id": p.ToolCall.ProviderID, "name": p.ToolCall.Name, "input": object{}}))
			in(i, 7, string(p.ToolCall.Arguments), "input_json_delta", "partial_json")
		case llm.PartToolResult, llm.PartImage, llm.PartFile:
		}
		list = append(list, blockEnd(i))
	}
	stop := because(reasons[reply.Stop])
	stop["usage"] = object{"output_tokens": u.Output, "output_tokens_details": object{"thinking_tokens": u.Reasoning}}
	return events(append(list, stop, end)...)
}

// refusal answers like the API when it fails in this way.
func refusal(t *testing.T, failure llm.Error) http.HandlerFunc {
	kinds := map[llm.ErrorClass]struct {
		status int
		kind   string
		says   string
	}{
		llm.ClassRateLimited:     {429, "rate_limit_error", ""},
		llm.ClassOverloaded:      {529, "overloaded_error", ""},
		llm.ClassTimeout:         {504, "timeout_error", ""},
		llm.ClassContextOverflow: {400, "invalid_request_error", "prompt is too long: 201000 tokens > 200000 maximum; "},
		llm.ClassRefused:         {400, "invalid_request_error", "Output blocked by content filtering policy; "},
		llm.ClassInvalid:         {404, "not_found_error", ""},
		llm.ClassAuth:            {401, "authentication_error", ""},
	}
	kind := kinds[failure.Class]
	var headers []string
	if failure.RetryAfter > 0 {
		headers = []string{"Retry-After", fmt.Sprint(failure.RetryAfter.Seconds())}
	}
	text, err := json.Marshal(object{
		"type": "error", "request_id": "req_1",
		"error": object{"type": kind.kind, "message": kind.says + failure.Message},
	})
	require.NoError(t, err)
	return body(kind.status, string(text), headers...)
}

// half is a reply that is not complete.
var half = events(begin, block(0, object{"type": "text", "text": ""}), delta(0, object{"type": "text_delta", "text": "half a"}))

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, llmtest.Harness{
		Answer: func(t *testing.T, reply llm.Reply) llm.Model { return open(t, streams(streamed(reply))) },
		Fail: func(t *testing.T, failure llm.Error) (llm.Model, func() int) {
			var calls atomic.Int64
			answer := refusal(t, failure)
			m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				answer(w, r)
			}))
			return m, func() int { return int(calls.Load()) }
		},
		Break: func(t *testing.T) llm.Model { return open(t, cut()) },
		Hang:  func(t *testing.T) llm.Model { return open(t, hang()) },
		Flood: func(t *testing.T) llm.Model {
			return open(t, endless(new(atomic.Int64), half, events(delta(0, object{"type": "text_delta", "text": filler}))))
		},
		Hear: func(t *testing.T) (llm.Model, func() []byte) {
			var heard []byte
			m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				heard, _ = io.ReadAll(r.Body)
				streams(streamed(llm.Reply{Stop: llm.StopEnd}))(w, r)
			}))
			return m, func() []byte { return heard }
		},
	})
}

// cut answers half and drops the connection.
func cut() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(half)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// hang streams some text and then waits for the reader to go away.
func hang() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(half)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	key := []string{"ANTHROPIC_API_KEY", secret}
	for name, c := range map[string]struct {
		model string
		env   []string
		class llm.ErrorClass
		says  string
	}{
		"key":               {"claude-sonnet-5-5", key, "", ""},
		"ollama":            {"qwen3:8b", []string{"ANTHROPIC_BASE_URL", "http://127.0.0.1:11434"}, "", ""},
		"slash":             {"m", []string{"ANTHROPIC_BASE_URL", "http://localhost:8080/"}, "", ""},
		"longer_path":       {"m", []string{"ANTHROPIC_BASE_URL", "https://example.org/anthropic"}, "", ""},
		"adaptive":          {"m", append(key, "ANTHROPIC_THINKING", "adaptive"), "", ""},
		"disabled":          {"m", append(key, "ANTHROPIC_THINKING", "disabled"), "", ""},
		"budget":            {"m", append(key, "ANTHROPIC_THINKING", "1024"), "", ""},
		"no_name":           {"", key, llm.ClassInvalid, "the model has no name"},
		"no_key":            {"m", nil, llm.ClassAuth, "ANTHROPIC_API_KEY is not set"},
		"blank_key":         {"m", []string{"ANTHROPIC_API_KEY", " \n"}, llm.ClassAuth, "ANTHROPIC_API_KEY is not set"},
		"not_a_url":         {"m", []string{"ANTHROPIC_BASE_URL", "http://user:" + secret + "@[::1"}, llm.ClassInvalid, "ANTHROPIC_BASE_URL is not a URL"},
		"no_scheme":         {"m", []string{"ANTHROPIC_BASE_URL", "localhost:11434"}, llm.ClassInvalid, "must start with http:// or https://"},
		"other_scheme":      {"m", []string{"ANTHROPIC_BASE_URL", "ftp://example.org"}, llm.ClassInvalid, "must start with http:// or https://"},
		"v1":                {"m", []string{"ANTHROPIC_BASE_URL", "http://user:" + secret + "@localhost/v1/"}, llm.ClassInvalid, "must not end in /v1, which is added"},
		"query":             {"m", []string{"ANTHROPIC_BASE_URL", "http://localhost?key=" + secret}, llm.ClassInvalid, "must have no ?"},
		"thinking_neither":  {"m", append(key, "ANTHROPIC_THINKING", "a lot"), llm.ClassInvalid, `not "a lot"`},
		"thinking_too_few":  {"m", append(key, "ANTHROPIC_THINKING", "1023"), llm.ClassInvalid, "from 1024 on"},
		"thinking_too_many": {"m", append(key, "ANTHROPIC_THINKING", "99999999999"), llm.ClassInvalid, "from 1024 on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := anthropic.Open(t.Context(), c.model, environment(c.env...))
			if c.class == "" {
				require.NoError(t, err)
				require.NotNil(t, m)
				return
			}
			var failure *llm.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, c.class, failure.Class)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), secret)
			require.Nil(t, m)
		})
	}
}

// The adapter reads env, and never the environment of the process, nor files of its user.
func TestOpen_reads_env_only(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_WORKSPACE_ID", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_CONFIG_DIR",
	} {
		t.Setenv(name, secret)
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: "+secret)
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		streams(streamed(llm.Reply{Message: llm.Assistant("x"), Stop: llm.StopEnd}))(w, r)
	}))
	defer server.Close()
	m, err := anthropic.Open(t.Context(), "m", environment("ANTHROPIC_BASE_URL", server.URL))
	require.NoError(t, err)
	require.Equal(t, "x", mustAsk(t, m).Message.Text())
	require.NotContains(t, fmt.Sprint(header), secret)
	require.Empty(t, header.Values("X-Api-Key"), "a server that needs no key gets none")
	require.Equal(t, "2023-06-01", header.Get("Anthropic-Version"))
}
