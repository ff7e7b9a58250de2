package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// A worker works on the task: it is told, and the answer is 202, also to a repeated request.
func TestStop_sent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"agent":"desk","sessionId":"trip","input":"echo deploy"}`
	require.Equal(t, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions", body).Code)
	_, err := w.store.Claim(t.Context(), store.ClaimParams{
		Key: session.Key{Tenant: "acme", ID: "trip"}, Mode: store.ClaimTake, Owner: "a worker", Seq: 2, Now: w.now(), Until: w.now().Add(20 * time.Second),
	})
	require.NoError(t, err)
	for _, replayed := range []string{"", "true"} {
		out := w.send(ann, http.MethodPost, "/sessions/trip/cancel", `{"task":1}`, client.HeaderIdempotencyKey, "stop")
		sent := answer[client.Stopped](w, http.StatusAccepted, out)
		require.Equal(t, client.StopSent, sent.Outcome)
		require.Equal(t, session.StatusRunning, sent.Status)
		require.Equal(t, session.StatusRunning, sent.Session.Status)
		require.Equal(t, replayed, out.Header().Get(client.HeaderIdempotencyReplayed))
		require.Equal(t, "/sessions/trip", out.Header().Get("Location"))
	}
	stronger := answer[client.Stopped](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions/trip/abort", ""))
	require.Equal(t, client.StopSent, stronger.Outcome)
}
