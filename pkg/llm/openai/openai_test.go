package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
	"github.com/adjourn/adjourn/pkg/llm/openai"
)

const secret = "sk-test-0123456789abcdef"

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
	env = append(env, "OPENAI_BASE_URL", server.URL+"/v1", "OPENAI_API_KEY", secret)
	m, err := openai.Open(t.Context(), "gpt-test", environment(env...))
	require.NoError(t, err)
	return m
}

// sse answers every request with these lines of data.
func sse(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, chunk := range chunks {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
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

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{"streamed": "", "whole": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			llmtest.Run(t, llmtest.Harness{
				Answer: func(t *testing.T, reply llm.Reply) llm.Model {
					if stream == "" {
						return open(t, sse(chunks(t, reply)...))
					}
					return open(t, body(200, completion(t, reply)), "OPENAI_STREAM", stream)
				},
				Fail: func(t *testing.T, failure llm.Error) (llm.Model, func() int) {
					var calls atomic.Int64
					answer := refusal(t, failure)
					m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						calls.Add(1)
						answer(w, r)
					}), "OPENAI_STREAM", stream)
					return m, func() int { return int(calls.Load()) }
				},
				Break: func(t *testing.T) llm.Model { return open(t, cut(), "OPENAI_STREAM", stream) },
				// A server that cannot stream has said nothing when it hangs.
				Hang: func(t *testing.T) llm.Model { return open(t, hang()) },
				Flood: func(t *testing.T) llm.Model {
					if stream == "" {
						return open(t, endless(new(atomic.Int64), "text/event-stream", "", `data: {"choices":[{"index":0,"delta":{"content":"`+filler+`"}}]}`+"\n\n"))
					}
					return open(t, endless(new(atomic.Int64), "application/json", `{"choices":[{"index":0,"message":{"content":"`, filler), "OPENAI_STREAM", stream)
				},
				Hear: func(t *testing.T) (llm.Model, func() []byte) {
					var heard []byte
					whole, streamed := body(200, completion(t, llm.Reply{})), sse(chunks(t, llm.Reply{Stop: llm.StopEnd})...)
					m := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						heard, _ = io.ReadAll(r.Body)
						if stream == "" {
							streamed(w, r)
							return
						}
						whole(w, r)
					}), "OPENAI_STREAM", stream)
					return m, func() []byte { return heard }
				},
			})
		})
	}
}

var finish = map[llm.StopReason]string{
	llm.StopEnd: "stop", llm.StopToolCalls: "tool_calls", llm.StopLength: "length", llm.StopRefused: "content_filter",
}

type object = map[string]any

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func wireUsage(u llm.Usage) object {
	return object{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Total(),
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}

// completion writes reply as OpenAI does in one piece.
func completion(t *testing.T, reply llm.Reply) string {
	message := object{"role": "assistant", "content": nil}
	var calls []object
	for _, p := range reply.Message.Parts {
		switch p.Kind {
		case llm.PartText:
			message["content"] = p.Text
		case llm.PartReasoning:
			message["reasoning_content"] = p.Text
		case llm.PartToolCall:
			calls = append(calls, object{
				"id": p.ToolCall.ProviderID, "type": "function",
				"function": object{"name": p.ToolCall.Name, "arguments": string(p.ToolCall.Arguments)},
			})
		case llm.PartToolResult, llm.PartImage, llm.PartFile:
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return marshal(t, object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-test",
		"choices": []object{{"index": 0, "message": message, "finish_reason": finish[reply.Stop]}},
		"usage":   wireUsage(reply.Usage),
	})
}

// chunks writes reply as OpenAI streams it, the arguments of parallel calls interleaved.
func chunks(t *testing.T, reply llm.Reply) []string {
	var out []string
	add := func(delta object, reason any, more ...any) {
		chunk := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test",
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}},
		}
		for i := 0; i+1 < len(more); i += 2 {
			chunk[more[i].(string)] = more[i+1]
		}
		out = append(out, marshal(t, chunk))
	}
	add(object{"role": "assistant", "content": ""}, nil)
	var arguments [][]rune
	for _, p := range reply.Message.Parts {
		switch p.Kind {
		case llm.PartText, llm.PartReasoning:
			key := map[llm.PartKind]string{llm.PartText: "content", llm.PartReasoning: "reasoning_content"}[p.Kind]
			for text := []rune(p.Text); len(text) > 0; text = text[min(5, len(text)):] {
				add(object{key: string(text[:min(5, len(text))])}, nil)
			}
		case llm.PartToolCall:
			add(object{"tool_calls": []object{{
				"index": len(arguments), "id": p.ToolCall.ProviderID, "type": "function",
				"function": object{"name": p.ToolCall.Name, "arguments": ""},
			}}}, nil)
			arguments = append(arguments, []rune(string(p.ToolCall.Arguments)))
		case llm.PartToolResult, llm.PartImage, llm.PartFile:
		}
	}
	for more := true; more; {
		more = false
		for i, rest := range arguments {
			n := min(7, len(rest))
			if n > 0 {
				add(object{"tool_calls": []object{{"index": i, "function": object{"arguments": string(rest[:n])}}}}, nil)
				arguments[i], more = rest[n:], true
			}
		}
	}
	add(object{}, finish[reply.Stop])
	add(nil, nil, "choices", []object{}, "usage", wireUsage(reply.Usage))
	return append(out, "[DONE]")
}

// refusal answers like a server that fails in this way.
func refusal(t *testing.T, failure llm.Error) http.HandlerFunc {
	kinds := map[llm.ErrorClass]struct {
		status int
		code   string
	}{
		llm.ClassRateLimited:     {429, "rate_limit_exceeded"},
		llm.ClassOverloaded:      {503, "server_error"},
		llm.ClassTimeout:         {504, ""},
		llm.ClassContextOverflow: {400, "context_length_exceeded"},
		llm.ClassRefused:         {400, "content_policy_violation"},
		llm.ClassInvalid:         {404, "model_not_found"},
		llm.ClassAuth:            {401, "invalid_api_key"},
	}
	kind := kinds[failure.Class]
	var headers []string
	if failure.RetryAfter > 0 {
		headers = []string{"Retry-After", fmt.Sprint(failure.RetryAfter.Seconds())}
	}
	return body(kind.status, marshal(t, object{"error": object{"message": failure.Message, "code": kind.code}}), headers...)
}

// cut answers half, streamed or not as it was asked, and drops the connection.
func cut() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if strings.Contains(string(asked), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"half a"}}]}`+"\n\n")
		} else {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "5000")
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"half a`)
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// hang streams some text and then waits for the reader to go away.
func hang() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"wait"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func TestStream_a_whole_answer_that_never_comes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	m := open(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees the client leave only once the body is read
		<-r.Context().Done()
	}), "OPENAI_STREAM", "false")
	_, err := llm.Collect(m.Stream(ctx, llm.Request{Messages: []llm.Message{llm.User("hi")}}), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var failure *llm.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, llm.ClassTimeout, failure.Class)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model string
		env   []string
		class llm.ErrorClass
		says  string
	}{
		"key":                 {"gpt-5", []string{"OPENAI_API_KEY", secret}, "", ""},
		"ollama":              {"qwen3:8b", []string{"OPENAI_BASE_URL", "http://127.0.0.1:11434/v1"}, "", ""},
		"slash":               {"m", []string{"OPENAI_BASE_URL", "http://localhost:8080/v1/"}, "", ""},
		"longer_path":         {"m", []string{"OPENAI_BASE_URL", "https://example.org/openai/v1"}, "", ""},
		"stream_off":          {"m", []string{"OPENAI_API_KEY", secret, "OPENAI_STREAM", "false"}, "", ""},
		"no_name":             {"", []string{"OPENAI_API_KEY", secret}, llm.ClassInvalid, "the model has no name"},
		"no_key":              {"m", nil, llm.ClassAuth, "OPENAI_API_KEY is not set"},
		"blank_key":           {"m", []string{"OPENAI_API_KEY", " \n"}, llm.ClassAuth, "OPENAI_API_KEY is not set"},
		"not_a_url":           {"m", []string{"OPENAI_BASE_URL", "http://user:" + secret + "@[::1/v1"}, llm.ClassInvalid, "OPENAI_BASE_URL is not a URL"},
		"no_scheme":           {"m", []string{"OPENAI_BASE_URL", "localhost:11434/v1"}, llm.ClassInvalid, "must start with http:// or https://"},
		"other_scheme":        {"m", []string{"OPENAI_BASE_URL", "ftp://example.org/v1"}, llm.ClassInvalid, "must start with http:// or https://"},
		"no_v1":               {"m", []string{"OPENAI_BASE_URL", "http://user:" + secret + "@localhost:11434"}, llm.ClassInvalid, "must end in /v1, for example http://127.0.0.1:11434/v1; the one for localhost:11434 does not"},
		"token_in_the_path":   {"m", []string{"OPENAI_BASE_URL", "https://example.org/" + secret + "/v2"}, llm.ClassInvalid, "must end in /v1, for example http://127.0.0.1:11434/v1; the one for example.org does not"},
		"token_as_user":       {"m", []string{"OPENAI_BASE_URL", "https://" + secret + "@example.org/"}, llm.ClassInvalid, "the one for example.org does not"},
		"query":               {"m", []string{"OPENAI_BASE_URL", "http://localhost/v1?key=" + secret}, llm.ClassInvalid, "must have no ?"},
		"stream_neither":      {"m", []string{"OPENAI_API_KEY", secret, "OPENAI_STREAM", "maybe"}, llm.ClassInvalid, `OPENAI_STREAM must be true or false, not "maybe"`},
		"v1_inside_of_a_word": {"m", []string{"OPENAI_BASE_URL", "http://localhost/apiv1"}, llm.ClassInvalid, "must end in /v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := openai.Open(t.Context(), c.model, environment(c.env...))
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

// The adapter reads env, and never the environment of the process.
func TestOpen_reads_env_only(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, secret)
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: "+secret)
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		sse(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`, "[DONE]")(w, r)
	}))
	defer server.Close()
	m, err := openai.Open(t.Context(), "m", environment("OPENAI_BASE_URL", server.URL+"/v1"))
	require.NoError(t, err)
	require.Equal(t, "x", mustAsk(t, m).Message.Text())
	require.NotContains(t, fmt.Sprint(header), secret)
	require.Empty(t, header.Values("Authorization"), "a server that needs no key gets none")
}

// Errors are kept in journals, so they must not hold any part of the address that may
// be a secret.
func TestErrors_hide_secrets_of_the_address(t *testing.T) {
	t.Parallel()
	quoting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("no such page: %s (route %s)", r.URL.Path, secret), http.StatusNotFound)
	}))
	t.Cleanup(quoting.Close)            // after the subtests, which are parallel
	const nobody = "http://127.0.0.1:1" // a port that was free a moment ago may be somebody's by now
	for name, server := range map[string]string{"quoted": quoting.URL, "unreachable": nobody} {
		for place, prefix := range map[string]string{
			"path": server + "/" + secret, "user": strings.Replace(server, "//", "//"+secret+"@", 1),
			"password": strings.Replace(server, "//", "//ada:"+secret+"@", 1), "escaped": server + "/%20" + secret,
		} {
			t.Run(name+"_"+place, func(t *testing.T) {
				t.Parallel()
				if name == "quoted" && (place == "user" || place == "password") {
					return // a server does not see them
				}
				m, err := openai.Open(t.Context(), "m", environment("OPENAI_BASE_URL", prefix+"/v1", "OPENAI_STREAM", "false"))
				require.NoError(t, err)
				failure := failureOf(t, m)
				require.NotContains(t, failure.Message, secret)
				require.Contains(t, failure.Message, "…")
			})
		}
	}
}
