package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// TestOver_request: a handler gets what a server would hand it, once, with the caller's
// key or none.
func TestOver_request(t *testing.T) {
	t.Parallel()
	var keys []string
	var seen *http.Request
	var body string
	c := client.Over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		seen, body, keys = r, string(raw), append(keys, r.Header.Get(client.HeaderIdempotencyKey))
		w.Header().Set("Content-Type", client.MediaProblem)
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Header().Set("Content-Type", "too late")
		w.WriteHeader(http.StatusTeapot) // the first one counts
		_, _ = io.WriteString(w, `{"code": "store_unavailable", "detail": "busy"}`)
	}))
	for _, key := range []string{"", "mine"} {
		_, err := c.Start(t.Context(), client.StartParams{IdempotencyKey: key, Wait: 3 * time.Second, Request: client.StartRequest{Agent: "toy", Input: client.Text("hi")}})
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, http.StatusServiceUnavailable, refused.Status)
		require.Equal(t, "store_unavailable", refused.Problem.Code)
	}
	require.Equal(t, []string{"", "mine"}, keys, "sent once each")
	require.JSONEq(t, `{"agent": "toy", "input": "hi"}`, body)
	require.Equal(t, "wait=3", seen.Header.Get(client.HeaderPrefer))
	require.Equal(t, "/sessions", seen.RequestURI)
	require.Equal(t, int64(len(body)), seen.ContentLength)
	_, err := c.Waits(t.Context(), "s", client.Page{Limit: 2})
	require.Error(t, err)
	require.Equal(t, "/sessions/s/waits", seen.URL.EscapedPath())
	require.Equal(t, "limit=2", seen.URL.RawQuery)
	require.Empty(t, seen.URL.Host)
}

// TestOver_context: a handler that waits sees that its caller left, has no other time
// limit, and has ended when the call returns.
func TestOver_context(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		c := client.Over(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended = true
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := c.Session(ctx, "s", 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, ended)
	})
}

// TestOver_stream: an answer is read while it is written; who stops reading ends it.
func TestOver_stream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wrote, ended := 0, false
		transport := client.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { ended = true }()
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 10)); err != nil {
					return
				}
				wrote++
				time.Sleep(time.Second)
			}
		}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://in-process/stream", nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		_, err = io.ReadFull(resp.Body, make([]byte, 25))
		require.NoError(t, err)
		require.False(t, ended)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, resp.Body.Close(), "twice does no harm")
		require.True(t, ended)
		require.LessOrEqual(t, wrote, 3)
	})
}

// TestOver_large: an answer has no limit.
func TestOver_large(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 65<<20)
	c := client.Over(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", client.MediaJSON)
		_ = json.NewEncoder(w).Encode(client.Session{ID: "s", Text: large})
	}))
	s, err := c.Session(t.Context(), "s", 0)
	require.NoError(t, err)
	require.Len(t, s.Text, len(large))
}
