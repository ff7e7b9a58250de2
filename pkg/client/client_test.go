package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestRoutes has each route of the one table reached by the method for it, under
// a path in front of it as a gateway's stage is.
func TestRoutes(t *testing.T) {
	t.Parallel()
	var reached []string
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.Method+" /stage"+r.Path, func(w http.ResponseWriter, req *http.Request) {
			reached = append(reached, r.OperationID)
			if req.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", client.MediaJSON)
			_, _ = w.Write([]byte(anything))
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{URL: server.URL + "/stage/", Token: token})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.Equal(t, server.URL+"/stage", c.URL())
	methods := calls(c, "s-1")
	for _, r := range routes() {
		call, ok := methods[r.OperationID]
		require.True(t, ok, "calls (pkg/client/transport_test.go) has no %q for %s %s. If the client has no method for it yet: pkg/client/verbs.go or pages.go; docs/design/add-a-verb.md has the rest",
			r.OperationID, r.Method, r.Path)
		require.NoError(t, call(t.Context()), r.OperationID)
		require.Equal(t, r.OperationID, reached[len(reached)-1])
	}
	require.Len(t, methods, len(routes()), "calls (pkg/client/transport_test.go) has what is no route (pkg/httpapi/routes.go)")
}

func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{says(200, anything)}}
	c := over(t, s)
	ctx := t.Context()
	approved := true
	_, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{SessionID: "s", Agent: "a", Input: client.Text("<hi>")}, IdempotencyKey: "mine", Wait: 3 * time.Second})
	require.NoError(t, err)
	_, err = c.Submit(ctx, client.SubmitParams{SessionID: "s", Answer: client.SubmitRequest{WaitID: "w2-1", Kind: session.AnswerApproval, Approved: &approved}})
	require.NoError(t, err)
	_, err = c.Sessions(ctx, client.SessionsParams{Page: client.Page{Limit: 7, Cursor: "a&b"}, Status: session.StatusRunning})
	require.NoError(t, err)
	_, err = c.Entries(ctx, "s", client.EntriesParams{After: 4, Wait: 2 * time.Second})
	require.NoError(t, err)

	for i, send := range []func() error{
		func() error {
			_, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{Agent: "a"}, Wait: time.Second, CancelOnDisconnect: true})
			return err
		},
		func() error {
			_, err := c.Submit(ctx, client.SubmitParams{SessionID: "s", Wait: time.Second, CancelOnDisconnect: true})
			return err
		},
		func() error {
			_, err := c.Resume(ctx, client.ResumeParams{SessionID: "s", Wait: time.Second, CancelOnDisconnect: true})
			return err
		},
		func() error {
			_, err := c.Send(ctx, client.SendParams{SessionID: "s", Wait: time.Second, CancelOnDisconnect: true})
			return err
		},
		func() error {
			_, err := c.Resume(ctx, client.ResumeParams{SessionID: "s", CancelOnDisconnect: true})
			return err
		},
	} {
		require.NoError(t, send())
		require.Equal(t, []string{"wait=1, cancel-on-disconnect", "wait=1, cancel-on-disconnect", "wait=1, cancel-on-disconnect", "wait=1, cancel-on-disconnect", ""}[i],
			s.requests[len(s.requests)-1].Header.Get(client.HeaderPrefer))
	}

	start := s.requests[0]
	require.Equal(t, "mine", start.Header.Get(client.HeaderIdempotencyKey))
	require.Equal(t, "wait=3", start.Header.Get(client.HeaderPrefer))
	require.Equal(t, client.MediaJSON, start.Header.Get("Content-Type"))
	require.JSONEq(t, `{"sessionId": "s", "agent": "a", "input": "<hi>"}`, s.bodies[0])
	require.JSONEq(t, `{"waitId": "w2-1", "kind": "approval-response", "approved": true}`, s.bodies[1])
	require.Equal(t, "cursor=a%26b&limit=7&status=running", s.requests[2].URL.RawQuery)
	require.Empty(t, s.requests[2].Header.Get("Content-Type"))
	require.Equal(t, "after=4&wait=2", s.requests[3].URL.RawQuery)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, token string
		plain      bool
		refused    string
	}{
		{url: "https://api.example.com/prod", token: token},
		{url: "http://127.0.0.1:8420/", token: token},
		{url: "http://localhost:8420", token: token},
		{url: "http://[::1]:8420", token: token},
		{url: "http://127.8.9.1", token: token},
		{url: "http://api.example.com"},
		{url: "http://api.example.com", token: token, plain: true},
		{url: "http://api.example.com", token: token, refused: "not encrypted"},
		{url: "http://localhost.example.com", token: token, refused: "not encrypted"},
		{url: "http://127.0.0.1.example.com", token: token, refused: "not encrypted"},
		{url: "http://0.0.0.0:8420", token: token, refused: "not encrypted"},
		{url: "http://10.0.0.1:8420", token: token, refused: "not encrypted"},
		{url: "", refused: "https://host"},
		{url: "127.0.0.1:8420", refused: "https://host"},
		{url: "localhost:8420", refused: "https://host"},
		{url: "ftp://example.com", refused: "https://host"},
		{url: "https://", refused: "https://host"},
		{url: "https://ada:" + token + "@example.com", refused: "password"},
		{url: "https://ada:" + token + "@exa mple.com", refused: "cannot be read"},
		{url: "https://example.com?x=1", refused: "behind a ?"},
		{url: "https://example.com#x", refused: "behind a ?"},
		{url: "https://example.com", token: "two words", refused: "token"},
		{url: "https://example.com", token: "line\n", refused: "token"},
		{url: "https://example.com", token: "schlüssel", refused: "token"},
	} {
		made, err := client.New(client.Config{URL: c.url, Token: c.token, AllowPlainHTTP: c.plain})
		if c.refused == "" {
			require.NoError(t, err, c.url)
			require.NotNil(t, made)
			continue
		}
		require.ErrorIs(t, err, client.ErrInvalidConfig, c.url)
		require.ErrorContains(t, err, c.refused, c.url)
		require.NotContains(t, err.Error(), token)
		if c.token != "" {
			require.NotContains(t, err.Error(), c.token)
		}
	}
}

// TestTokenIsNotShown looks for the token everywhere a program might print something.
func TestTokenIsNotShown(t *testing.T) {
	t.Parallel()
	echo := `{"type": "x", "title": "bad ` + token + `", "status": 401, "code": "unauthenticated", "detail": "the token ` + token + ` is not known"}`
	for name, a := range map[string]answer{
		"no connection": refusesConnection,
		"echo":          says(401, echo),
		"gateway":       says(403, `{"message": "no such key `+token+`"}`, "Content-Type", client.MediaJSON),
		"not json":      says(200, "Bearer "+token, "Content-Type", "text/plain"),
		"redirect":      says(307, "", "Location", "https://elsewhere.example.com/?token="+token),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := client.New(client.Config{URL: address, Token: token, HTTP: &http.Client{Transport: &script{answers: []answer{a}}}, Tries: 1})
			require.NoError(t, err)
			_, err = c.Session(t.Context(), "s", 0)
			require.Error(t, err)
			for _, shown := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, err), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c)} {
				require.NotContains(t, shown, token)
			}
		})
	}
}

// TestRedirect has a server send the client, with its token, to another one.
func TestRedirect(t *testing.T) {
	t.Parallel()
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.RedirectHandler(other.URL+"/x", http.StatusTemporaryRedirect))
	t.Cleanup(first.Close)
	for _, given := range []*http.Client{nil, {CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}} {
		c, err := client.New(client.Config{URL: first.URL, Token: token, HTTP: given})
		require.NoError(t, err)
		for name, call := range calls(c, "s-1") {
			err := call(t.Context())
			require.ErrorIs(t, err, client.ErrRedirect, name)
			require.ErrorContains(t, err, other.URL)
		}
		c.Close()
	}
	require.False(t, asked)
}

// TestIDs: no method of a session sends an id that is none.
func TestIDs(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{says(200, anything)}}
	c := over(t, s)
	for _, id := range []string{"", ".", "..", "a/b", "a?b", "a b", "%2e%2e", "ä"} {
		methods, asked := calls(c, id), 0
		for _, r := range routes() {
			if strings.Contains(r.Path, "{id}") {
				require.ErrorIs(t, methods[r.OperationID](t.Context()), session.ErrInvalidID, "%s: %q", r.OperationID, id)
				asked++
			}
		}
		require.Greater(t, asked, 5)
	}
	require.Empty(t, s.requests, "an id that is none is not sent")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	problem := `{"type": "urn:adjourn:problem:already_answered", "title": "Conflict", "status": 409, "detail": "the first answer counts",
		"code": "already_answered", "sessionId": "s", "sessionStatus": "suspended", "answer": {"wait": "w2-1", "kind": "reply", "who": "bob", "when": "2026-01-02T03:04:05Z", "from": "http"}}`
	for name, c := range map[string]struct {
		answer answer
		code   string
		text   string
	}{
		"problem":     {says(409, problem), "already_answered", "session s: the first answer counts"},
		"request id":  {says(500, `{"code": "internal", "detail": "internal error", "requestId": "r-9"}`), "internal", "internal error (request r-9)"},
		"gateway":     {says(401, `{"message":"Unauthorized"}`, "Content-Type", "application/json"), "unauthenticated", "the server does not know this token (expired? of another issuer or audience?)"},
		"proxy":       {says(401, "<html>no", "Content-Type", "text/html"), "unauthenticated", "the server does not know this token (expired? of another issuer or audience?)"},
		"page":        {says(403, "<html>go away", "Content-Type", "text/html"), "forbidden", "the server answered 403 Forbidden"},
		"nothing":     {says(404, "", "Content-Type", ""), "route_not_found", "the server answered 404 Not Found"},
		"half":        {says(413, `{"code": "x`), "body_too_large", "the server answered 413 Request Entity Too Large"},
		"no code":     {says(418, `{"detail": "x"}`), "unexpected_status", "the server answered 418 I'm a teapot"},
		"no such":     {says(599, ``), "unexpected_status", "the server answered 599"},
		"other media": {says(409, problem, "Content-Type", "text/plain"), "unexpected_status", "the server answered 409 Conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := over(t, &script{answers: []answer{c.answer}}).Session(t.Context(), "s", 0)
			var refused *client.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.code, refused.Problem.Code)
			require.Equal(t, c.text, err.Error())
		})
	}
	_, err := over(t, &script{answers: []answer{says(409, problem)}}).Session(t.Context(), "s", 0)
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 409, refused.Status)
	require.Equal(t, session.StatusSuspended, refused.Problem.SessionStatus)
	require.Equal(t, "bob", refused.Problem.Answer.Who)
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer answer
		want   error
	}{
		"a web page":  {says(200, "<html>", "Content-Type", "text/html; charset=utf-8"), client.ErrNotAdjourn},
		"nothing":     {says(204, "", "Content-Type", ""), client.ErrNotAdjourn},
		"half":        {says(200, `{"id":`), client.ErrNotAdjourn},
		"wrong types": {says(200, `{"id": 7}`), client.ErrNotAdjourn},
		"too large":   {says(200, `{"id": "`+strings.Repeat("x", 1000)+`"}`), client.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{answers: []answer{c.answer}}
			made, err := client.New(client.Config{URL: address, HTTP: &http.Client{Transport: s}, MaxResponse: 1000})
			require.NoError(t, err)
			_, err = made.Session(t.Context(), "s", 0)
			require.ErrorIs(t, err, c.want)
			require.Len(t, s.requests, 1, "asking again does not help")
		})
	}
	s := &script{answers: []answer{says(200, `{"id": "s", "news": true}`)}}
	_, err := over(t, s).Session(t.Context(), "s", 0)
	require.NoError(t, err, "a newer server may say more")
	require.Equal(t, "Bearer "+token, s.requests[0].Header.Get("Authorization"))
}

func TestNoToken(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{says(200, `{}`), says(401, `{"message":"Unauthorized"}`, "Content-Type", client.MediaJSON)}}
	c, err := client.New(client.Config{URL: "http://example.com", HTTP: &http.Client{Transport: s}})
	require.NoError(t, err)
	_, err = c.Inbox(context.Background(), client.InboxParams{})
	require.NoError(t, err)
	require.Empty(t, s.requests[0].Header.Values("Authorization"))
	_, err = c.Inbox(context.Background(), client.InboxParams{})
	require.EqualError(t, err, "the server asks for a token")
}
