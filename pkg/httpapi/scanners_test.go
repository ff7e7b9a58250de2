//go:build scanners

package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// browser is Debian's headless Chromium (apt-get install chromium-headless-shell).
const browser = "chromium-headless-shell"

// opened is a page as the browser has it once its scripts have run.
func opened(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// Root has no sandbox for it in a container.
	out, err := exec.CommandContext(ctx, browser, "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom", address).Output()
	require.NoError(t, err, "make test-scanners needs %s", browser)
	return string(out)
}

// TestScanners: a browser that runs scripts opens each kind of link, the one that decides 100 times. Nothing
// is decided, and the link is as good as before: then a person presses its button.
func TestScanners(t *testing.T) {
	w := newWorld(t)
	var gets atomic.Int64
	var serving sync.Mutex // the log of a world is for one request at a time
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/control" {
			_, _ = out.Write([]byte(`<!DOCTYPE html><body><form method="post" action="/pressed"></form><script>document.body.append("a script " + "ran"); document.forms[0].submit()</script>`))
			return
		}
		if strings.HasPrefix(r.URL.Path, "/a/") {
			gets.Add(1)
		}
		serving.Lock()
		defer serving.Unlock()
		w.handler.ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)

	w.start("trip", "deploy")
	w.start("more", "deploy")
	key := session.Key{Tenant: "acme", ID: "more"}
	for item, err := range w.store.Items(t.Context(), key, store.KindWait, "w2-1") {
		require.NoError(t, err)
		record := *item.Wait
		record.Wait.Rule, record.Wait.Needs = &session.AnswerRule{Need: 2}, []string{session.NeedsAnswerRule}
		_, err = w.store.Update(t.Context(), key, store.WaitItem(record, item.Rev))
		require.NoError(t, err)
	}
	w.start("done", "deploy")
	ended := w.link(ann, "done", "w2-1", "")
	require.Equal(t, http.StatusOK, w.press(ended, "deny", "").Code)
	decides := w.link(ann, "trip", "w2-1", "")

	require.NotContains(t, opened(t, server.URL+"/control"), "<form", "a page with a script would have been sent by this browser")

	kinds := []struct {
		path, shows string
		times       int
	}{
		{decides, `<button name="decision" value="approve">`, 100},
		{w.link(ann, "trip", "w2-1", `{"decisions":["deny"]}`), `<button name="decision" value="deny">`, 5},
		{w.link(ann, "more", "w2-1", ""), "This cannot be decided by a link", 5},
		{ended, "<h1>Denied</h1>", 5},
	}
	before := w.dump()
	loads := make(chan func())
	var browsers sync.WaitGroup
	for range 2 {
		browsers.Go(func() {
			for load := range loads {
				load()
			}
		})
	}
	all := int64(0)
	for _, kind := range kinds {
		all += int64(kind.times)
		for range kind.times {
			loads <- func() {
				if page := opened(t, server.URL+kind.path); !strings.Contains(page, kind.shows) {
					t.Errorf("the browser shows %s", page)
				}
			}
		}
	}
	close(loads)
	browsers.Wait()
	require.GreaterOrEqual(t, gets.Load(), all)
	require.Equal(t, before, w.dump(), "nothing was decided")

	out := w.press(decides, "approve", "")
	require.Equal(t, http.StatusOK, out.Code)
	require.Contains(t, out.Body.String(), "<h1>Approved</h1>")
	require.Contains(t, opened(t, server.URL+decides), "<h1>Approved</h1>")
}
