package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// receiver is a webhook that a test turns on and off.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	bodies []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, string(body))
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

func (b *bench) withWebhook(r *receiver) {
	b.env["ADJOURN_WEBHOOK_URL"] = r.URL + "/hush"
	b.env["ADJOURN_WEBHOOK_SECRET"] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	b.env["ADJOURN_WEBHOOK_ALLOW_HTTP"], b.env["ADJOURN_WEBHOOK_ALLOW_PRIVATE"] = "true", "true"
}

// TestNotices: what waits and what ends is told outside, and listed with what became of it.
func TestNotices(t *testing.T) {
	t.Parallel()
	hooks := newReceiver(t)
	both(t, func(t *testing.T, b *bench) {
		b.run("run", "--agent", "toy", "[{say: hi}]").ends(0)
		require.Contains(t, b.run("notices").ends(0).stderr, "Nothing was told outside")
		require.Contains(t, b.run("notices", "test").ends(2).stderr, "notices test CHANNEL")
		b.run("notices", "--limit", "0").ends(2)
		b.run("notices", "--cursor", "x").ends(2)
	})
	t.Run("sent", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.withWebhook(hooks)
		b.run("run", "--agent", "toy", "--session", "s", "[{call: deploy, with: {service: web}}, {say: done}]").ends(10)
		require.Len(t, hooks.got(), 1, "a command that ends sends what nobody else does")
		require.Contains(t, hooks.got()[0], `"type":"session.suspended"`)
		require.NotContains(t, hooks.got()[0], "service")
		b.run("submit", "s", "w2-1", "--approve").ends(0)
		all := hooks.got()
		require.Len(t, all, 3)
		listed := b.run("notices").ends(0).stdout
		for _, want := range []string{"session.suspended w2-1", "wait.answered w2-1", "session.completed", "webhook", "sent"} {
			require.Contains(t, listed, want)
		}
		require.Contains(t, b.run("notices", "--output", "json").ends(0).stdout, `"decision": "approved"`)
		require.Contains(t, b.run("notices", "test", "webhook").ends(0).stdout, "webhook took the test message")
		require.Contains(t, b.run("notices", "test", "pigeon").ends(2).stderr, "use webhook")
		hooks.mu.Lock()
		hooks.status = http.StatusInternalServerError
		hooks.mu.Unlock()
		require.Contains(t, b.run("notices", "test", "webhook").ends(1).stderr, "the server answered 500")
		b.run("run", "--agent", "toy", "--session", "t", "[{say: hi}]").ends(0)
		listed = b.run("notices", "--limit", "1").ends(0).stdout
		require.Contains(t, listed, "again in ")
		require.Contains(t, listed, "the server answered 500")
		require.NotContains(t, listed, "hush")
	})
	t.Run("wrong settings", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		require.Contains(t, b.run("notices", "test", "webhook").ends(2).stderr, "no channel has its settings here")
		b.env["ADJOURN_WEBHOOK_URL"], b.env["ADJOURN_WEBHOOK_SECRET"] = "http://example.com/hush", "whsec_hush"
		said := b.run("run", "--agent", "toy", "[{say: hi}]").ends(2).stderr
		require.Contains(t, said, "ADJOURN_WEBHOOK_URL")
		require.Contains(t, said, "ADJOURN_WEBHOOK_SECRET")
		require.NotContains(t, said, "hush")
	})
}

// TestNotices_of_dev: a server sends what it writes and what commands write beside it.
func TestNotices_of_dev(t *testing.T) {
	t.Parallel()
	hooks := newReceiver(t)
	b := setup(t)
	b.withWebhook(hooks)
	b.serve()
	b.run("run", "--agent", "toy", "--session", "s", "[{call: deploy, with: {service: web}}, {say: done}]").ends(10)
	b.run("submit", "s", "w2-1", "--approve").ends(0)
	require.Eventually(t, func() bool { return len(hooks.got()) == 3 }, 10*time.Second, 5*time.Millisecond)
}
