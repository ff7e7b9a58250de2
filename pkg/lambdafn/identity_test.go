package lambdafn_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// jwt is a request that a JWT authorizer let in.
func jwt(method, path string, claims map[string]string) events.APIGatewayV2HTTPRequest {
	e := request(method, path)
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims},
	}
	return e
}

func iam(method, path, arn string) events.APIGatewayV2HTTPRequest {
	e := request(method, path)
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: arn, AccountID: "1"},
	}
	return e
}

func query(t testing.TB, w *world) lambdafn.Handler {
	t.Helper()
	h, err := lambdafn.NewQuery(w.cfg)
	return need(t, h, err)
}

func starter(t testing.TB, w *world) lambdafn.Handler {
	t.Helper()
	h, err := lambdafn.NewStart(w.cfg)
	return need(t, h, err)
}

func listed(t testing.TB, r events.APIGatewayV2HTTPResponse) []string {
	t.Helper()
	require.Equal(t, http.StatusOK, r.StatusCode, r.Body)
	var page client.Sessions
	require.NoError(t, json.Unmarshal([]byte(r.Body), &page))
	ids := []string{}
	for _, s := range page.Items {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestIdentity_the_tenant_is_the_tokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tenant := range []string{"acme", "globex", session.DefaultTenant} {
		_, err := w.cfg.Runtime.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: tenant, ID: "of-" + tenant}, Agent: "lab", Input: llm.TextParts("- say: hi")})
		require.NoError(t, err)
	}
	h := query(t, w)
	require.Equal(t, []string{"of-acme"}, listed(t, ask(t, h, jwt("GET", "/sessions", map[string]string{"tenant": "acme", "sub": "u1"}))))
	require.Equal(t, []string{"of-globex"}, listed(t, ask(t, h, jwt("GET", "/sessions", map[string]string{"tenant": "globex", "sub": "u2"}))))
	got := ask(t, h, jwt("GET", "/sessions/of-globex", map[string]string{"tenant": "acme", "sub": "u1"}))
	require.Equal(t, http.StatusNotFound, got.StatusCode, "another tenant's session is not there")

	w.cfg.TenantClaim = "custom:org"
	require.Equal(t, []string{"of-acme"}, listed(t, ask(t, query(t, w), jwt("GET", "/sessions", map[string]string{"custom:org": "acme", "tenant": "globex", "sub": "u1"}))))
}

func TestIdentity_who_has_no_tenant_is_forbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := query(t, w)
	for name, claims := range map[string]map[string]string{
		"none": nil, "no tenant": {"sub": "u1"}, "empty": {"tenant": "", "sub": "u1"}, "a list": {"tenant": "[acme globex]", "sub": "u1"},
		"a path": {"tenant": "../acme", "sub": "u1"}, "nobody": {"tenant": "acme"}, "other case": {"Tenant": "acme", "sub": "u1"},
	} {
		p := problemOf(t, ask(t, h, jwt("GET", "/sessions", claims)))
		require.Equal(t, http.StatusForbidden, p.Status, name)
		require.Equal(t, codes.Forbidden, p.Code, name)
	}
	// An emulator that hands lists through opens nothing either.
	raw := []byte(`{"version":"2.0","rawPath":"/sessions","requestContext":{"apiId":"api-1","routeKey":"GET /sessions","http":{"method":"GET"},"authorizer":{"jwt":{"claims":{"tenant":["acme"],"sub":"u1"}}}}}`)
	require.Equal(t, http.StatusForbidden, askRaw(t, h, raw).StatusCode)
}

func TestIdentity_what_the_client_says_is_no_claim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := query(t, w)
	e := request("GET", "/sessions")
	e.Headers = map[string]string{
		"authorization": "Bearer eyJhbGciOiJub25lIn0.eyJ0ZW5hbnQiOiJhY21lIiwic3ViIjoidTEifQ.", "x-amzn-oidc-data": "x",
		"X-Golambdaproxy-Apigw-Context": `{"authorizer":{"jwt":{"claims":{"tenant":"acme","sub":"u1"}}}}`,
		"x-tenant":                      "acme", "x-forwarded-user": "root",
	}
	e.StageVariables = map[string]string{"tenant": "acme"}
	e.QueryStringParameters = map[string]string{"tenant": "acme"}
	e.PathParameters = map[string]string{"tenant": "acme"}
	p := problemOf(t, ask(t, h, e))
	require.Equal(t, http.StatusUnauthorized, p.Status)
	require.Equal(t, codes.Unauthenticated, p.Code)

	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"tenant": "acme"}}
	require.Equal(t, http.StatusUnauthorized, ask(t, h, e).StatusCode, "an authorizer this program does not know")
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{}}
	require.Equal(t, http.StatusUnauthorized, ask(t, h, e).StatusCode)
}

func TestIdentity_callers_by_IAM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := iam("GET", "/sessions", "arn:aws:iam::1:user/a")
	p := problemOf(t, ask(t, query(t, w), e))
	require.Equal(t, http.StatusForbidden, p.Status)
	w.cfg.IAMTenant = "acme"
	require.Empty(t, listed(t, ask(t, query(t, w), e)))
}

// TestIdentity_who_by_IAM: whoever may assume a role, or federate, chooses the name at
// the end of the ARN, so that it is no part of who it was.
func TestIdentity_who_by_IAM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.IAMTenant = "acme"
	h := starter(t, w)
	for arn, who := range map[string]string{
		"arn:aws:iam::1:user/a":                             "arn:aws:iam::1:user/a",
		"arn:aws:iam::1:user/team/a":                        "arn:aws:iam::1:user/team/a",
		"arn:aws:iam::1:root":                               "arn:aws:iam::1:root",
		"arn:aws-cn:sts::1:assumed-role/Approver/boss":      "arn:aws-cn:sts::1:assumed-role/Approver",
		"arn:aws:sts::1:assumed-role/Approver/assumed-role": "arn:aws:sts::1:assumed-role/Approver",
		"arn:aws:sts::1:assumed-role/Approver/x/Approver":   "arn:aws:sts::1:assumed-role/Approver",
		"arn:aws:sts::1:federated-user/boss":                "",
		"arn:aws:sts::1:assumed-role/Approver":              "",
		"arn:aws:sts::1:assumed-role/Approver/":             "",
		"arn:aws:sts::1:assumed-role//boss":                 "",
		"arn:aws:sts::1:user/boss":                          "",
		"arn:aws:iam::1:assumed-role/Approver/boss":         "",
		"arn:aws:sts:::assumed-role/Approver/boss":          "",
		"boss":                       "",
		"x arn:aws:iam::1:user/boss": "",
		"arn:aws:sts::1:something-new/Approver/boss": "",
	} {
		e := iam("POST", "/sessions", arn)
		e.Headers["content-type"], e.Body = "application/json", `{"agent":"lab","input":"- say: hi"}`
		got := ask(t, h, e)
		if who == "" {
			require.Equal(t, codes.Forbidden, problemOf(t, got).Code, arn)
			continue
		}
		require.Equal(t, http.StatusAccepted, got.StatusCode, "%s: %s", arn, got.Body)
		var started struct{ SessionID string }
		require.NoError(t, json.Unmarshal([]byte(got.Body), &started))
		for entry, err := range w.store.Entries(t.Context(), session.Key{Tenant: "acme", ID: started.SessionID}, 0) {
			require.NoError(t, err)
			require.Equal(t, who, entry.By)
			break
		}
	}
}

func TestIdentity_everybody_where_it_is_allowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.AllowUnauthenticated = true
	w.start("- say: hi")
	h := query(t, w)
	require.Len(t, listed(t, ask(t, h, request("GET", "/sessions"))), 1)
	require.Empty(t, listed(t, ask(t, h, jwt("GET", "/sessions", map[string]string{"tenant": "acme", "sub": "u1"}))), "who has a token has its tenant")
	require.Equal(t, http.StatusForbidden, ask(t, h, jwt("GET", "/sessions", map[string]string{"sub": "u1"})).StatusCode)
}

func TestHTTP_each_function_serves_its_routes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	claims := map[string]string{"tenant": session.DefaultTenant, "sub": "ann"}
	resume, err := lambdafn.NewResume(w.cfg)
	require.NoError(t, err)
	submit, err := lambdafn.NewSubmit(w.cfg)
	require.NoError(t, err)
	start, steps := starter(t, w), step(t, w)

	e := jwt("POST", "/sessions", claims)
	e.Headers["content-type"], e.Headers["idempotency-key"] = "application/json", "a,b"
	e.Body = `{"agent":"lab","input":"- call: deploy\n  with: {service: shop}\n- say: done"}`
	got := ask(t, start, e)
	require.Equal(t, http.StatusAccepted, got.StatusCode, got.Body)
	require.Equal(t, "true", ask(t, start, e).Headers["Idempotency-Replayed"], "a key with a comma is one key")
	id := got.Headers["Location"][len("/sessions/"):]

	work := func() {
		for sent := w.queue.takeSent(); len(sent) > 0; sent = w.queue.takeSent() {
			for _, wake := range sent {
				deliver(t, steps, wakeMessage(t, "m", wake))
			}
		}
	}
	work()
	key := session.Key{Tenant: session.DefaultTenant, ID: id}
	m := w.stands(key)
	require.NotNil(t, m.Pause, "%+v", m)
	pending := m.Open[0].Wait

	e = jwt("POST", "/sessions/"+id+"/submit", claims)
	e.Headers["content-type"] = "application/json"
	body, err := json.Marshal(map[string]any{"kind": "approval-response", "toolCallId": pending.Call, "approvalId": pending.Nonce, "approved": true})
	require.NoError(t, err)
	e.Body = string(body)
	for _, wrong := range []lambdafn.Handler{resume, start, query(t, w)} {
		require.Equal(t, http.StatusForbidden, ask(t, wrong, e).StatusCode)
	}
	got = ask(t, submit, e)
	require.Less(t, got.StatusCode, 300, got.Body)
	var submitted client.Submitted
	require.NoError(t, json.Unmarshal([]byte(got.Body), &submitted))
	require.Equal(t, "ann", submitted.Answer.Who)
	require.Equal(t, "192.0.2.7", submitted.Answer.From, "as the gateway saw it")
	work()
	require.Equal(t, "done", w.stands(key).Text)

	e = jwt("POST", "/sessions/"+id+"/resume", claims)
	e.Headers["content-type"], e.Body = "application/json", `{"mode":"continue"}`
	require.Equal(t, http.StatusConflict, ask(t, resume, e).StatusCode, "it has ended")
}

func TestHTTP_odd_paths_are_answered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := query(t, w)
	claims := map[string]string{"tenant": session.DefaultTenant, "sub": "ann"}
	for _, path := range []string{
		"/sessions/50%off", "/sessions/a%2Fb", "/sessions/a?b", "//sessions", "/sessions/../sessions", "/sessions/..", "/./sessions", "/sessions/",
		"/sessions/\x00", "/sessions/ä", "", "/..", "/sessions//messages", "/%", "//evil.example/", "/\\evil.example",
	} {
		got := ask(t, h, jwt("GET", path, claims))
		require.Contains(t, []int{400, 404}, got.StatusCode, "%q: %s %v", path, got.Body, got.Headers)
		problemOf(t, got)
	}
	for _, method := range []string{"POST", "DELETE", "TRACE", "CONNECT", "G T"} {
		e := jwt(method, "/sessions", claims)
		e.RequestContext.RouteKey = "GET /sessions"
		got := ask(t, h, e)
		require.Contains(t, []int{404, 405}, got.StatusCode, "%q: %s", method, got.Body)
	}
}
