package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

type deployIn struct {
	Service string `json:"service"`
}

// registry has an agent that follows scripts and asks before it deploys.
func registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{
		Models: agent.Models{"scripted": func(context.Context, string, func(string) string) (llm.Model, error) { return lab.Model(), nil }},
		Agents: []agent.Agent{{Name: "toy", Model: "scripted:toy", Tools: []tool.Tool{
			tool.Define(tool.Spec[deployIn]{Name: "deploy", Approve: tool.Always[deployIn]},
				func(_ context.Context, _ *tool.Call, in deployIn) (string, error) {
					return "deployed " + in.Service, nil
				}),
		}}},
	})
}

// serve puts the real handler in front of the embedded engine, with its worker.
// It returns the URL, and a key the server knows.
func serve(dir string) (url, key string, stop func(), err error) {
	handler, key, end, err := handle(dir)
	if err != nil {
		return "", "", nil, err
	}
	server := httptest.NewServer(handler)
	return server.URL, key, func() {
		server.Close()
		end()
	}, nil
}

// handle is serve without a server.
func handle(dir string) (handler http.Handler, key string, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	a, err := embedded.Open(ctx, embedded.Config{Registry: registry, Data: filepath.Join(dir, "adjourn.db"), Env: func(string) string { return "" }})
	if err != nil {
		cancel()
		return nil, "", nil, err
	}
	keys := filepath.Join(dir, "api-keys")
	if key, err = httpapi.NewAPIKey(keys, "ada", ""); err != nil {
		cancel()
		return nil, "", nil, err
	}
	authenticate, err := httpapi.APIKeys(keys)
	if err != nil {
		cancel()
		return nil, "", nil, err
	}
	handler, err = httpapi.New(httpapi.Config{Runtime: a.Runtime, Authenticate: authenticate})
	if err != nil {
		cancel()
		return nil, "", nil, err
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		_ = a.Runtime.Work(ctx, a.Queue(), runtime.WorkParams{}) // it ends with ctx
	}()
	return handler, key, func() {
		cancel()
		<-worked
		_ = a.Close() // the test is over
	}, nil
}

// withToken lets requests to a handler in as those of a key.
func withToken(next http.Handler, key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+key)
		next.ServeHTTP(w, r)
	})
}

// TestRealHandler: every verb and every list, through a socket and in process.
func TestRealHandler(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		url, key, stop, err := serve(t.TempDir())
		require.NoError(t, err)
		t.Cleanup(stop)
		c, err := client.New(client.Config{URL: url, Token: key})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		useAll(t, c)
		stranger, err := client.New(client.Config{URL: url, Token: "adj_wrong"})
		require.NoError(t, err)
		t.Cleanup(stranger.Close)
		_, err = stranger.Session(t.Context(), "s", 0)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, codes.Unauthenticated, refused.Problem.Code)
	})
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		handler, key, stop, err := handle(t.TempDir())
		require.NoError(t, err)
		t.Cleanup(stop)
		useAll(t, client.Over(withToken(handler, key)))
	})
}

// useAll uses every method of a client on a session.
func useAll(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()

	script := "[{calls: [{call: deploy, with: {service: a}}, {call: deploy, with: {service: b}}]}, {need: anything else?}, {say: done}]"
	start := client.StartParams{Request: client.StartRequest{SessionID: "s", Agent: "toy", Input: client.Text(script)}, IdempotencyKey: "k", Wait: 20 * time.Second}
	started, err := c.Start(ctx, start)
	require.NoError(t, err)
	require.Equal(t, session.OutcomePaused, started.Session.Outcome)
	again, err := c.Start(ctx, start)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, started.Entry, again.Entry)

	// One approval is answered, the other one decided.
	pending := started.Session.Pause.Pending
	require.Len(t, pending, 2)
	yes, no := true, false
	answer := client.SubmitRequest{WaitID: pending[0].WaitID, Kind: session.AnswerApproval, ToolCallID: pending[0].CallID, ApprovalID: pending[0].ApprovalID, Approved: &yes}
	submitted, err := c.Submit(ctx, client.SubmitParams{SessionID: "s", Answer: answer})
	require.NoError(t, err)
	require.Equal(t, client.ContinuationWaiting, submitted.Continuation)
	require.Equal(t, "ada", submitted.Answer.Who)
	repeated, err := c.Submit(ctx, client.SubmitParams{SessionID: "s", Answer: answer})
	require.NoError(t, err)
	require.True(t, repeated.Repeated)
	answer.Approved = &no
	_, err = c.Submit(ctx, client.SubmitParams{SessionID: "s", Answer: answer})
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 409, refused.Status)
	require.Equal(t, string(runtime.CodeAlreadyAnswered), refused.Problem.Code)
	require.True(t, *refused.Problem.Answer.Approved)

	resumed, err := c.Resume(ctx, client.ResumeParams{
		SessionID: "s", Wait: 20 * time.Second,
		Request: client.ResumeRequest{Decisions: &client.Decisions{Approve: []string{pending[0].WaitID, pending[1].WaitID}}},
	})
	require.NoError(t, err)
	require.Equal(t, "anything else?", resumed.Session.Text)
	word := "no"
	resumed, err = c.Resume(ctx, client.ResumeParams{
		SessionID: "s", Wait: 20 * time.Second, Request: client.ResumeRequest{CheckpointID: resumed.Session.CheckpointID, Message: client.Text(word)},
	})
	require.NoError(t, err)
	require.Equal(t, session.OutcomeCompleted, resumed.Session.Outcome)

	s, err := c.Session(ctx, "s", time.Second)
	require.NoError(t, err)
	require.Equal(t, session.StatusCompleted, s.Status)
	var seqs []int64
	for e, err := range c.Follow(ctx, "s", 0) {
		require.NoError(t, err)
		seqs = append(seqs, e.Seq)
	}
	require.Len(t, seqs, int(s.Version), "a session that rests is followed to where it rests")
	require.Equal(t, int(s.Version), counted(t, c.Journal(ctx, "s", 0)))
	require.Equal(t, int(s.Version), counted(t, c.AllCheckpoints(ctx, "s")))
	require.Equal(t, 3, counted(t, c.AllWaits(ctx, "s")))
	require.Equal(t, 3, counted(t, c.AllRuns(ctx, "s")))
	require.Positive(t, counted(t, c.AllMessages(ctx, "s")))
	require.Zero(t, counted(t, c.AllInbox(ctx, client.InboxParams{})))
	require.Equal(t, 1, counted(t, c.AllSessions(ctx, client.SessionsParams{Status: session.StatusCompleted})))
	page, err := c.Waits(ctx, "s", client.Page{Limit: 2})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	page, err = c.Waits(ctx, "s", client.Page{Limit: 2, Cursor: page.Cursor})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.Empty(t, page.Cursor)
	document, err := c.OpenAPI(ctx)
	require.NoError(t, err)
	var openapi struct {
		OpenAPI string `json:"openapi"`
	}
	require.NoError(t, json.Unmarshal(document, &openapi))
	require.Regexp(t, `^3\.1`, openapi.OpenAPI)

	_, err = c.Session(ctx, "nobody", 0)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, string(runtime.CodeSessionNotFound), refused.Problem.Code)
}

// TestFollowWhileItRuns starts to follow before there is anything to see.
func TestFollowWhileItRuns(t *testing.T) {
	t.Parallel()
	url, key, stop, err := serve(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(stop)
	c, err := client.New(client.Config{URL: url, Token: key})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	started, err := c.Start(t.Context(), client.StartParams{Request: client.StartRequest{Agent: "toy", Input: client.Text("[{fail: overloaded, after: 1s}, {call: deploy, with: {service: 1}}, {say: done}]")}})
	require.NoError(t, err)
	var kinds []session.Kind
	for e, err := range c.Follow(t.Context(), started.SessionID, started.Entry.Seq) {
		require.NoError(t, err)
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, session.KindCompleted, kinds[len(kinds)-1])
	require.Greater(t, len(kinds), 2)
}
