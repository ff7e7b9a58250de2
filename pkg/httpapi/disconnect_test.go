package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// goes sends a request that waits 20 s, and ends its context with a cause after 3 s.
func (w *world) goes(t *testing.T, cause error, target, body, prefer string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	time.AfterFunc(3*time.Second, func() { end(cause) })
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+ann)
	r.Header.Set("Content-Type", client.MediaJSON)
	r.Header.Set(client.HeaderPrefer, prefer)
	return w.serve(r)
}

const (
	waits   = "wait=20"
	cancels = waits + ", cancel-on-disconnect"
)

// A client that goes away while it waits cancels the task, if it has said so; nothing else does.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	const start, locates = `{"agent":"desk","sessionId":"a","input":"locate"}`, `{"kind":"client-tool-result","toolCallId":"c2-1","result":"here"}`
	for name, c := range map[string]struct {
		before       string // input of a session that rests before
		target, body string
		prefer       string
		cause        error
		hides        bool
		applied      string
		status       session.Status
	}{
		"start":              {target: "/sessions", body: start, prefer: cancels, applied: cancels, status: session.StatusCancelled},
		"in any order":       {target: "/sessions", body: start, prefer: "Cancel-On-Disconnect,wait=20", applied: cancels, status: session.StatusCancelled},
		"submit":             {before: "locate", target: "/sessions/a/submit", body: locates, prefer: cancels, applied: cancels, status: session.StatusCancelled},
		"resume":             {before: "deploy", target: "/sessions/a/resume", body: `{"decisions":{"approve":["w2-1"]}}`, prefer: cancels, applied: cancels, status: session.StatusCancelled},
		"send, an answer":    {before: "where", target: "/sessions/a/messages", body: `{"message":"Bern"}`, prefer: cancels, applied: cancels, status: session.StatusCancelled},
		"send, a next turn":  {before: "echo", target: "/sessions/a/messages", body: `{"message":"locate","start":true}`, prefer: cancels, applied: cancels, status: session.StatusCancelled},
		"not asked for":      {target: "/sessions", body: start, prefer: waits, applied: waits, status: session.StatusRunning},
		"the wait ran out":   {target: "/sessions", body: start, prefer: "wait=2, cancel-on-disconnect", applied: "wait=2, cancel-on-disconnect", status: session.StatusRunning},
		"without a wait":     {target: "/sessions", body: start, prefer: "cancel-on-disconnect", status: session.StatusRunning},
		"the server stops":   {target: "/sessions", body: start, prefer: cancels, cause: runtime.ErrOutOfTime, applied: cancels, status: session.StatusRunning},
		"it cannot be seen":  {target: "/sessions", body: start, prefer: cancels, hides: true, applied: waits, status: session.StatusRunning},
		"a part of it waits": {before: "both", target: "/sessions/a/submit", body: `{"kind":"client-tool-result","waitId":"w2-2","result":"here"}`, prefer: cancels, applied: cancels, status: session.StatusSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bubble(t, change{api: func(cfg *httpapi.Config) { cfg.HidesDisconnects = c.hides }})
				if c.before != "" {
					w.start("a", c.before)
				}
				out := w.goes(t, c.cause, c.target, c.body, c.prefer)
				require.Less(t, out.Code, 300, out.Body.String())
				require.Equal(t, c.applied, out.Header().Get(client.HeaderPreferenceApplied))
				require.Equal(t, c.status, w.newest("a").Status)
				if c.status == session.StatusCancelled {
					require.Equal(t, "the client went away", w.newest("a").Signal.Reason)
					require.Equal(t, "ann", w.newest("a").Signal.Who)
				}
			})
		})
	}
}

// Who only says something to an agent that works does not end its task by going away.
func TestDisconnect_of_a_message(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bubble(t)
		require.Equal(t, http.StatusAccepted, w.send(ann, http.MethodPost, "/sessions", `{"agent":"desk","sessionId":"a","input":"locate"}`).Code)
		sent := answer[client.Sent](w, http.StatusAccepted, w.goes(t, nil, "/sessions/a/messages", `{"message":"locate"}`, cancels))
		require.Equal(t, client.SendQueued, sent.Outcome)
		require.Equal(t, session.StatusRunning, w.newest("a").Status)
	})
}

// newest is the last entry of a session of acme.
func (w *world) newest(id string) (newest journal.Entry) {
	w.Helper()
	for e, err := range w.store.Entries(context.Background(), session.Key{Tenant: "acme", ID: id}, 0) {
		require.NoError(w, err)
		newest = e
	}
	return newest
}
