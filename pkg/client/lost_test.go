package client_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// losing loses the first answer to every request that changes something: the server
// has carried it out, and nobody hears of it.
type losing struct {
	mu   sync.Mutex
	lost map[string]int
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	key := r.Header.Get(client.HeaderIdempotencyKey)
	if err != nil || key == "" {
		return resp, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[key]++
	if l.lost[key] == 1 {
		_ = resp.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return resp, nil
}

// TestLosesEveryAnswer: a client that loses the first answer to everything it sends
// and repeats it under its key leaves what each request, sent once, would.
func TestLosesEveryAnswer(t *testing.T) {
	t.Parallel()
	url, key, stop, err := serve(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(stop)
	lossy := &losing{lost: map[string]int{}}
	c, err := client.New(client.Config{URL: url, Token: key, HTTP: &http.Client{Transport: lossy}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx, yes := t.Context(), true
	script := "[{calls: [{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}]}, {call: deploy, with: {service: c}}, {call: deploy, with: {service: d}}, {need: first?}, {need: second?}, {say: done}]"
	started, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{Agent: "toy", Input: client.Text(script)}, Wait: 20 * time.Second})
	require.NoError(t, err)
	id, s := started.SessionID, started.Session
	resume := func(r client.ResumeRequest) {
		t.Helper()
		resumed, err := c.Resume(ctx, client.ResumeParams{SessionID: id, Request: r, Wait: 20 * time.Second})
		require.NoError(t, err)
		require.False(t, resumed.Repeated, "it is the first answer")
		s = resumed.Session
	}
	submit := func(a client.SubmitRequest) {
		t.Helper()
		submitted, err := c.Submit(ctx, client.SubmitParams{SessionID: id, Answer: a, Wait: 20 * time.Second})
		require.NoError(t, err)
		require.False(t, submitted.Repeated, "it is the first answer")
		s = submitted.Session
	}
	resume(client.ResumeRequest{CheckpointID: s.CheckpointID, Decisions: &client.Decisions{ApproveAll: true}})
	resume(client.ResumeRequest{Confirmation: &client.Confirmation{WaitID: s.Pause.Pending[0].WaitID, Approved: &yes}})
	submit(client.SubmitRequest{Kind: session.AnswerApproval, ApprovalID: s.Pause.Pending[0].ApprovalID, Approved: &yes})
	resume(client.ResumeRequest{Message: client.Text("one")}) // names nothing: sent again it would answer the second question
	require.Equal(t, "second?", s.Text)
	submit(client.SubmitRequest{Kind: session.AnswerMessage, Message: client.Text("two")})
	require.Equal(t, session.OutcomeCompleted, s.Outcome)
	next, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{SessionID: id, Input: client.Text("[{say: again}]")}, Wait: 20 * time.Second})
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Task)

	require.Equal(t, 6, counted(t, c.AllWaits(ctx, id)))
	require.Equal(t, 7, counted(t, c.AllRuns(ctx, id)))
	require.Equal(t, 1, counted(t, c.AllSessions(ctx, client.SessionsParams{})))
	require.Len(t, lossy.lost, 7)
	for _, n := range lossy.lost {
		require.GreaterOrEqual(t, n, 2)
	}
}
