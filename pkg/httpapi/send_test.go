package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// A message answers a session that waits for one; repeated, it gets the first answer.
func TestSend_answers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := session.Key{Tenant: "acme", ID: "trip"}
	w.start("trip", "where")
	w.drive(key)
	for _, replayed := range []string{"", "true"} {
		out := w.send(ann, http.MethodPost, "/sessions/trip/messages", `{"message":[{"kind":"text","text":"Bern"}]}`, client.HeaderIdempotencyKey, "k")
		sent := answer[client.Sent](w, http.StatusAccepted, out)
		require.Equal(t, client.SendAnswered, sent.Outcome)
		require.Equal(t, client.ContinuationResumed, sent.Continuation)
		require.EqualValues(t, 1, sent.Task)
		require.Equal(t, replayed, out.Header().Get(client.HeaderIdempotencyReplayed))
		require.Equal(t, replayed != "", sent.Replayed)
		require.Equal(t, "/sessions/trip", out.Header().Get("Location"))
	}
	w.drive(key)
	out := w.send(ann, http.MethodPost, "/sessions/trip/messages", `{"message":"Bern"}`, client.HeaderIdempotencyKey, "other")
	require.Equal(t, http.StatusConflict, out.Code)
	require.Contains(t, out.Body.String(), client.CodeSessionEnded)
}

// A message that begins the next turn waits for it where the caller prefers that.
func TestSend_waits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := session.Key{Tenant: "acme", ID: "trip"}
	w.start("trip", "echo")
	w.drive(key)
	queued := answer[client.Sent](w, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions/trip/messages", `{"message":"echo","start":true}`, client.HeaderIdempotencyKey, "k"))
	require.Equal(t, client.SendStarted, queued.Outcome)
	require.Equal(t, session.StatusRunning, queued.Session.Status)
	w.drive(key)
	again := answer[client.Sent](w, http.StatusOK, w.send(ann, http.MethodPost, "/sessions/trip/messages", `{"message":"echo","start":true}`, client.HeaderIdempotencyKey, "k", client.HeaderPrefer, "wait=5"))
	require.Equal(t, queued.Seq, again.Seq)
	require.Equal(t, session.StatusCompleted, again.Session.Status)
}
