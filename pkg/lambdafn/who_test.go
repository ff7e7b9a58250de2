package lambdafn_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// startedBy starts a session with a token's claims and returns who it says did.
func startedBy(t *testing.T, w *world, claims map[string]string) string {
	t.Helper()
	e := jwt("POST", "/sessions", claims)
	e.Headers["content-type"], e.Body = "application/json", `{"agent":"lab","input":"- say: hi"}`
	got := ask(t, starter(t, w, ""), e)
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
	require.Equal(t, "ann@acme.example", startedBy(t, w, map[string]string{"tenant": "acme", "email": "ann@acme.example"}))
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
	for _, sub := range []string{`["u1"]`, `{"u":1}`, `true`} {
		raw := `{"rawPath":"/sessions","requestContext":{"http":{"method":"GET"},"authorizer":{"jwt":{"claims":{"tenant":"acme","email":"a@b.c","sub":` + sub + `}}}}}`
		require.Equal(t, http.StatusForbidden, askRaw(t, h, []byte(raw)).StatusCode, sub)
	}
	raw := `{"rawPath":"/sessions","requestContext":{"http":{"method":"GET"},"authorizer":{"jwt":{"claims":{"tenant":"acme","sub":7}}}}}`
	require.Equal(t, http.StatusOK, askRaw(t, h, []byte(raw)).StatusCode, "a number is a name")
}
