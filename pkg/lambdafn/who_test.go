package lambdafn_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/session"
)

// startedBy starts a session with a token's claims and returns who it says did.
func startedBy(t *testing.T, w *world, claims map[string]string) string {
	t.Helper()
	e := jwt("POST", "/sessions", claims)
	e.Headers["content-type"], e.Body = "application/json", `{"agent":"lab","input":"- say: hi"}`
	got := ask(t, starter(t, w), e)
	require.Equal(t, http.StatusAccepted, got.StatusCode, got.Body)
	var started struct{ SessionID string }
	require.NoError(t, json.Unmarshal([]byte(got.Body), &started))
	for entry, err := range w.store.Entries(t.Context(), session.Key{Tenant: claims["tenant"], ID: started.SessionID}, 0) {
		require.NoError(t, err)
		return entry.By
	}
	t.Fatal("no entry")
	return ""
}

// TestIdentity_who_it_was_is_the_subject: many issuers let their users write the
// address themselves, and approvals go by who.
func TestIdentity_who_it_was_is_the_subject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, "u1", startedBy(t, w, map[string]string{"tenant": "acme", "sub": "u1", "email": "boss@acme.example"}))
	require.Equal(t, "client-7", startedBy(t, w, map[string]string{"tenant": "acme", "sub": "client-7", "client_id": "client-7", "token_use": "access"}), "a machine's token of Cognito")
}

// TestIdentity_nothing_stands_in_for_the_subject: whoever may write another claim
// could be anybody.
func TestIdentity_nothing_stands_in_for_the_subject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := query(t, w)
	others := map[string]string{
		"tenant": "acme", "email": "boss@acme.example", "email_verified": "true", "client_id": "c1", "azp": "c1", "username": "boss", "cognito:username": "boss",
		"preferred_username": "boss", "name": "boss", "oid": "1", "uid": "1", "Sub": "boss", "SUB": "boss", "sub ": "boss", "\u017fub": "boss", "act": "{sub=boss}",
	}
	for _, c := range []struct{ name, says string }{{"sub", "no claim sub"}, {"", "no claim sub"}} {
		claims := maps.Clone(others)
		if c.name != "" {
			claims[c.name] = ""
		}
		p := problemOf(t, ask(t, h, jwt("GET", "/sessions", claims)))
		require.Equal(t, http.StatusForbidden, p.Status)
		require.Equal(t, codes.Forbidden, p.Code)
		require.Contains(t, p.Detail, c.says)
	}
}

// TestIdentity_subjects_that_look_alike_are_others: a subject is compared byte for
// byte, and what cannot be seen in one is refused.
func TestIdentity_subjects_that_look_alike_are_others(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sub := range []string{"ada", "Ada", "\u0430da", "ad\uff41", "ad\u00e4", "ada\u0308", "a da", "ada@x", "null", "0", "false", "anonymous"} {
		require.Equal(t, sub, startedBy(t, w, map[string]string{"tenant": "acme", "sub": sub}), "as it is")
	}
	h := query(t, w)
	for _, sub := range []string{
		" ada", "ada ", "ada\t", "\u00a0", "ada\u00a0", "ada\u2003", "ada\u200b", "a\u200dda", "\ufeffada", "ada\u00ad", "ada\x00", "ada\x7f", "ada\u0085", "ada\u2029", "ada\u3164",
		"\u115f", "ada\ufe0f", "ad\u034fa", "ada\U000e0041", "ada\ue000", "ad\u180ba",
	} {
		got := ask(t, h, jwt("GET", "/sessions", map[string]string{"tenant": "acme", "sub": sub}))
		require.Equal(t, http.StatusForbidden, got.StatusCode, "%q", sub)
	}
}

func TestIdentity_a_name_is_short_and_can_be_printed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	longest := strings.Repeat("é", 640)
	require.Equal(t, longest, startedBy(t, w, map[string]string{"tenant": "acme", "sub": longest}))
	require.Equal(t, "auth0|Ann Lee", startedBy(t, w, map[string]string{"tenant": "acme", "sub": "auth0|Ann Lee"}))
	h := query(t, w)
	for _, sub := range []string{longest + "é", strings.Repeat("x", 100_000), "evil\x1b[2J\r\n", "a\nb", "\u202egnp.exe", "a\u2028b", " "} {
		got := ask(t, h, jwt("GET", "/sessions", map[string]string{"tenant": "acme", "sub": sub, "email": "ann@acme.example"}))
		require.Equal(t, http.StatusForbidden, got.StatusCode, "%.20q", sub)
		require.Less(t, len(got.Body), 1000)
	}
	// Emulators hand through what the gateway makes text of.
	for _, sub := range []string{`["u1"]`, `["ann","bob"]`, `[]`, `{"u":1}`, `{}`, `true`, `false`, `null`, `""`} {
		raw := `{"version":"2.0","rawPath":"/sessions","requestContext":{"apiId":"api-1","routeKey":"GET /sessions","http":{"method":"GET"},"authorizer":{"jwt":{"claims":{"tenant":"acme","email":"a@b.c","sub":` + sub + `}}}}}`
		require.Equal(t, http.StatusForbidden, askRaw(t, h, []byte(raw)).StatusCode, sub)
	}
	raw := `{"version":"2.0","rawPath":"/sessions","requestContext":{"apiId":"api-1","routeKey":"GET /sessions","http":{"method":"GET"},"authorizer":{"jwt":{"claims":{"tenant":"acme","sub":7}}}}}`
	require.Equal(t, http.StatusOK, askRaw(t, h, []byte(raw)).StatusCode, "a number is a name")
}
