//go:build aws && linux

package functions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/client"
)

// forged is a request that nobody sent: an event written by who may invoke the function.
func forged(api, routeKey, authorizer string) []byte {
	method, path, _ := strings.Cut(routeKey, " ")
	return fmt.Appendf(nil, `{"version":"2.0","rawPath":%q,"headers":{"content-type":"application/json"},"body":"{\"agent\":\"lab\",\"input\":\"- say: hi\"}",
		"requestContext":{"apiId":%q,"routeKey":%q,"http":{"method":%q,"sourceIp":"192.0.2.1"},"authorizer":%s}}`, path, api, routeKey, method, authorizer)
}

// answered is the status of a function's answer, with its problem's code.
func answered(ctx context.Context, t *testing.T, f *lambdatest.Function, payload []byte) (status int, code string) {
	t.Helper()
	raw, err := f.Invoke(ctx, payload)
	require.NoError(t, err)
	var answer struct {
		StatusCode int
		Body       string
	}
	require.NoError(t, json.Unmarshal(raw, &answer))
	var problem client.Problem
	_ = json.Unmarshal([]byte(answer.Body), &problem) // none where it is no problem
	return answer.StatusCode, problem.Code
}

// TestDoors: the real functions, invoked past the API.
func TestDoors_are_shut_past_the_API(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{noSweep: true, env: map[string]string{"ADJOURN_EVENT_TEMPLATE": `{"agent":"lab","input":"- say: hi"}`}})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	token := `{"jwt":{"claims":{"tenant":"acme","sub":"ann"}}}`
	for name, route := range map[string]string{
		"start": "POST /sessions", "resume": "POST /sessions/{id}/resume", "submit": "POST /sessions/{id}/submit", "query": "GET /sessions",
	} {
		f := w.functions[name]
		for what, payload := range map[string][]byte{
			"another API": forged("other", route, token), "no API": forged("", route, token), "a function URL": forged(lambdatest.APIID, "$default", token),
			"another route": forged(lambdatest.APIID, "DELETE /sessions", token),
		} {
			status, code := answered(ctx, t, f, payload)
			require.Equal(t, http.StatusForbidden, status, "%s: %s", name, what)
			require.Equal(t, codes.Forbidden, code)
		}
		for _, authorizer := range []string{
			`null`, `{}`, `{"lambda":{"tenant":"acme","sub":"ann"}}`, `{"claims":{"tenant":"acme","sub":"ann"}}`, `{"jwt":{"claims":{"tenant":"acme","sub":"ann"}},"lambda":{}}`,
		} {
			status, code := answered(ctx, t, f, forged(lambdatest.APIID, route, authorizer))
			require.Equal(t, http.StatusUnauthorized, status, "%s: %s", name, authorizer)
			require.Equal(t, codes.Unauthenticated, code)
		}
		status, code := answered(ctx, t, f, forged(lambdatest.APIID, route, `{"iam":{"userArn":"arn:aws:iam::1:user/ann"}}`))
		require.Equal(t, http.StatusForbidden, status, name)
		require.Equal(t, codes.Forbidden, code)
		for _, event := range []string{
			`{"agent":"lab","input":"- say: hi"}`, `{"version":"0","id":"e-1","detail-type":"x","source":"shop","detail":{}}`,
			`{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m-1","Message":"x"}}]}`, `{"version":"1.0","httpMethod":"POST","path":"/sessions","requestContext":{}}`,
		} {
			_, err := f.Invoke(ctx, []byte(event))
			var failed *lambdatest.InvokeError
			require.ErrorAs(t, err, &failed, "%s: %s", name, event)
			require.Contains(t, failed.Message, "not an HTTP request")
		}
	}
	_, err := w.functions["event"].Invoke(ctx, forged(lambdatest.APIID, "POST /sessions", token))
	var failed *lambdatest.InvokeError
	require.ErrorAs(t, err, &failed)
	require.Contains(t, failed.Message, "an HTTP request")
	n, err := w.queued()
	require.NoError(t, err)
	require.Zero(t, n, "nothing was started")

	// What docs/security.md says of who may invoke a function and knows the API's id.
	status, _ := answered(ctx, t, w.functions["query"], forged(lambdatest.APIID, "GET /sessions", token))
	require.Equal(t, http.StatusOK, status)
}

// TestDoors_a_wrong_template_harms_events_alone, which fail with the reason.
func TestDoors_a_wrong_template_harms_events_alone(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{noSweep: true, env: map[string]string{"ADJOURN_EVENT_TEMPLATE": `{"agent":"lab","input":"{{.detail"}`}})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		_, err := w.functions["event"].Invoke(ctx, []byte(`{"version":"0","id":"e-1","detail-type":"x","source":"shop","detail":{}}`))
		var failed *lambdatest.InvokeError
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Message, "ADJOURN_EVENT_TEMPLATE")
	}
	for _, err := range w.client(t, "acme").AllSessions(ctx, client.SessionsParams{}) {
		require.NoError(t, err)
	}
}

// TestDoors_wrong_settings_are_told: the functions behind the API live, and say it.
func TestDoors_wrong_settings_are_told(t *testing.T) {
	t.Parallel()
	w := deploy(t, settings{noSweep: true, env: map[string]string{"ADJOURN_MAX_WAIT": "2.5s"}})
	for _, route := range []string{"GET /sessions", "POST /sessions", "POST /sessions/s1/resume", "POST /sessions/s1/submit"} {
		method, path, _ := strings.Cut(route, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, w.server.URL+path, strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer acme")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusInternalServerError, response.StatusCode, route)
		require.Contains(t, string(body), `"code":"misconfigured"`, route)
		require.NotContains(t, string(body), "ADJOURN_MAX_WAIT", "%s: that is for the log", route)
	}
	require.Contains(t, w.output(), "ADJOURN_MAX_WAIT")
}
