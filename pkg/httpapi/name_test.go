package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// TestNames: whoever an authenticator names is written to every entry of theirs
// and shown to people, so it is no place for anything else.
func TestNames(t *testing.T) {
	t.Parallel()
	who := ""
	w := newWorld(t, change{api: func(cfg *httpapi.Config) {
		cfg.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Tenant: "acme", Who: who}, nil }
	}})
	for _, who = range []string{"ann", "auth0|Ann Lee", "arn:aws:sts::123456789012:assumed-role/dev/ann@acme.example", strings.Repeat("é", 640)} {
		require.Equal(t, http.StatusOK, w.send(ann, http.MethodGet, "/sessions", "").Code, who)
	}
	w.log.Reset()
	for _, who = range []string{"", "  ", strings.Repeat("é", 641), strings.Repeat("x", 100_000), "evil\x1b[2J", "a\nb", "a\r", "\u202egnp.exe", "a\u2028b", "\xff"} {
		p := problem(t, w.send(ann, http.MethodGet, "/sessions", ""))
		require.Equal(t, codes.Forbidden, p.Code, "%.20q", who)
	}
	require.Less(t, w.log.Len(), 10_000, "nor does it fill the log")
}
