package openai_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

// What servers send differs from what OpenAI documents.
func TestReply_of_real_servers(t *testing.T) {
	t.Parallel()
	const done = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	thought := func(text string) llm.Part { return llm.Part{Kind: llm.PartReasoning, Text: text} }
	for name, c := range map[string]struct {
		chunks []string
		parts  []llm.Part
		usage  llm.Usage
		stop   llm.StopReason
	}{
		"ollama_whole_calls_under_one_index": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}`,
				`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_2","index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]},"finish_reason":null}]}`,
				`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}`, "[DONE]",
			},
			parts: []llm.Part{call("call_1", "f", `{"a":1}`), call("call_2", "f", `{"a":2}`)}, stop: llm.StopToolCalls,
		},
		"id_and_name_repeated_with_every_fragment": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","index":0,"function":{"name":"f","arguments":"{\"a\""}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","index":0,"function":{"name":"f","arguments":":1}"}}]}}]}`,
				done, "[DONE]",
			},
			parts: []llm.Part{call("c", "f", `{"a":1}`)}, stop: llm.StopToolCalls,
		},
		"arguments_before_the_name": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","index":3,"function":{"arguments":"{\"a\""}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":3,"function":{"name":"f","arguments":":1"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":3,"function":{"arguments":"}"}}]}}]}`, done, "[DONE]",
			},
			parts: []llm.Part{call("c", "f", `{"a":1}`)}, stop: llm.StopToolCalls,
		},
		"no_id_at_all": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}},{"index":1,"function":{"name":"g"}}]}}]}`,
				done, "[DONE]",
			},
			parts: []llm.Part{call("", "f", `{}`), call("", "g", `{}`)}, stop: llm.StopToolCalls,
		},
		"broken_arguments": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","index":0,"function":{"name":"f","arguments":"{\"a\": "}}]}}]}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, "[DONE]",
			},
			parts: []llm.Part{call("c", "f", `"{\"a\":"`)}, stop: llm.StopLength,
		},
		"reasoning_of_vllm_and_ollama": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"reasoning":"hm, "}}]}`, `{"choices":[{"index":0,"delta":{"reasoning":"so","reasoning_content":null}}]}`,
				`{"choices":[{"index":0,"delta":{"content":"yes","reasoning":null}}]}`, done, "[DONE]",
			},
			parts: []llm.Part{thought("hm, so"), llm.Text("yes")}, stop: llm.StopEnd,
		},
		"both_reasoning_keys_are_one": {
			chunks: []string{`{"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_content":"hm","reasoning_details":[{}]}}]}`, done, "[DONE]"},
			parts:  []llm.Part{thought("hm")}, stop: llm.StopEnd,
		},
		"refusal": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"refusal":"I can"}}]}`, `{"choices":[{"index":0,"delta":{"refusal":"not."}}]}`, done, "[DONE]",
			},
			parts: []llm.Part{llm.Text("I cannot.")}, stop: llm.StopRefused,
		},
		"usage_with_every_chunk": {
			chunks: []string{
				`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, "[DONE]",
			},
			parts: []llm.Part{llm.Text("x")}, usage: llm.Usage{Input: 5, Output: 2}, stop: llm.StopEnd,
		},
		"no_usage_and_no_done": {
			chunks: []string{`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}`, done},
			parts:  []llm.Part{llm.Text("x")}, stop: llm.StopEnd,
		},
		"tool_calls_said_of_none": {
			chunks: []string{`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"tool_calls"}]}`, "[DONE]"},
			parts:  []llm.Part{llm.Text("x")}, stop: llm.StopEnd,
		},
		"nothing_said": {chunks: []string{done, "[DONE]"}, stop: llm.StopEnd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := mustAsk(t, open(t, sse(c.chunks...)))
			require.Equal(t, llm.Reply{
				Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts}, Usage: c.usage, Stop: c.stop,
			}, reply)
		})
	}
}

func TestReply_whole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		parts []llm.Part
		stop  llm.StopReason
	}{
		"refusal": {
			`{"choices":[{"message":{"content":null,"refusal":"I cannot."},"finish_reason":"stop"}]}`,
			[]llm.Part{llm.Text("I cannot.")},
			llm.StopRefused,
		},
		"calls_and_stop": {
			`{"choices":[{"message":{"content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"stop"}]}`,
			[]llm.Part{call("c", "f", `{"a":1}`)},
			llm.StopToolCalls,
		},
		"reasoning": {
			`{"id":"chatcmpl-7","model":"gpt-5-2026","choices":[{"message":{"content":"yes","reasoning":"hm"},"finish_reason":"stop"}]}`,
			[]llm.Part{{Kind: llm.PartReasoning, Text: "hm"}, llm.Text("yes")},
			llm.StopEnd,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := mustAsk(t, open(t, body(200, c.body), "OPENAI_STREAM", "false"))
			want := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts}, Stop: c.stop}
			if name == "reasoning" {
				want.ResponseID, want.Model = "chatcmpl-7", "gpt-5-2026"
			}
			require.Equal(t, want, reply)
		})
	}
}

func TestReply_that_is_not_complete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		stream  string
	}{
		"no_finish_reason":      {sse(`{"choices":[{"index":0,"delta":{"content":"half"}}]}`), ""},
		"done_too_early":        {sse(`{"choices":[{"index":0,"delta":{"content":"half"}}]}`, "[DONE]"), ""},
		"empty_stream":          {sse(), ""},
		"garbage_in_the_stream": {sse(`{"choices":[{"index":0,"delta":{"content":"half"}}]}`, `{"choi`), ""},
		"call_without_a_name": {sse(
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","index":0,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), ""},
		"garbage_for_a_stream": {body(200, `{malformed`), ""},
		"garbage_in_one_piece": {body(200, `{malformed`), "false"},
		"no_choice":            {body(200, `{"choices":[]}`), "false"},
		"nameless_call_in_one_piece": {body(200,
			`{"choices":[{"message":{"tool_calls":[{"id":"c","type":"function","function":{"arguments":"{}"}}]}}]}`), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, open(t, c.handler, "OPENAI_STREAM", c.stream))
			require.Equal(t, llm.ClassOverloaded, failure.Class)
			require.ErrorIs(t, failure, llm.ErrBrokenStream)
		})
	}
}

func TestReply_of_a_server_that_is_something_else(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>welcome</html>"))
	}
	for _, stream := range []string{"true", "false"} {
		failure := failureOf(t, open(t, http.HandlerFunc(page), "OPENAI_STREAM", stream))
		require.Equal(t, llm.ClassInvalid, failure.Class)
		require.Contains(t, failure.Message, "is OPENAI_BASE_URL right?")
	}
	failure := failureOf(t, open(t, body(200, `{"choices":[]}`)))
	require.Equal(t, llm.ClassInvalid, failure.Class)
	require.Contains(t, failure.Message, "set OPENAI_STREAM=false")
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		class  llm.ErrorClass
		says   string
	}{
		"rate":            {429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, llm.ClassRateLimited, "Rate limit reached"},
		"rate_bare":       {429, ``, llm.ClassRateLimited, "Too Many Requests"},
		"quota":           {429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, llm.ClassInvalid, "check plan and billing: You exceeded"},
		"overflow":        {400, `{"error":{"message":"too much","code":"context_length_exceeded"}}`, llm.ClassContextOverflow, "too much"},
		"overflow_vllm":   {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`, llm.ClassContextOverflow, "4096"},
		"overflow_llama":  {400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, llm.ClassContextOverflow, "context size"},
		"overflow_of_old": {500, `{"error":{"code":500,"message":"Context size exceeded","type":"server_error"}}`, llm.ClassContextOverflow, "exceeded"},
		"payload":         {413, ``, llm.ClassContextOverflow, "Request Entity Too Large"},
		"refused":         {400, `{"error":{"message":"no","code":"content_policy_violation"}}`, llm.ClassRefused, "no"},
		"refused_azure":   {400, `{"error":{"message":"no","code":"content_filter"}}`, llm.ClassRefused, "no"},
		"bad_request":     {400, `{"error":{"message":"bad tool","type":"invalid_request_error","code":null}}`, llm.ClassInvalid, "bad tool"},
		"unprocessable":   {422, `{"detail":[{"msg":"field required"}]}`, llm.ClassInvalid, "field required"},
		"key":             {401, `{"error":{"message":"Incorrect API key provided: ` + secret + `","code":"invalid_api_key"}}`, llm.ClassAuth, "Incorrect API key provided: [key]"},
		"forbidden":       {403, `{"error":{"message":"not in your country"}}`, llm.ClassAuth, "country"},
		"no_model":        {404, `{"error":"model 'x' not found"}`, llm.ClassInvalid, "model 'x' not found"},
		"slow":            {408, ``, llm.ClassTimeout, "Request Timeout"},
		"conflict":        {409, ``, llm.ClassOverloaded, "Conflict"},
		"broken":          {500, `{"error":{"message":"oops","type":"server_error"}}`, llm.ClassOverloaded, "oops"},
		"gateway_page":    {502, "<html><h1>502</h1></html>", llm.ClassOverloaded, "Bad Gateway"},
		"unavailable":     {503, `loading model`, llm.ClassOverloaded, "loading model"},
		"gateway_timeout": {504, ``, llm.ClassTimeout, "Gateway Timeout"},
		"overloaded":      {529, `{"error":null}`, llm.ClassOverloaded, ""},
		"odd_error":       {500, `{"error":[1,2]}`, llm.ClassOverloaded, "[1,2]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []string{"true", "false"} {
				failure := failureOf(t, open(t, body(c.status, c.body), "OPENAI_STREAM", stream))
				require.Equal(t, c.class, failure.Class)
				require.Equal(t, c.status, failure.Status)
				require.Contains(t, failure.Message, c.says)
			}
		})
	}
}

func TestFailure_in_the_stream(t *testing.T) {
	t.Parallel()
	const begin = `{"choices":[{"index":0,"delta":{"content":"half"}}]}`
	for said, class := range map[string]llm.ErrorClass{
		`{"error":{"message":"m","code":"rate_limit_exceeded"}}`:             llm.ClassRateLimited,
		`{"error":{"message":"m","code":429}}`:                               llm.ClassRateLimited,
		`{"error":{"message":"m","code":401}}`:                               llm.ClassAuth,
		`{"error":{"message":"m","type":"server_error"}}`:                    llm.ClassOverloaded,
		`{"error":"m: the runner has crashed"}`:                              llm.ClassOverloaded,
		`{"error":{"message":"m","type":"invalid_request_error"}}`:           llm.ClassInvalid,
		`{"error":{"message":"m","type":"insufficient_quota"}}`:              llm.ClassInvalid,
		`{"error":{"message":"m: maximum context length is 5","code":null}}`: llm.ClassContextOverflow,
	} {
		failure := failureOf(t, open(t, sse(begin, said)))
		require.Equal(t, class, failure.Class, said)
		require.Contains(t, failure.Message, "m")
	}
	failure := failureOf(t, open(t, body(200, `{"error":{"message":"no credits","code":402}}`)))
	require.Equal(t, llm.ClassInvalid, failure.Class)
	require.Contains(t, failure.Message, "no credits")
}

func TestFailure_retry_after(t *testing.T) {
	t.Parallel()
	const date = "Sat, 21 Nov 2026 03:47:00 GMT"
	for name, c := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds":          {[]string{"Retry-After", "20"}, 20 * time.Second},
		"fraction":         {[]string{"Retry-After", "1.5"}, 1500 * time.Millisecond},
		"milliseconds":     {[]string{"Retry-After-Ms", "250", "Retry-After", "1"}, 250 * time.Millisecond},
		"date":             {[]string{"Date", date, "Retry-After", "Sat, 21 Nov 2026 03:48:30 GMT"}, 90 * time.Second},
		"past_date":        {[]string{"Date", date, "Retry-After", "Sat, 21 Nov 2026 03:40:00 GMT"}, 0},
		"odd_clock":        {[]string{"Date", "noon", "Retry-After", "Sat, 21 Nov 2026 03:48:30 GMT"}, 0},
		"negative":         {[]string{"Retry-After", "-5"}, 0},
		"not_a_number":     {[]string{"Retry-After", "NaN"}, 0},
		"beyond_all_sense": {[]string{"Retry-After", "1e300"}, 30 * 24 * time.Hour},
		"words":            {[]string{"Retry-After", "soon"}, 0},
		"none":             {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, open(t, body(429, `{}`, c.headers...)))
			require.Equal(t, llm.ClassRateLimited, failure.Class)
			require.Equal(t, c.want, failure.RetryAfter)
		})
	}
}

func TestFailure_server_is_not_there(t *testing.T) {
	t.Parallel()
	m := open(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	failure := failureOf(t, m)
	require.Equal(t, llm.ClassOverloaded, failure.Class)
	require.Contains(t, failure.Message, "the server cannot be reached")
	require.NotContains(t, failure.Error(), "overloaded", "nobody answered")
	require.Error(t, failure.Cause)
}

func TestFailure_long_words_are_cut(t *testing.T) {
	t.Parallel()
	long := make([]byte, 1<<20)
	for i := range long {
		long[i] = 'x'
	}
	failure := failureOf(t, open(t, body(500, string(long))))
	require.Less(t, len(failure.Message), 3<<10)
}
