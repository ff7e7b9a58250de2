package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/cli/internal/remote"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

var (
	key = session.Key{Tenant: session.DefaultTenant, ID: "s"}
	at  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

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
	case wire.Problem:
		return respond(r, a.Status, wire.MediaProblem, a)
	default:
		return respond(r, http.StatusOK, wire.MediaJSON, a)
	}
}

func respond(r *http.Request, status int, media string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Request: r, Body: io.NopCloser(strings.NewReader(string(text)))}, err
}

func over(t *testing.T, s *server, told func(session.Key, runtime.Progress)) *remote.Engine {
	t.Helper()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:8420", HTTP: &http.Client{Transport: s}})
	require.NoError(t, err)
	e, err := remote.New(remote.Config{Client: c, OnEntry: told})
	require.NoError(t, err)
	return e
}

func TestNew(t *testing.T) {
	t.Parallel()
	_, err := remote.New(remote.Config{})
	require.Error(t, err)
}

func entry(seq int64, kind session.Kind, status session.Status) journal.Entry {
	return journal.Entry{Seq: seq, Kind: kind, Status: status, At: at}
}

// TestDriveAfterAResume: a session that was told to go on looks as if it rested
// until its worker comes, and that is not taken for its answer.
func TestDriveAfterAResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rests := wire.Entries{After: 2, Status: session.StatusInterrupted, Resting: true}
		s := &server{answers: map[string][]any{
			"POST /sessions/s/resume": {wire.Resumed{SessionID: "s", Continuation: wire.ContinuationResumed, After: 2, Session: &wire.Session{Version: 2}}},
			"GET /sessions/s/entries": {
				rests, rests,
				wire.Entries{Items: []journal.Entry{entry(3, session.KindResumed, session.StatusRunning)}, After: 3, Status: session.StatusRunning},
				wire.Entries{Items: []journal.Entry{entry(3, session.KindResumed, session.StatusRunning)}, After: 3, Status: session.StatusRunning},
				wire.Entries{Items: []journal.Entry{entry(4, session.KindCompleted, session.StatusCompleted)}, After: 4, Status: session.StatusCompleted, Resting: true},
			},
		}}
		var seen []session.Kind
		e := over(t, s, func(k session.Key, p runtime.Progress) {
			require.Equal(t, key, k)
			seen = append(seen, p.Kind)
		})
		resumed, err := e.Resume(t.Context(), runtime.ResumeParams{Key: key, Mode: runtime.ResumeContinue})
		require.NoError(t, err)
		require.Equal(t, runtime.Resumed{Continuation: runtime.ContinuationResumed, After: 2}, resumed)
		require.NoError(t, e.Drive(t.Context(), key))
		require.Equal(t, []session.Kind{session.KindResumed, session.KindCompleted}, seen)

		// One that does not go on, though it was told to, rests after all.
		s.answers["GET /sessions/s/entries"] = []any{rests}
		_, err = e.Resume(t.Context(), runtime.ResumeParams{Key: key, Mode: runtime.ResumeContinue})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, e.Drive(t.Context(), key))
		require.InDelta(t, 60, time.Since(began).Seconds(), 1)

		// Who leaves meanwhile is not kept.
		_, err = e.Resume(t.Context(), runtime.ResumeParams{Key: key, Mode: runtime.ResumeContinue})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, e.Drive(ctx, key), context.DeadlineExceeded)
	})
}

// TestDriveFromWhereItStands: what came before the command is not told as progress.
func TestDriveFromWhereItStands(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string][]any{
		"GET /sessions/s":         {wire.Session{ID: "s", Version: 7}},
		"GET /sessions/s/entries": {wire.Entries{After: 7, Resting: true}},
		"POST /sessions":          {wire.Started{SessionID: "s", Entry: wire.StartEntry{Seq: 8}, Replayed: true}},
	}}
	e := over(t, s, nil)
	require.NoError(t, e.Drive(t.Context(), key))
	require.Contains(t, s.asked[1], "after=7&")
	started, err := e.Start(t.Context(), runtime.StartParams{Key: key, Agent: "toy", Input: llm.TextParts("hi")})
	require.NoError(t, err)
	require.False(t, started.Replayed, "a repeat of the client's own is none of the caller's")
	require.NoError(t, e.Drive(t.Context(), key))
	require.Contains(t, s.asked[3], "after=7&", "the entry of the start is told")
	started, err = e.Start(t.Context(), runtime.StartParams{Key: key, IdempotencyKey: "mine"})
	require.NoError(t, err)
	require.True(t, started.Replayed)
	require.NoError(t, e.Close())
}

// TestDriveAfterAnAnswer: what a fast worker wrote before the server replied is told.
func TestDriveAfterAnAnswer(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string][]any{
		"GET /sessions/s":         {wire.Session{ID: "s", Version: 2}},
		"GET /sessions/s/entries": {wire.Entries{After: 2, Resting: true}},
		"POST /sessions/s/submit": {wire.Submitted{Session: &wire.Session{Version: 5}}},
		"POST /sessions/s/resume": {wire.Resumed{Session: &wire.Session{Version: 6}}},
	}}
	e := over(t, s, nil)
	require.NoError(t, e.Drive(t.Context(), key))
	_, err := e.Submit(t.Context(), runtime.SubmitParams{Key: key})
	require.NoError(t, err)
	_, err = e.Decide(t.Context(), runtime.DecideParams{Key: key, ApproveAll: true})
	require.NoError(t, err)
	require.NoError(t, e.Drive(t.Context(), key))
	require.Contains(t, s.asked[len(s.asked)-1], "after=2&")
}

// TestVerbs has each verb's parameters arrive on the other side.
func TestVerbs(t *testing.T) {
	t.Parallel()
	wait := wire.Wait{SessionID: "s", WaitID: "w2-1", Kind: session.WaitApproval, CallID: "c2-1", ApprovalID: "n", Tool: "deploy", OpenedAt: at}
	answer := session.Answer{Wait: "w2-1", Kind: session.AnswerApproval, Who: "ada", When: at, From: "http"}
	s := &server{answers: map[string][]any{
		"POST /sessions/s/submit": {wire.Submitted{Answer: answer, Continuation: wire.ContinuationWaiting, Open: []wire.Wait{wait}, Repeated: true, Session: &wire.Session{Version: 3}}},
		"POST /sessions/s/resume": {wire.Resumed{Continuation: wire.ContinuationWaiting, Open: []wire.Wait{wait}}},
	}}
	e := over(t, s, nil)
	yes, text := true, "words"
	submitted, err := e.Submit(t.Context(), runtime.SubmitParams{Key: key, HoldResume: true, Answer: session.Answer{
		Wait: "w2-1", Kind: session.AnswerApproval, ToolCallID: "c2-1", ApprovalID: "n", Approved: &yes, Reason: "why", EditedInput: json.RawMessage(`{}`),
	}})
	require.NoError(t, err)
	require.Equal(t, runtime.Submitted{Answer: answer, Continuation: runtime.ContinuationWaiting, Open: []session.Wait{wait.Wait()}, Repeated: true}, submitted)
	_, err = e.Submit(t.Context(), runtime.SubmitParams{Key: key, Answer: session.Answer{Kind: session.AnswerReply, QuestionID: "q", Text: &text, Selected: []string{}}})
	require.NoError(t, err)
	_, err = e.Resume(t.Context(), runtime.ResumeParams{Key: key, Mode: runtime.ResumeWithMessage, Checkpoint: "cp", Message: llm.TextParts("go")})
	require.NoError(t, err)
	_, err = e.Resume(t.Context(), runtime.ResumeParams{Key: key, Mode: runtime.ResumeWithConfirmation, Checkpoint: "cp", Confirmation: runtime.Confirmation{Reason: "no"}})
	require.NoError(t, err)
	_, err = e.Decide(t.Context(), runtime.DecideParams{
		Key: key, Checkpoint: "cp", Approve: []string{"a"}, Reject: []string{"b"}, Reason: "r", EditedInput: map[string]json.RawMessage{"a": json.RawMessage(`1`)},
	})
	require.NoError(t, err)
	for i, want := range []string{
		`{"waitId":"w2-1","kind":"approval-response","toolCallId":"c2-1","approvalId":"n","approved":true,"reason":"why","editedInput":{},"autoResume":false}`,
		`{"kind":"reply","id":"q","selected":[],"text":"words"}`,
		`{"mode":"with_message","checkpointId":"cp","message":"go"}`,
		`{"mode":"with_confirmation","checkpointId":"cp","confirmation":{"approved":false,"reason":"no"}}`,
		`{"mode":"with_decisions","checkpointId":"cp","decisions":{"approve":["a"],"reject":["b"],"reason":"r","editedInput":{"a":1}}}`,
	} {
		require.JSONEq(t, want, s.bodies[i])
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	wait := wire.Wait{SessionID: "s", WaitID: "w2-1", Kind: session.WaitQuestion, State: session.WaitOpen, Agent: "toy", OpenedAt: at}
	s := &server{answers: map[string][]any{
		"GET /sessions/s":         {wire.Session{ID: "s", Agent: "toy", Status: session.StatusCompleted, Outcome: session.OutcomeCompleted, Text: "bye", Step: 3, CheckpointID: "cp"}},
		"GET /sessions/s/waits":   {wire.Waits{Items: []wire.Wait{wait}, Cursor: "1"}, wire.Waits{Items: []wire.Wait{wait}}},
		"GET /sessions/s/entries": {wire.Entries{Items: []journal.Entry{entry(1, session.KindStarted, session.StatusRunning)}, After: 1, More: true}, wire.Entries{Items: []journal.Entry{entry(2, session.KindStepped, session.StatusRunning)}, After: 2}},
		"GET /sessions":           {wire.Sessions{Items: []wire.Summary{{ID: "s", Agent: "toy", Status: session.StatusRunning, Task: 2, Version: 9, UpdatedAt: at}}, Cursor: "next"}},
		"GET /waits":              {wire.Waits{Items: []wire.Wait{wait}, Cursor: "next"}},
	}}
	e := over(t, s, nil)
	ctx := t.Context()
	m, err := e.Manifest(ctx, key)
	require.NoError(t, err)
	require.Equal(t, session.OutcomeCompleted, m.Outcome)
	require.Equal(t, "bye", m.FinalMessage)
	records, err := e.Waits(ctx, key)
	require.NoError(t, err)
	require.Equal(t, []journal.WaitRecord{wait.Record(), wait.Record()}, records, "all pages")
	entries, err := e.Journal(ctx, key)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	sessions, err := e.Sessions(ctx, runtime.SessionsParams{Tenant: "default", Status: session.StatusRunning, Limit: 5, Cursor: "c"})
	require.NoError(t, err)
	require.Equal(t, runtime.SessionsPage{Cursor: "next", Heads: []journal.Head{{Key: key, Agent: "toy", Status: session.StatusRunning, Task: 2, StatusSeq: 9, UpdatedAt: at}}}, sessions)
	require.Contains(t, s.asked, "GET /sessions?cursor=c&limit=5&status=running")
	inbox, err := e.Inbox(ctx, runtime.InboxParams{Tenant: "default", Limit: 5})
	require.NoError(t, err)
	require.Equal(t, runtime.InboxPage{Cursor: "next", Items: []runtime.InboxItem{{Key: key, Record: wait.Record()}}}, inbox)
	require.Nil(t, e.Agents())
	_, known := e.Tool("toy", "deploy")
	require.False(t, known)
}

// TestRefusals: what a server says is told in the runtime's words, and what keeps
// it from saying anything too.
func TestRefusals(t *testing.T) {
	t.Parallel()
	yes := true
	answer := &session.Answer{Wait: "w2-1", Kind: session.AnswerApproval, Approved: &yes, Who: "bob", When: at}
	problem := wire.Problem{Status: 409, Code: "already_answered", Detail: "bob was first", SessionID: "s", SessionStatus: session.StatusSuspended, Answer: answer}
	for name, c := range map[string]struct {
		answer any
		want   runtime.Error
		text   string
	}{
		"problem":       {problem, runtime.Error{Code: runtime.CodeAlreadyAnswered, Session: "s", Status: session.StatusSuspended, Answer: answer}, "session s: bob was first"},
		"request id":    {wire.Problem{Status: 500, Code: "internal", Detail: "oops", RequestID: "r1"}, runtime.Error{Code: runtime.CodeInternal}, "oops (request r1)"},
		"no server":     {&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, runtime.Error{Code: remote.CodeUnreachable, Session: "s"}, ""},
		"not an answer": {"text", runtime.Error{Code: remote.CodeUnexpected, Session: "s"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := map[string][]any{}
				for _, route := range []string{"GET /sessions/s", "GET /sessions/s/waits", "GET /sessions/s/entries", "POST /sessions", "POST /sessions/s/submit", "POST /sessions/s/resume"} {
					answers[route] = []any{c.answer}
				}
				e := over(t, &server{answers: answers}, nil)
				for verb, do := range map[string]func() error{
					"manifest": func() error { _, err := e.Manifest(t.Context(), key); return err },
					"waits":    func() error { _, err := e.Waits(t.Context(), key); return err },
					"journal":  func() error { _, err := e.Journal(t.Context(), key); return err },
					"drive":    func() error { return e.Drive(t.Context(), key) },
					"start":    func() error { _, err := e.Start(t.Context(), runtime.StartParams{Key: key}); return err },
					"submit":   func() error { _, err := e.Submit(t.Context(), runtime.SubmitParams{Key: key}); return err },
					"resume":   func() error { _, err := e.Resume(t.Context(), runtime.ResumeParams{Key: key}); return err },
					"decide":   func() error { _, err := e.Decide(t.Context(), runtime.DecideParams{Key: key}); return err },
				} {
					var refused *runtime.Error
					require.ErrorAs(t, do(), &refused, verb)
					require.Equal(t, c.want.Code, refused.Code, verb)
					require.Equal(t, c.want.Session, refused.Session, verb)
					require.Equal(t, c.want.Status, refused.Status, verb)
					require.Equal(t, c.want.Answer, refused.Answer, verb)
					if c.text != "" {
						require.Equal(t, c.text, refused.Error(), verb)
					}
				}
			})
		})
	}
	e := over(t, &server{}, nil)
	_, err := e.Manifest(t.Context(), session.Key{Tenant: "default", ID: "a/b"})
	require.Equal(t, runtime.CodeInvalidID, runtime.AsError(err).Code)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = over(t, &server{}, nil).Manifest(ctx, key)
	require.ErrorIs(t, err, context.Canceled)
	_, err = over(t, &server{answers: map[string][]any{"GET /sessions": {wire.Problem{Status: 400, Code: "invalid_cursor", Detail: "x"}}}}, nil).Sessions(t.Context(), runtime.SessionsParams{})
	require.Equal(t, runtime.CodeInvalidCursor, runtime.AsError(err).Code)
	_, err = over(t, &server{answers: map[string][]any{"GET /waits": {wire.Problem{Status: 500, Code: "store_unavailable", Detail: "x"}}}}, nil).Inbox(t.Context(), runtime.InboxParams{})
	require.Equal(t, runtime.CodeStoreUnavailable, runtime.AsError(err).Code)
}
