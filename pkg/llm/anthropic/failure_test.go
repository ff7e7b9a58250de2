package anthropic_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

// said is an error as the API writes it.
func said(kind, message string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_011"}`
}

func TestFailure(t *testing.T) {
	t.Parallel()
	const spent = `{"type":"error","error":{"type":"rate_limit_error","message":"Monthly limit","details":{"error_code":"enforced_spend_limit_reached"}}}`
	for name, c := range map[string]struct {
		status int
		body   string
		class  llm.ErrorClass
		says   string
	}{
		"invalid":              {400, said("invalid_request_error", "messages.0: bad"), llm.ClassInvalid, "messages.0: bad"},
		"too_long":             {400, said("invalid_request_error", "prompt is too long: 209000 tokens > 200000 maximum"), llm.ClassContextOverflow, "209000"},
		"too_long_with_output": {400, said("invalid_request_error", "input length and `max_tokens` exceed context limit: 195000 + 32000 > 200000"), llm.ClassContextOverflow, "195000"},
		"too_long_llama":       {400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, llm.ClassContextOverflow, "context size"},
		"no_credit":            {400, said("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), llm.ClassInvalid, "waiting does not help; check plan and billing: Your credit"},
		"limit_of_spending":    {400, said("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."), llm.ClassInvalid, "waiting does not help"},
		"limit_of_workspace":   {400, said("invalid_request_error", "You have reached your specified workspace API usage limits."), llm.ClassInvalid, "waiting does not help"},
		"limit_of_tier":        {429, spent, llm.ClassInvalid, "waiting does not help; check plan and billing: Monthly limit"},
		"filtered":             {400, said("invalid_request_error", "Output blocked by content filtering policy"), llm.ClassRefused, "content filtering"},
		"key":                  {401, said("authentication_error", "invalid x-api-key: "+secret), llm.ClassAuth, "check ANTHROPIC_API_KEY: invalid x-api-key: [key]"},
		"key_bare":             {401, ``, llm.ClassAuth, "check ANTHROPIC_API_KEY: Unauthorized"},
		"billing":              {402, said("billing_error", "no payment method"), llm.ClassInvalid, "check plan and billing: no payment"},
		"permission":           {403, said("permission_error", "not this model"), llm.ClassAuth, "the key may not do this: not this model"},
		"country":              {403, `{"error":{"type":"forbidden","message":"Request not allowed"}}`, llm.ClassAuth, "Request not allowed"},
		"no_model":             {404, said("not_found_error", "model: claude-none"), llm.ClassInvalid, "there is no such model, or the key may not use it: model: claude-none"},
		"no_page":              {404, `404 page not found`, llm.ClassInvalid, "404 page not found"},
		"slow":                 {408, ``, llm.ClassTimeout, "Request Timeout"},
		"conflict":             {409, said("conflict_error", "again"), llm.ClassOverloaded, "again"},
		"payload":              {413, said("request_too_large", "Request exceeds the maximum size"), llm.ClassContextOverflow, "maximum size"},
		"payload_of_a_proxy":   {413, `<html>413</html>`, llm.ClassContextOverflow, "Request Entity Too Large"},
		"rate":                 {429, said("rate_limit_error", "This request would exceed your organization's rate limit"), llm.ClassRateLimited, "rate limit"},
		"rate_bare":            {429, ``, llm.ClassRateLimited, "Too Many Requests"},
		"broken":               {500, said("api_error", "Internal server error"), llm.ClassOverloaded, "Internal server error"},
		"gateway_page":         {502, "<html><h1>502</h1></html>", llm.ClassOverloaded, "Bad Gateway"},
		"gateway_timeout":      {504, said("timeout_error", "Request timed out"), llm.ClassTimeout, "timed out"},
		"overloaded":           {529, said("overloaded_error", "Overloaded"), llm.ClassOverloaded, "Overloaded"},
		"overloaded_bare":      {529, ``, llm.ClassOverloaded, ""},
		"odd_details":          {429, `{"error":{"message":"m","type":"rate_limit_error","details":[1]}}`, llm.ClassRateLimited, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := failureOf(t, open(t, body(c.status, c.body)))
			require.Equal(t, c.class, failure.Class)
			require.Equal(t, c.status, failure.Status)
			require.Contains(t, failure.Message, c.says)
			require.Zero(t, failure.RetryAfter)
		})
	}
}

func TestFailure_in_the_stream(t *testing.T) {
	t.Parallel()
	for text, class := range map[string]llm.ErrorClass{
		said("overloaded_error", "m"):                          llm.ClassOverloaded,
		said("rate_limit_error", "m"):                          llm.ClassRateLimited,
		said("api_error", "m"):                                 llm.ClassOverloaded,
		said("timeout_error", "m"):                             llm.ClassTimeout,
		said("invalid_request_error", "m"):                     llm.ClassInvalid,
		said("invalid_request_error", "m: prompt is too long"): llm.ClassContextOverflow,
		said("authentication_error", "m"):                      llm.ClassAuth,
		said("billing_error", "m"):                             llm.ClassInvalid,
		`{"error":{"message":"m","code":429}}`:                 llm.ClassRateLimited,
		`m: the runner has crashed`:                            llm.ClassOverloaded,
		`["m"]`:                                                llm.ClassOverloaded,
	} {
		failure := failureOf(t, open(t, streams(half+"event: error\ndata: "+text+"\n\n")))
		require.Equal(t, class, failure.Class, text)
		require.Contains(t, failure.Message, "m")
		require.Zero(t, failure.Status)
	}
	failure := failureOf(t, open(t, body(200, said("overloaded_error", "Overloaded"))))
	require.Equal(t, llm.ClassOverloaded, failure.Class)
	require.Equal(t, "Overloaded", failure.Message)
}

func TestFailure_retry_after(t *testing.T) {
	t.Parallel()
	const date = "Sat, 21 Nov 2026 03:47:00 GMT"
	for _, c := range []struct {
		headers []string
		want    time.Duration
	}{
		{[]string{"Retry-After", "20"}, 20 * time.Second},
		{[]string{"Retry-After-Ms", "250", "Retry-After", "1"}, 250 * time.Millisecond},
		{[]string{"Date", date, "Retry-After", "Sat, 21 Nov 2026 03:48:30 GMT"}, 90 * time.Second},
		{[]string{"Retry-After", "-5"}, 0},
		{[]string{"Retry-After", "1e300"}, 30 * 24 * time.Hour},
		{nil, 0},
	} {
		failure := failureOf(t, open(t, body(429, said("rate_limit_error", "m"), c.headers...)))
		require.Equal(t, llm.ClassRateLimited, failure.Class)
		require.True(t, failure.Retryable())
		require.Equal(t, c.want, failure.RetryAfter)
	}
}

func TestFailure_server_is_not_there(t *testing.T) {
	t.Parallel()
	failure := failureOf(t, open(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })))
	require.Equal(t, llm.ClassOverloaded, failure.Class)
	require.Contains(t, failure.Message, "the server cannot be reached")
	require.NotContains(t, failure.Error(), "overloaded", "nobody answered")
	require.Error(t, failure.Cause)
}

func TestFailure_long_words_are_cut(t *testing.T) {
	t.Parallel()
	failure := failureOf(t, open(t, body(500, strings.Repeat("x", 1<<20))))
	require.Less(t, len(failure.Message), 3<<10)
}

func TestFailure_of_a_server_that_is_something_else(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>welcome</html>"))
	}
	for _, handler := range []http.HandlerFunc{page, body(200, `{"id":"msg_1","type":"message","content":[]}`)} {
		failure := failureOf(t, open(t, handler))
		require.Equal(t, llm.ClassInvalid, failure.Class)
		require.Contains(t, failure.Message, "is ANTHROPIC_BASE_URL right?")
	}
}
