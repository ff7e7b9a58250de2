package lambdafn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/session"
)

// firstRoute is a route of each function that answers the API.
var firstRoute = map[string]struct{ method, path string }{
	"start":  {"POST", "/sessions"},
	"resume": {"POST", "/sessions/s1/resume"},
	"submit": {"POST", "/sessions/s1/submit"},
	"query":  {"GET", "/sessions"},
}

// forge returns an event of a function's first route, with what its request context
// has beside the gateway's own words.
func forge(t testing.TB, name string, more map[string]any) []byte {
	t.Helper()
	r := firstRoute[name]
	e := request(r.method, r.path)
	e.Headers["content-type"], e.Body = "application/json", `{"agent":"lab","input":"- say: hi"}`
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	var event map[string]any
	require.NoError(t, json.Unmarshal(raw, &event))
	for k, v := range more {
		event["requestContext"].(map[string]any)[k] = v
	}
	raw, err = json.Marshal(event)
	require.NoError(t, err)
	return raw
}

type anything = map[string]any

func claims(tenant string) anything {
	return anything{"claims": anything{"tenant": tenant, "sub": "u1"}}
}

// TestAdmission_only_its_own_API: an authorizer's word counts only where it is that
// of the API the function belongs to, by a route of the function.
func TestAdmission_only_its_own_API(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		w := newWorld(t)
		w.cfg.AllowUnauthenticated = open
		for name, h := range served(t, w) {
			token := anything{"jwt": claims("acme")}
			require.NotContains(t, []int{401, 403}, askRaw(t, h, forge(t, name, anything{"authorizer": token})).StatusCode, "%s: the real one", name)
			for what, context := range map[string]anything{
				"another API":     {"authorizer": token, "apiId": "api-2"},
				"no API":          {"authorizer": token, "apiId": nil},
				"no text":         {"authorizer": token, "apiId": ""},
				"a longer id":     {"authorizer": token, "apiId": "api-1 "},
				"other case":      {"authorizer": token, "apiId": "API-1"},
				"a function URL":  {"authorizer": token, "apiId": "abcdefghijklmnopqrstuvwxyz012345", "routeKey": "$default"},
				"the default":     {"authorizer": token, "routeKey": "$default"},
				"no route":        {"authorizer": token, "routeKey": nil},
				"a route by hand": {"authorizer": token, "routeKey": "ANY /{proxy+}"},
				"of another":      {"authorizer": token, "routeKey": map[bool]string{true: "POST /sessions", false: "GET /sessions"}[name == "query"]},
				"no caller":       {"apiId": "api-2"},
			} {
				got := askRaw(t, h, forge(t, name, context))
				require.Equal(t, codes.Forbidden, problemOf(t, got).Code, "%s: %s", name, what)
				require.NotContains(t, got.Body, "api-1", "the id is not told")
			}
		}
		require.Len(t, w.queue.takeSent(), 1, "the real one alone started a session")
		w.logs("ADJOURN_API_ID names another", "none of this function's")
	}
}

// TestAdmission_no_word_of_the_API_is_taken_from_the_client.
func TestAdmission_no_word_of_the_API_is_taken_from_the_client(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := query(t, w)
	raw := strings.Replace(string(forge(t, "query", anything{"authorizer": anything{"jwt": claims("acme")}, "apiId": "api-2"})),
		`"headers":{`, `"headers":{"x-amzn-apigateway-api-id":"api-1","apiId":"api-1",`, 1)
	raw = strings.Replace(raw, `"requestContext":`, `"apiId":"api-1","stageVariables":{"apiId":"api-1"},"queryStringParameters":{"apiId":"api-1"},"requestContext":`, 1)
	require.Equal(t, http.StatusForbidden, askRaw(t, h, []byte(raw)).StatusCode)
}

// TestAdmission_authorizers_of_other_shapes: what is not exactly the authorizer that
// was configured lets nobody in, also where everybody is.
func TestAdmission_authorizers_of_other_shapes(t *testing.T) {
	t.Parallel()
	user := anything{"userArn": "arn:aws:iam::1:user/ann", "accountId": "1", "cognitoIdentity": nil}
	shapes := map[string]any{
		"lambda":             anything{"lambda": anything{"tenant": "acme", "sub": "u1"}},
		"of a REST API":      anything{"claims": anything{"tenant": "acme", "sub": "u1"}},
		"principal":          anything{"principalId": "u1", "tenant": "acme"},
		"both":               anything{"jwt": claims("acme"), "iam": user},
		"jwt and lambda":     anything{"jwt": claims("acme"), "lambda": anything{"tenant": "globex"}},
		"jwt and an unknown": anything{"jwt": claims("acme"), "oidc": anything{}},
		"JWT":                anything{"JWT": claims("acme")},
		"two cases":          anything{"jwt": claims("acme"), "Jwt": claims("globex")},
		"IAM":                anything{"IAM": user},
	}
	for kind, cfg := range map[string]func(*lambdafn.Config){
		"tokens": func(*lambdafn.Config) {}, "fixed": func(c *lambdafn.Config) { c.FixedTenant = "acme" },
		"IAM": func(c *lambdafn.Config) { c.IAMTenant = "acme" }, "open": func(c *lambdafn.Config) { c.AllowUnauthenticated = true },
	} {
		w := newWorld(t)
		cfg(&w.cfg)
		for name, h := range served(t, w) {
			for shape, authorizer := range shapes {
				got := askRaw(t, h, forge(t, name, anything{"authorizer": authorizer}))
				require.Equal(t, codes.Unauthenticated, problemOf(t, got).Code, "%s, %s: %s", kind, name, shape)
			}
			for _, authorizer := range []any{7, "jwt", []any{anything{"jwt": claims("acme")}}, anything{"jwt": 7}, anything{"iam": []any{}}} {
				require.Equal(t, http.StatusBadRequest, askRaw(t, h, forge(t, name, anything{"authorizer": authorizer})).StatusCode, "%s, %s", kind, name)
			}
			if kind != "open" {
				for _, none := range []any{nil, anything{}, anything{"jwt": nil}, anything{"jwt": nil, "iam": nil}} {
					require.Equal(t, http.StatusUnauthorized, askRaw(t, h, forge(t, name, anything{"authorizer": none})).StatusCode, "%s, %s: %v", kind, name, none)
				}
			}
		}
		require.Empty(t, w.queue.takeSent(), kind)
	}
}

// TestAdmission_a_fixed_tenant: where tokens name none, all callers are of one.
func TestAdmission_a_fixed_tenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.FixedTenant = "acme"
	h := starter(t, w)
	for _, said := range []anything{
		{"sub": "u1"}, {"sub": "u1", "tenant": "globex"}, {"sub": "u1", "tenant": ""}, {"sub": "u1", "tenant": []any{"globex"}},
	} {
		got := askRaw(t, h, forge(t, "start", anything{"authorizer": anything{"jwt": anything{"claims": said}}}))
		require.Equal(t, http.StatusAccepted, got.StatusCode, got.Body)
	}
	for _, wake := range w.queue.takeSent() {
		require.Equal(t, "acme", wake.Tenant)
	}
	got := askRaw(t, h, forge(t, "start", anything{"authorizer": anything{"jwt": anything{"claims": anything{"email": "a@b.c"}}}}))
	require.Equal(t, http.StatusForbidden, got.StatusCode, "a fixed tenant names nobody")
	require.Equal(t, http.StatusUnauthorized, askRaw(t, h, forge(t, "start", nil)).StatusCode)
	got = askRaw(t, h, forge(t, "start", anything{"authorizer": anything{"iam": anything{"userArn": "arn:aws:iam::1:user/ann"}}}))
	require.Equal(t, http.StatusForbidden, got.StatusCode, "it is for tokens")
}

// TestAdmission_callers_by_IAM are recorded by their ARN without what they chose
// themselves, and come in alone.
func TestAdmission_callers_by_IAM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.IAMTenant = "ops"
	h := starter(t, w)
	arn := "arn:aws:sts::123456789012:assumed-role/Approver/ann@acme.example"
	got := askRaw(t, h, forge(t, "start", anything{"authorizer": anything{"iam": anything{
		"userArn": arn, "accountId": "123456789012", "callerId": "AROA:ann", "accessKey": "ASIA", "userId": "AROA:ann", "cognitoIdentity": nil, "principalOrgId": "o-1",
	}}}))
	require.Equal(t, http.StatusAccepted, got.StatusCode, got.Body)
	var started struct{ SessionID string }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &started))
	for entry, err := range w.store.Entries(t.Context(), session.Key{Tenant: "ops", ID: started.SessionID}, 0) {
		require.NoError(t, err)
		require.Equal(t, "arn:aws:sts::123456789012:assumed-role/Approver", entry.By)
		require.Equal(t, "192.0.2.7 session ann@acme.example", entry.From, "which is his own word, and there to be read")
		break
	}
	for what, c := range map[string]struct {
		authorizer anything
		status     int
	}{
		"a token":    {anything{"jwt": claims("ops")}, http.StatusUnauthorized},
		"nobody":     {anything{"iam": anything{"userArn": "", "callerId": "AROA:ann"}}, http.StatusUnauthorized},
		"other name": {anything{"iam": anything{"user_arn": arn}}, http.StatusUnauthorized},
		"a pool":     {anything{"iam": anything{"userArn": arn, "cognitoIdentity": anything{"identityId": "eu:1", "identityPoolId": "eu:2"}}}, http.StatusForbidden},
		"long":       {anything{"iam": anything{"userArn": "arn:aws:iam::1:user/" + strings.Repeat("x", 5000)}}, http.StatusForbidden},
	} {
		require.Equal(t, c.status, askRaw(t, h, forge(t, "start", anything{"authorizer": c.authorizer})).StatusCode, what)
	}
}

// TestAdmission_no_function_without_its_API: who forgets the id gets no function
// that answers everybody.
func TestAdmission_no_function_without_its_API(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.APIID, w.cfg.AllowUnauthenticated = "", true
	for _, build := range []func(lambdafn.Config) (lambdafn.Handler, error){lambdafn.NewStart, lambdafn.NewResume, lambdafn.NewSubmit, lambdafn.NewQuery} {
		_, err := build(w.cfg)
		require.ErrorContains(t, err, "ADJOURN_API_ID")
	}
	require.Len(t, firstRoute, len(httpapi.Functions()), "every function of the API is tried here")
}
