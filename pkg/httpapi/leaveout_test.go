package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/httpapi/wire"
)

// TestLeftOut: every answer that shows a wait says what of it could not be sent.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	const most = 8_000
	w := newWorld(t, change{api: func(cfg *httpapi.Config) {
		cfg.Fits = func(_ *http.Request, body []byte) bool { return len(body) <= most }
	}})
	w.start("a", "big")
	shown := []wire.Wait{
		get[wire.Session](w, ann, "/sessions/a").Pause.Pending[0],
		get[wire.Waits](w, ann, "/sessions/a/waits").Items[0],
		get[wire.Waits](w, ann, "/waits").Items[0],
	}
	for _, wait := range shown {
		require.Len(t, wait.LeftOut, 1)
		require.NotEmpty(t, wait.ApprovalID+wait.WaitID)
		require.Greater(t, wait.LeftOut[0].Bytes, int64(4_000))
		require.Equal(t, shown[0].LeftOut, wait.LeftOut)
		if wait.LeftOut[0].At == "/arguments" {
			require.Equal(t, wait.Digest, wait.LeftOut[0].Digest)
		}
	}
	page := get[wire.Entries](w, ann, "/sessions/a/entries")
	require.NotEmpty(t, page.LeftOut)
	require.True(t, page.Resting)
}
