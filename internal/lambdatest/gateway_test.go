//go:build linux

package lambdatest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/lambdatest"
)

func TestGateway(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{})
	server := httptest.NewServer(&lambdatest.Gateway{
		Routes: []lambdatest.Route{{http.MethodPost, "/things/{id}/do", f}},
		Authorize: func(r *http.Request) (map[string]string, bool) {
			return map[string]string{"tenant": "t1"}, r.Header.Get("Authorization") == "Bearer good"
		},
	})
	t.Cleanup(server.Close)
	send := func(path, token, kind, body string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		r.Header.Add("X-Many", "1")
		r.Header.Add("X-Many", "2")
		r.Header.Set("Cookie", "c=d; e=f")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response, string(text)
	}
	response, text := send("/things/a%20b/do?x=1&x=2&y=", "good", "application/json", `{"k":1}`)
	require.Equal(t, 201, response.StatusCode)
	require.Equal(t, "yes", response.Header.Get("X-Toy"))
	require.Equal(t, "a=b", response.Header.Get("Set-Cookie"))
	var event events.APIGatewayV2HTTPRequest
	require.NoError(t, json.Unmarshal([]byte(text), &event))
	require.Equal(t, "POST /things/{id}/do", event.RouteKey)
	require.Equal(t, "/things/a b/do", event.RawPath)
	require.Equal(t, "x=1&x=2&y=", event.RawQueryString)
	require.Equal(t, map[string]string{"x": "1,2", "y": ""}, event.QueryStringParameters)
	require.Equal(t, map[string]string{"id": "a b"}, event.PathParameters)
	require.Equal(t, "1,2", event.Headers["x-many"])
	require.Equal(t, []string{"c=d", "e=f"}, event.Cookies)
	require.Equal(t, map[string]string{"tenant": "t1"}, event.RequestContext.Authorizer.JWT.Claims)
	require.Equal(t, "$default", event.RequestContext.Stage)
	require.JSONEq(t, `{"k":1}`, event.Body)
	require.False(t, event.IsBase64Encoded)

	_, text = send("/things/a/do", "good", "application/octet-stream", "\xff")
	require.NoError(t, json.Unmarshal([]byte(text), &event))
	require.True(t, event.IsBase64Encoded)
	require.Equal(t, "/w==", event.Body)

	for path, want := range map[string]int{"/things/a/do": 401, "/things/a": 404, "/things//do": 404} {
		response, text := send(path, "bad", "text/plain", "")
		require.Equal(t, want, response.StatusCode, path)
		require.Contains(t, text, `"message"`)
	}
	require.Len(t, f.Invocations(), 2, "who is refused costs nothing")
}
