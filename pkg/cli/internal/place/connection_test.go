package place

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// server answers requests by method and path; the last answer stays.
type server struct {
	answers map[string][]any
	asked   []string
	bodies  []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	route := r.Method + " " + r.URL.Path
	s.asked = append(s.asked, route+"?"+r.URL.RawQuery)
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(body))
	}
	answers := s.answers[route]
	if len(answers) == 0 {
		return nil, errors.New("nobody said what to answer to " + route)
	}
	if len(answers) > 1 {
		s.answers[route] = answers[1:]
	}
	switch a := answers[0].(type) {
	case error:
		return nil, a
	case client.Problem:
		return respond(r, a.Status, client.MediaProblem, a)
	default:
		return respond(r, http.StatusOK, client.MediaJSON, a)
	}
}

func respond(r *http.Request, status int, media string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Request: r, Body: io.NopCloser(strings.NewReader(string(text)))}, err
}

func over(t *testing.T, s *server, told func(*journal.Entry)) *Connection {
	t.Helper()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:8420", HTTP: &http.Client{Transport: s}})
	require.NoError(t, err)
	if told == nil {
		told = func(*journal.Entry) {}
	}
	return newConnection(c, told)
}

func entry(seq int64, kind session.Kind, status session.Status) journal.Entry {
	return journal.Entry{Seq: seq, Kind: kind, Status: status, At: at}
}

// TestDriveAfterAResume: a session that was told to go on looks as if it rested
// until its worker comes, and that is not taken for its answer.
func TestDriveAfterAResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rests := client.Entries{After: 2, Status: session.StatusInterrupted, Resting: true}
		s := &server{answers: map[string][]any{
			"POST /sessions/s/resume": {client.Resumed{SessionID: "s", Continuation: client.ContinuationResumed, After: 2, Session: &client.Session{Version: 2}}},
			"GET /sessions/s/entries": {
				rests, rests,
				client.Entries{Items: []journal.Entry{entry(3, session.KindResumed, session.StatusRunning)}, After: 3, Status: session.StatusRunning},
				client.Entries{Items: []journal.Entry{entry(3, session.KindResumed, session.StatusRunning)}, After: 3, Status: session.StatusRunning},
				client.Entries{Items: []journal.Entry{entry(4, session.KindCompleted, session.StatusCompleted)}, After: 4, Status: session.StatusCompleted, Resting: true},
			},
		}}
		var seen []session.Kind
		e := over(t, s, func(p *journal.Entry) { seen = append(seen, p.Kind) })
		resumed, err := e.Resume(t.Context(), client.ResumeParams{SessionID: "s"})
		require.NoError(t, err)
		require.Equal(t, client.ContinuationResumed, resumed.Continuation)
		require.NoError(t, e.Drive(t.Context(), "s"))
		require.Equal(t, []session.Kind{session.KindResumed, session.KindCompleted}, seen)

		// One that does not go on, though it was told to, rests after all.
		s.answers["GET /sessions/s/entries"] = []any{rests}
		_, err = e.Resume(t.Context(), client.ResumeParams{SessionID: "s"})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, e.Drive(t.Context(), "s"))
		require.InDelta(t, 60, time.Since(began).Seconds(), 1)

		// Who leaves meanwhile is not kept.
		_, err = e.Resume(t.Context(), client.ResumeParams{SessionID: "s"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, e.Drive(ctx, "s"), context.DeadlineExceeded)
	})
}

// TestDriveFromWhereItStands: what came before the command is not told as progress.
func TestDriveFromWhereItStands(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string][]any{
		"GET /sessions/s":         {client.Session{ID: "s", Version: 7}},
		"GET /sessions/s/entries": {client.Entries{After: 7, Resting: true}},
		"POST /sessions":          {client.Started{SessionID: "s", Entry: client.StartEntry{Seq: 8}, Replayed: true}},
	}}
	e := over(t, s, nil)
	require.NoError(t, e.Drive(t.Context(), "s"))
	require.Contains(t, s.asked[1], "after=7&")
	started, err := e.Start(t.Context(), client.StartParams{Request: client.StartRequest{Agent: "toy", Input: client.Text("hi")}})
	require.NoError(t, err)
	require.False(t, started.Replayed, "a repeat of the client's own is none of the caller's")
	require.NoError(t, e.Drive(t.Context(), "s"))
	require.Contains(t, s.asked[3], "after=7&", "the entry of the start is told")
	started, err = e.Start(t.Context(), client.StartParams{IdempotencyKey: "mine"})
	require.NoError(t, err)
	require.True(t, started.Replayed)
	require.NoError(t, e.Close())
}

// TestDriveAfterAnAnswer: what a fast worker wrote before the server replied is told.
func TestDriveAfterAnAnswer(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string][]any{
		"GET /sessions/s":         {client.Session{ID: "s", Version: 2}},
		"GET /sessions/s/entries": {client.Entries{After: 2, Resting: true}},
		"POST /sessions/s/submit": {client.Submitted{Session: &client.Session{Version: 5}}},
		"POST /sessions/s/resume": {client.Resumed{Session: &client.Session{Version: 6}}},
	}}
	e := over(t, s, nil)
	require.NoError(t, e.Drive(t.Context(), "s"))
	_, err := e.Submit(t.Context(), client.SubmitParams{SessionID: "s"})
	require.NoError(t, err)
	_, err = e.Resume(t.Context(), client.ResumeParams{SessionID: "s", Request: client.ResumeRequest{Decisions: &client.Decisions{ApproveAll: true}}})
	require.NoError(t, err)
	require.NoError(t, e.Drive(t.Context(), "s"))
	require.Contains(t, s.asked[len(s.asked)-1], "after=2&")
}

// TestWhole: lists of one session are read to their end, and not for ever.
func TestWhole(t *testing.T) {
	t.Parallel()
	wait := client.Wait{SessionID: "s", WaitID: "w2-1", Kind: session.WaitQuestion, State: session.WaitOpen, Agent: "toy", OpenedAt: at}
	s := &server{answers: map[string][]any{
		"GET /sessions/s/waits":   {client.Waits{Items: []client.Wait{wait}, Cursor: "1"}, client.Waits{Items: []client.Wait{wait}}},
		"GET /sessions/s/entries": {client.Entries{Items: []journal.Entry{entry(1, session.KindStarted, session.StatusRunning)}, After: 1, More: true}, client.Entries{Items: []journal.Entry{entry(2, session.KindStepped, session.StatusRunning)}, After: 2}},
	}}
	e := over(t, s, nil)
	waits, err := e.Waits(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, []client.Wait{wait, wait}, waits)
	entries, err := e.Entries(t.Context(), "s")
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Nil(t, e.Agents())
	_, known := e.Tool("toy", "deploy")
	require.False(t, known)
	s.answers["GET /sessions/s/waits"] = []any{client.Problem{Status: 404, Code: "session_not_found", Detail: "no"}}
	_, err = e.Waits(t.Context(), "s")
	require.Equal(t, client.CodeSessionNotFound, exit.CodeOf(err))
}
