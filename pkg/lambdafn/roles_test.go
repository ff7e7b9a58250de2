package lambdafn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/lambdafn"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestIdentity_roles: the roles are those of the one claim that is named, as the gateway or an emulator
// writes it. What is malformed gives none.
func TestIdentity_roles(t *testing.T) {
	t.Parallel()
	type in struct{}
	board := tool.Define(tool.Spec[in]{Name: "board", Approve: tool.Always[in], Roles: []string{"finance"}}, func(context.Context, *tool.Call, in) (string, error) { return "", nil })
	for name, c := range map[string]struct {
		claim string // of the configuration
		is    string // the claims beside sub, as JSON
		may   bool
	}{
		"as the gateway writes a list": {"groups", `"groups":"[sales finance]"`, true},
		"a list":                       {"groups", `"groups":["sales","finance"]`, true},
		"a list as text":               {"groups", `"groups":"[\"sales\",\"finance\"]"`, true},
		"words with spaces":            {"groups", `"groups":"sales finance"`, true},
		"words with commas":            {"groups", `"groups":"sales, finance"`, true},
		"one word":                     {"groups", `"groups":"finance"`, true},
		"none":                         {"groups", `"groups":""`, false},
		"no claim":                     {"groups", `"roles":"finance"`, false},
		"no claim is named":            {"", `"groups":"finance","":"finance"`, false},
		"an object":                    {"groups", `"groups":{"finance":true}`, false},
		"an object as text":            {"groups", `"groups":"{\"a\": finance }"`, false},
		"a list of other things":       {"groups", `"groups":["finance",1]`, false},
		"one that is malformed":        {"groups", `"groups":["finance","a b"]`, false},
		"half a list":                  {"groups", `"groups":"[\"finance\", finance"`, false},
		"another case":                 {"groups", `"groups":"Finance"`, false},
		"another claim's case":         {"groups", `"Groups":"finance"`, false},
		"null":                         {"groups", `"groups":null`, false},
		"a part of a word":             {"groups", `"groups":"finance-audit"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, board)
			w.cfg.RolesClaim, w.cfg.FixedTenant = c.claim, "default"
			w.cfg.AllowUnauthenticated = true
			wake := w.start("- {call: board}")
			require.NoError(t, w.cfg.Runtime.Drive(t.Context(), wake.Key(), w.queue))
			h, err := lambdafn.NewSubmit(w.cfg)
			require.NoError(t, err)
			raw, err := json.Marshal(`{"kind":"approval-response","waitId":"w2-1","approved":true}`)
			path := "/sessions/" + wake.ID + "/submit"
			got := askRaw(t, need(t, h, err), []byte(fmt.Sprintf(`{"version":"2.0","rawPath":%q,"body":%s,"headers":{"content-type":"application/json"},
				"requestContext":{"apiId":"api-1","routeKey":"POST /sessions/{id}/submit","http":{"method":"POST","path":%q},"authorizer":{"jwt":{"claims":{"sub":"bob",%s}}}}}`, path, raw, path, c.is)))
			require.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[c.may], got.StatusCode, got.Body)
		})
	}
}

// TestIdentity_unverified: where nobody verifies callers, a rule that needs to know who they are refuses all.
func TestIdentity_unverified(t *testing.T) {
	t.Parallel()
	type in struct{}
	for name, spec := range map[string]tool.Spec[in]{
		"signed in": {Assurance: tool.AssuranceSignedIn}, "two": {Need: 2}, "not who asked": {NotRequester: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec.Name, spec.Approve = "board", tool.Always[in]
			w := newWorld(t, tool.Define(spec, func(context.Context, *tool.Call, in) (string, error) { return "", nil }))
			w.cfg.AllowUnauthenticated = true
			wake := w.start("- {call: board}")
			require.NoError(t, w.cfg.Runtime.Drive(t.Context(), wake.Key(), w.queue))
			h, err := lambdafn.NewSubmit(w.cfg)
			e := request("POST", "/sessions/"+wake.ID+"/submit")
			e.RequestContext.RouteKey = "POST /sessions/{id}/submit"
			e.Headers = map[string]string{"content-type": "application/json"}
			e.Body = `{"kind":"approval-response","waitId":"w2-1","approved":true}`
			p := problemOf(t, ask(t, need(t, h, err), e))
			require.Equal(t, "sign_in_required", p.Code)
		})
	}
}
