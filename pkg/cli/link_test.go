package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestLink prints a link, by which the approval is decided where a server serves it.
func TestLink(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a"), 10)
		if b.url == "" {
			refused := b.run("link", "s").ends(3)
			require.Contains(t, refused.stderr, "nothing serves links to this data file yet")
			b.env["ADJOURN_GRANT_KEYS"], b.env["ADJOURN_PUBLIC_URL"] = "one:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=", "https://adjourn.example"
		}
		printed := b.run("link", "s").ends(0)
		require.Regexp(t, `^https?://[a-z0-9.:]+/a/adl_[A-Za-z0-9_-]+\n$`, printed.stdout)
		require.Contains(t, printed.stderr, "Whoever has this link may decide w2-1 in your name")
		var told struct {
			URL, Session, Wait string
			ExpiresAt          time.Time
			Decides            bool
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("link", "s", "w2-1", "--expires", "1h", "-o", "json").ends(0).stdout), &told))
		require.Equal(t, []any{"s", "w2-1", true}, []any{told.Session, told.Wait, told.Decides})
		require.NotEqual(t, strings.TrimSpace(printed.stdout), told.URL, "it ends at another time")

		b.run("link", "nobody").ends(3)
		b.run("link", "s", "w2-9").ends(3)
		b.run("link", "s", "").ends(2)
		b.run("link").ends(2)
		require.Contains(t, b.run("link", "s", "--expires", "1ms").ends(2).stderr, "expiresInMillis")
		require.Equal(t, session.StatusSuspended, b.status("s"), "nothing was decided")

		if b.url != "" {
			path := strings.TrimSpace(printed.stdout)
			require.Contains(t, fetch(t, http.MethodGet, path, ""), "Approve deploy?")
			require.Contains(t, fetch(t, http.MethodPost, path, url.Values{"decision": {"deny"}}.Encode()), "<h1>Denied</h1>")
			require.Eventually(t, func() bool { return b.status("s") == session.StatusCompleted }, time.Minute, 5*time.Millisecond)
			require.NoFileExists(t, log, "it was denied")
			require.Contains(t, b.run("link", "s").ends(5).stderr, "no approval is open")
		}
	})
}

func fetch(t *testing.T, method, address, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	out, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	require.NoError(t, out.Body.Close())
	return string(text)
}

var printedLink = regexp.MustCompile(`w2-1 \(deploy\) in a browser: (http://[^ ]+/a/adl_[A-Za-z0-9_-]+)`)

// TestDev_prints_links: a link for each approval as it opens, of whose token nothing else of the server's
// output has a trace; and a key that only its user can read, which is kept.
func TestDev_prints_links(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := startDev(t, b.install(), []string{asProgram + "=1", "ADJOURN_DATA=" + b.data}, "--show-key")
	b.url, b.token = s.URL, s.Key
	b.env["ADJOURN_TOKEN"] = b.token
	b.start("s", deploys(b.file("log"), "a"), 10)
	var link string
	require.Eventually(t, func() bool {
		if found := printedLink.FindStringSubmatch(s.stderr()); found != nil {
			link = found[1]
		}
		return link != ""
	}, time.Minute, 5*time.Millisecond, "%s", s.stderr())
	require.Contains(t, fetch(t, http.MethodGet, link, ""), "Approve deploy?")
	require.Contains(t, fetch(t, http.MethodPost, link, "decision=approve"), "<h1>Approved</h1>")
	require.Eventually(t, func() bool { return strings.Contains(s.stderr(), "POST /a/…  200") }, time.Minute, 5*time.Millisecond)
	require.Equal(t, 1, strings.Count(s.stderr(), "adl_"), "%s", s.stderr())

	keys := dev.KeysBeside(b.data)
	info, err := os.Stat(keys.Links)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(keys.Links)
	require.NoError(t, err)
	require.Contains(t, string(text), s.URL)
	require.NotContains(t, s.stderr(), string(text[:20]))
	require.NotContains(t, s.said, string(text[:20]))
}
