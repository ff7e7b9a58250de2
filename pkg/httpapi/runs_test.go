package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// TestRunsWaited: each run says how long the session had rested before it.
func TestRunsWaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.start("a", "locate")
	w.passed.Store(int64(90 * time.Minute))
	out := w.send(ann, http.MethodPost, "/sessions/a/submit", `{"kind":"client-tool-result","waitId":"w2-1","result":"here"}`)
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	w.drive(key)
	runs := answer[client.Runs](w, http.StatusOK, w.send(ann, http.MethodGet, "/sessions/a/runs", "")).Items
	require.Len(t, runs, 2)
	require.Zero(t, runs[0].WaitedMillis)
	require.Equal(t, (90 * time.Minute).Milliseconds(), runs[1].WaitedMillis)
	page := answer[client.Runs](w, http.StatusOK, w.send(ann, http.MethodGet, "/sessions/a/runs?limit=1", ""))
	page = answer[client.Runs](w, http.StatusOK, w.send(ann, http.MethodGet, "/sessions/a/runs?limit=1&cursor="+page.Cursor, ""))
	require.Equal(t, runs[1], page.Items[0], "also at the beginning of a page")
}
