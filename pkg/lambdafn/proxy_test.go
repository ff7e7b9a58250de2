package lambdafn_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/lambdafn"
)

// request is an event of the gateway as it writes it.
func request(method, path string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "$default", RawPath: path, Headers: map[string]string{"host": "api.example.com"}}
	e.RequestContext.Stage, e.RequestContext.RequestID, e.RequestContext.DomainName = "$default", "gw-1", "api.example.com"
	e.RequestContext.APIID, e.RequestContext.RouteKey = "api-1", routeKey(method, path)
	e.RequestContext.HTTP = events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: method, Path: path, Protocol: "HTTP/1.1", SourceIP: "192.0.2.7"}
	return e
}

// routeKey is that of the route a request comes by; one that fits none would not
// reach a function, and gets one whose function then says so.
func routeKey(method, path string) string {
	mux := http.NewServeMux()
	for _, r := range httpapi.Routes() {
		mux.HandleFunc(r.Method+" "+r.Path, func(http.ResponseWriter, *http.Request) {})
	}
	_, pattern := mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: path}})
	return cmp.Or(pattern, "GET /sessions")
}

func ask(t testing.TB, h lambdafn.Handler, e events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
	t.Helper()
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	return askRaw(t, h, raw)
}

func askRaw(t testing.TB, h lambdafn.Handler, raw []byte) events.APIGatewayV2HTTPResponse {
	t.Helper()
	answer, err := h.Invoke(lambdaContext(t, 30*time.Second), raw)
	require.NoError(t, err, "an HTTP event never fails the function")
	var response events.APIGatewayV2HTTPResponse
	require.NoError(t, json.Unmarshal(answer, &response))
	require.NotZero(t, response.StatusCode)
	return response
}

// serving returns the handler of a function that serves f.
func serving(t testing.TB, f http.HandlerFunc) (lambdafn.Handler, *world) {
	t.Helper()
	w := &world{t: t, clock: new(clock), log: new(logged)}
	w.cfg = lambdafn.Config{Now: w.clock.Now, Log: lambdafn.NewLog(w.log, slog.LevelDebug)}
	h, err := lambdafn.NewHTTP(w.cfg, f)
	require.NoError(t, err)
	return h, w
}

// seen sends an event through and returns the request that the handler got.
func seen(t testing.TB, e events.APIGatewayV2HTTPRequest) *http.Request {
	t.Helper()
	var got *http.Request
	h, _ := serving(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	require.Equal(t, http.StatusOK, ask(t, h, e).StatusCode)
	require.NotNil(t, got)
	return got
}

func problemOf(t testing.TB, r events.APIGatewayV2HTTPResponse) client.Problem {
	t.Helper()
	require.Equal(t, client.MediaProblem, r.Headers["Content-Type"], r.Body)
	var p client.Problem
	require.NoError(t, json.Unmarshal([]byte(r.Body), &p))
	require.Equal(t, r.StatusCode, p.Status)
	return p
}

func TestProxy_a_handler_that_writes_nothing_answers_200(t *testing.T) {
	t.Parallel()
	h, _ := serving(t, func(http.ResponseWriter, *http.Request) {})
	got := ask(t, h, request("GET", "/"))
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.Empty(t, got.Body)
	require.NotContains(t, got.Headers, "Content-Type")
}

func TestProxy_the_first_status_counts(t *testing.T) {
	t.Parallel()
	h, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-A", "before")
		w.WriteHeader(http.StatusProcessing) // informational ones are no answer
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusInternalServerError)
		w.Header().Set("X-A", "after")
		_, _ = io.WriteString(w, "taken")
	})
	got := ask(t, h, request("POST", "/"))
	require.Equal(t, http.StatusAccepted, got.StatusCode)
	require.Equal(t, "taken", got.Body)
	require.Equal(t, "before", got.Headers["X-A"])
}

func TestProxy_headers_are_not_split(t *testing.T) {
	t.Parallel()
	e := request("GET", "/")
	e.Headers = map[string]string{
		"idempotency-key": "a,b, c", "date": "Fri, 20 Nov 2026 10:00:00 GMT", "x-custom": "1,2", "host": "me.example",
		"content-length": "99", "transfer-encoding": "chunked", "accept": "a/b, c/d",
	}
	r := seen(t, e)
	require.Equal(t, "a,b, c", r.Header.Get("Idempotency-Key"))
	require.Equal(t, "Fri, 20 Nov 2026 10:00:00 GMT", r.Header.Get("Date"))
	require.Equal(t, []string{"1,2"}, r.Header.Values("X-Custom"))
	require.Equal(t, "a/b, c/d", r.Header.Get("Accept"))
	require.Equal(t, "me.example", r.Host)
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding"} {
		require.Empty(t, r.Header.Values(name), name)
	}
}

func TestProxy_the_stage_is_no_part_of_the_path(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stage, path, want string }{
		{"$default", "/sessions/s1", "/sessions/s1"},
		{"", "/sessions/s1", "/sessions/s1"},
		{"prod", "/prod/sessions/s1", "/sessions/s1"},
		{"prod", "/prod", "/"},
		{"prod", "/prod/", "/"},
		{"prod", "/production/x", "/production/x"},
		{"prod", "/sessions/prod/x", "/sessions/prod/x"}, // a domain of its own
		{"prod", "/prod/prod/x", "/prod/x"},
		{"$default", "/$default/x", "/$default/x"},
		{"$default", "", "/"},
		{"$default", "x", "/x"},
	} {
		e := request("GET", c.path)
		e.RequestContext.Stage = c.stage
		require.Equal(t, c.want, seen(t, e).URL.Path, "%+v", c)
	}
}

func TestProxy_a_location_has_the_stage_the_caller_knows(t *testing.T) {
	t.Parallel()
	h, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/sessions/s1")
		w.WriteHeader(http.StatusAccepted)
	})
	e := request("POST", "/prod/sessions")
	require.Equal(t, "/sessions/s1", ask(t, h, e).Headers["Location"])
	e.RequestContext.Stage = "prod"
	require.Equal(t, "/prod/sessions/s1", ask(t, h, e).Headers["Location"])
}

func TestProxy_a_path_is_the_text_the_gateway_gives(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/runs/50%off", "/runs/a%2Fb", "/runs/%zz", "/runs/a?b=c", "/runs/a#b", "//sessions", "/a/../b", "/a/./b", "/..", "/a b", "/ä/ö",
		"/\x00\x7f\n", "/a//b/", "/%", "/\\", "//evil.example/x", "/a;b", "/[::1]", "/:80", "/@host", "/a%00b",
	} {
		r := seen(t, request("GET", path))
		require.Equal(t, path, r.URL.Path, "%q", path)
		require.Empty(t, r.URL.RawQuery)
		require.Equal(t, "api.example.com", r.URL.Host)
		require.NotEmpty(t, r.RequestURI)
	}
}

func TestProxy_a_query_is_what_the_client_wrote(t *testing.T) {
	t.Parallel()
	e := request("GET", "/sessions")
	e.RawQueryString = "limit=5&a=1&a=2&x=%20y&plus=a+b"
	e.QueryStringParameters = map[string]string{"a": "1,2"}
	r := seen(t, e)
	require.Equal(t, []string{"1", "2"}, r.URL.Query()["a"])
	require.Equal(t, " y", r.URL.Query().Get("x"))
	require.Equal(t, "a b", r.URL.Query().Get("plus"))

	e.RawQueryString = "a=#b\n \x7fä"
	require.Equal(t, "#b\n \x7fä", seen(t, e).URL.Query().Get("a"))
	e.RawQueryString, e.QueryStringParameters = "", map[string]string{"a": "1&2"}
	require.Equal(t, "1&2", seen(t, e).URL.Query().Get("a"))
	e.RawQueryString = "%zz;&="
	require.Equal(t, "%zz;&=", seen(t, e).URL.RawQuery)
}

func TestProxy_odd_methods_and_hosts(t *testing.T) {
	t.Parallel()
	require.Equal(t, "PATCH", seen(t, request("patch", "/")).Method)
	for _, m := range []string{"GET /x HTTP/1.1\r\nA: b", "G T", "Ä", "7"} {
		require.Equal(t, strings.ToUpper(m), seen(t, request(m, "/")).Method, "no route knows it")
	}
	for _, host := range []string{"", "a b", "a/b", "a%", "[", "user@host", "host:99"} {
		e := request("GET", "/x")
		e.RequestContext.DomainName = host
		require.Equal(t, "/x", seen(t, e).URL.Path, "%q", host)
	}
}

func TestProxy_the_address_has_a_port(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"192.0.2.7", "2001:db8::1", ""} {
		e := request("GET", "/")
		e.RequestContext.HTTP.SourceIP = ip
		host, _, err := net.SplitHostPort(seen(t, e).RemoteAddr)
		require.NoError(t, err)
		require.Equal(t, ip, host)
	}
}

func TestProxy_panics_are_a_500(t *testing.T) {
	t.Parallel()
	for _, value := range []any{"secret", fmt.Errorf("secret"), http.ErrAbortHandler, 7} {
		h, w := serving(t, func(http.ResponseWriter, *http.Request) { panic(value) })
		got := ask(t, h, request("GET", "/"))
		p := problemOf(t, got)
		require.Equal(t, "internal", p.Code)
		require.Equal(t, "gw-1", p.RequestID)
		require.NotContains(t, got.Body, "secret", "what a panic says is for the log")
		w.logs("request failed", `"gatewayRequestId":"gw-1"`, `"stack":`)
		require.Equal(t, http.StatusInternalServerError, ask(t, h, request("GET", "/")).StatusCode, "the process lives")
	}
	h, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "half an ans")
		panic("x")
	})
	require.Equal(t, "internal", problemOf(t, ask(t, h, request("GET", "/"))).Code, "nothing was sent yet")
	h, _ = serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(7) })
	require.Equal(t, "internal", problemOf(t, ask(t, h, request("GET", "/"))).Code)
}

func TestProxy_bodies(t *testing.T) {
	t.Parallel()
	binary := "\xff\x00\xfe"
	h, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write(body)
	})
	for _, c := range []struct {
		body    string
		encoded bool
	}{{"", false}, {"plain ä", false}, {`{"a":1}`, true}, {binary, true}} {
		e := request("POST", "/")
		e.Body, e.IsBase64Encoded = c.body, c.encoded
		if c.encoded {
			e.Body = base64.StdEncoding.EncodeToString([]byte(c.body))
		}
		got := ask(t, h, e)
		require.Equal(t, http.StatusOK, got.StatusCode)
		if c.body == binary {
			require.True(t, got.IsBase64Encoded)
			raw, err := base64.StdEncoding.DecodeString(got.Body)
			require.NoError(t, err)
			require.Equal(t, binary, string(raw))
			continue
		}
		require.Equal(t, c.body, got.Body)
		require.False(t, got.IsBase64Encoded)
	}
	e := request("POST", "/")
	e.Body, e.IsBase64Encoded = "not base64!", true
	require.Equal(t, codes.BodyUnreadable, problemOf(t, ask(t, h, e)).Code)
}

func TestProxy_no_body_where_there_must_be_none(t *testing.T) {
	t.Parallel()
	var wrote error
	h, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		}
		_, wrote = io.WriteString(w, "body")
	})
	for path, want := range map[string]int{"/204": 204, "/304": 304} {
		got := ask(t, h, request("GET", path))
		require.Equal(t, want, got.StatusCode)
		require.Empty(t, got.Body)
		require.ErrorIs(t, wrote, http.ErrBodyNotAllowed)
	}
	got := ask(t, h, request("HEAD", "/"))
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.Empty(t, got.Body)
	require.NoError(t, wrote)
}

func TestProxy_response_headers_and_cookies(t *testing.T) {
	t.Parallel()
	var sent []*http.Cookie
	h, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Cookies()
		w.Header().Add("Vary", "A")
		w.Header().Add("Vary", "B")
		w.Header().Set("Content-Length", "999")
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
		_, _ = io.WriteString(w, "<html>")
	})
	e := request("GET", "/")
	e.Cookies = []string{"x=1", "y=2"}
	got := ask(t, h, e)
	require.Len(t, sent, 2)
	require.Equal(t, []string{"a=1", "b=2"}, got.Cookies)
	require.Equal(t, "A,B", got.Headers["Vary"])
	require.NotContains(t, got.Headers, "Content-Length")
	require.NotContains(t, got.Headers, "Set-Cookie")
	require.Equal(t, "text/html; charset=utf-8", got.Headers["Content-Type"])
}

func TestProxy_does_not_claim_to_stream(t *testing.T) {
	t.Parallel()
	var err error
	h, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) { err = http.NewResponseController(w).Flush() })
	ask(t, h, request("GET", "/"))
	require.ErrorIs(t, err, http.ErrNotSupported)
}

func TestProxy_what_Lambda_would_not_take_is_a_problem(t *testing.T) {
	t.Parallel()
	size := 0
	h, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("\n", size)) })
	for n, want := range map[int]int{1 << 20: 200, 4 << 20: 200, 5 << 20: 500, 7 << 20: 500} { // a line feed is two bytes of JSON, and less in base64
		size = n
		raw, err := json.Marshal(request("GET", "/"))
		require.NoError(t, err)
		answer, err := h.Invoke(t.Context(), raw)
		require.NoError(t, err)
		require.Less(t, len(answer), 6<<20)
		got := askRaw(t, h, raw)
		require.Equal(t, want, got.StatusCode)
		if want == 500 {
			require.Equal(t, "response_too_large", problemOf(t, got).Code)
		}
	}
}

func TestProxy_the_context_is_Lambdas_and_ends_earlier(t *testing.T) {
	t.Parallel()
	type key struct{}
	w := newWorld(t)
	var deadline time.Time
	var value any
	h, err := lambdafn.NewHTTP(w.cfg, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		deadline, _ = r.Context().Deadline()
		value = r.Context().Value(key{})
	}))
	require.NoError(t, err)
	raw, err := json.Marshal(request("GET", "/"))
	require.NoError(t, err)
	_, err = h.Invoke(context.WithValue(lambdaContext(t, 30*time.Second), key{}, "v"), raw)
	require.NoError(t, err)
	require.Equal(t, epoch.Add(27*time.Second), deadline)
	require.Equal(t, "v", value)
}

func TestProxy_other_events(t *testing.T) {
	t.Parallel()
	h, w := serving(t, func(http.ResponseWriter, *http.Request) {})
	for _, raw := range []string{
		``, `7`, `null`, `{}`, `[]`, `{"requestContext":7}`, `{"requestContext":{"http":7}}`, `{"httpMethod":"GET","path":"/"}`,
		`{"requestContext":{"http":{"method":"GET"}}}`, `{"version":"1.0","requestContext":{"http":{"method":"GET"}}}`,
	} {
		_, err := h.Invoke(t.Context(), []byte(raw))
		require.ErrorContains(t, err, "not an HTTP request", raw)
	}
	for _, raw := range []string{
		`{"version":"2.0","requestContext":{"http":{"method":"GET"}},"headers":7}`,
		`{"version":"2.0","requestContext":{"http":{"method":"GET"}},"headers":{"a":7}}`,
		`{"version":"2.0","requestContext":{"http":{"method":"GET"},"authorizer":7}}`,
		`{"version":"2.0","requestContext":{"http":{"method":"GET"}},"rawPath":[]}`,
	} {
		require.Equal(t, http.StatusBadRequest, problemOf(t, askRaw(t, h, []byte(raw))).Status)
	}
	require.Equal(t, http.StatusOK, askRaw(t, h, []byte(`{"version":"2.0","requestContext":{"http":{"method":"GET"},"authorizer":{"jwt":{"claims":{"exp":1,"aud":["a"],"x":null,"o":{}},"scopes":null}}},"headers":null}`)).StatusCode)
	w.logs()
}

func FuzzProxy(f *testing.F) {
	h, _ := serving(f, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		_, _ = io.Copy(w, r.Body)
		if _, _, err := net.SplitHostPort(r.RemoteAddr); err != nil {
			panic(err) // a 500, which the target does not take
		}
	})
	for _, e := range []events.APIGatewayV2HTTPRequest{request("GET", "/a/../%zz?x#y"), request("P O", "")} {
		e.RawQueryString, e.Cookies, e.Body, e.IsBase64Encoded = "a=%&#\x00", []string{"a=b"}, "eA==", true
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"a": "b"}}}
		raw, err := json.Marshal(e)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		answer, err := h.Invoke(t.Context(), raw)
		if err != nil {
			require.ErrorContains(t, err, "not an HTTP request")
			return
		}
		var response events.APIGatewayV2HTTPResponse
		require.NoError(t, json.Unmarshal(answer, &response))
		require.GreaterOrEqual(t, response.StatusCode, 200)
		require.Less(t, response.StatusCode, 500)
	})
}
