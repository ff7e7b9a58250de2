package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// council is the API of an agent whose calls two of Ann, Bob and Cyd must approve, or who has the role
// finance; with the client of each of them, over a socket.
func council(t *testing.T) (*world, func(who string) *client.Client) {
	t.Helper()
	return councilOf(t, tool.Spec[textIn]{Who: []string{"ann", "bob", "cyd"}, Roles: []string{"finance"}, Need: 2, NotRequester: true})
}

// councilOf is the same where a call of pay is approved by another rule.
func councilOf(t *testing.T, spec tool.Spec[textIn]) (*world, func(who string) *client.Client) {
	t.Helper()
	spec.Name, spec.Approve = "pay", tool.Always[textIn]
	people := map[string]httpapi.Caller{"dan": {Tenant: "acme", Who: "dan", Roles: []string{"finance"}}, "eve": {Tenant: "acme", Who: "eve", Roles: []string{"sales"}}, "file": {Tenant: "acme", Who: "bob", OneUser: true}, "open": {Tenant: "acme", Who: "bob", Unverified: true}}
	for _, who := range []string{"ann", "bob", "cyd"} {
		people[who] = httpapi.Caller{Tenant: "acme", Who: who}
	}
	w := newWorld(t, change{runtime: func(cfg *runtime.Config) {
		pay := tool.Define(spec, func(context.Context, *tool.Call, textIn) (string, error) { return "paid", nil })
		var err error
		cfg.Registry, err = agent.NewRegistry(agent.Config{Agents: []agent.Agent{{Name: "desk", Planner: script{}, Tools: []tool.Tool{pay}}}})
		require.NoError(t, err)
	}, api: func(cfg *httpapi.Config) {
		cfg.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
			caller, ok := people[r.Header.Get("Authorization")[len("Bearer "):]]
			if !ok {
				return caller, httpapi.ErrUnauthenticated
			}
			return caller, nil
		}
	}})
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	return w, func(who string) *client.Client {
		c, err := client.New(client.Config{URL: server.URL, Token: who})
		require.NoError(t, err)
		return c
	}
}

// TestVotes over HTTP: who asked and who has not the role are refused, each in their words; two others
// decide, and what is shown says how many are missing.
func TestVotes(t *testing.T) {
	t.Parallel()
	w, of := council(t)
	key, ctx := w.startAs("ann", "s1", "pay"), t.Context()
	w.drive(key)
	waits, err := of("bob").Waits(ctx, "s1", client.Page{})
	require.NoError(t, err)
	wait := waits.Items[0]
	require.Equal(t, &session.AnswerRule{Roles: []string{"finance"}, Need: 2, NotRequester: true}, wait.Rule)
	require.Equal(t, []string{"ann"}, wait.Requesters)
	require.Equal(t, 2, wait.VotesMissing)
	require.Nil(t, wait.MayVote, "roles may")
	votes := func(who string, approved bool) (client.Submitted, error) {
		return of(who).Submit(ctx, client.SubmitParams{SessionID: "s1", Answer: client.SubmitRequest{WaitID: wait.WaitID, Kind: session.AnswerApproval, ApprovalID: wait.ApprovalID, Approved: &approved}})
	}
	for who, code := range map[string]string{"ann": "requester_may_not_answer", "eve": "not_allowed", "file": "requester_may_not_answer"} {
		_, err := votes(who, true)
		refused := (*client.Error)(nil)
		require.ErrorAs(t, err, &refused, who)
		require.Equal(t, http.StatusForbidden, refused.Status, who)
		require.EqualValues(t, code, refused.Code(), who)
	}
	first, err := votes("bob", true)
	require.NoError(t, err)
	require.Equal(t, client.ContinuationWaiting, first.Continuation)
	require.Equal(t, 1, first.VotesMissing)
	require.Len(t, first.Open[0].Votes, 1)
	require.Equal(t, 1, first.Session.Pause.Pending[0].VotesMissing)
	inbox, err := of("cyd").Inbox(ctx, client.InboxParams{User: "dan"})
	require.NoError(t, err)
	require.Len(t, inbox.Items, 1, "who has the role is not known to the list")
	require.Equal(t, "bob", inbox.Items[0].Votes[0].Who)
	again, err := votes("bob", true)
	require.NoError(t, err)
	require.True(t, again.Repeated)
	_, err = votes("bob", false)
	refused := (*client.Error)(nil)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.Equal(t, client.CodeAlreadyAnswered, refused.Code())
	last, err := votes("dan", true)
	require.NoError(t, err)
	require.Equal(t, client.ContinuationResumed, last.Continuation)
	require.Len(t, last.Answer.Votes, 2)
	require.Zero(t, last.VotesMissing)
	w.drive(key)
	s, err := of("ann").Session(ctx, "s1", 0)
	require.NoError(t, err)
	require.Equal(t, session.StatusCompleted, s.Status)
}

// TestVotes_two_doors: people come over HTTP and through the runtime at once; two of them decide.
func TestVotes_two_doors(t *testing.T) {
	t.Parallel()
	w, of := council(t)
	key, ctx := w.startAs("ann", "s1", "pay"), t.Context()
	w.drive(key)
	var all sync.WaitGroup
	for range 3 {
		for _, who := range []string{"ann", "bob", "cyd"} {
			c := of(who)
			all.Go(func() {
				_, _ = c.Resume(ctx, client.ResumeParams{SessionID: "s1", Request: client.ResumeRequest{Decisions: &client.Decisions{Approve: []string{"w2-1"}}}})
			})
			all.Go(func() {
				_, _ = w.Submit(ctx, runtime.SubmitParams{Key: key, Caller: runtime.Caller{Who: who}, Answer: session.Answer{Wait: "w2-1", Kind: session.AnswerApproval, Approved: new(true)}})
			})
		}
	}
	all.Wait()
	w.drive(key)
	records, err := w.Waits(ctx, key)
	require.NoError(t, err)
	require.Len(t, records[0].Votes, 2)
	require.ElementsMatch(t, []string{"bob", "cyd"}, []string{records[0].Votes[0].Who, records[0].Votes[1].Who})
	s, err := w.Session(ctx, key)
	require.NoError(t, err)
	require.Equal(t, session.StatusCompleted, s.Status)
}

// TestLink_of_nobody: who may not answer because nobody tells them apart, or has verified their name, gets no
// link by which they could.
func TestLink_of_nobody(t *testing.T) {
	t.Parallel()
	w, of := councilOf(t, tool.Spec[textIn]{NotRequester: true})
	key := w.startAs("ann", "s1", "pay")
	w.drive(key)
	for who, code := range map[string]string{"ann": "requester_may_not_answer", "file": "requester_may_not_answer", "open": "sign_in_required", "cyd": ""} {
		made, err := of(who).Link(t.Context(), client.LinkParams{SessionID: "s1", WaitID: "w2-1"})
		if code == "" {
			require.NoError(t, err)
			require.True(t, made.Decides)
			continue
		}
		refused := (*client.Error)(nil)
		require.ErrorAs(t, err, &refused, who)
		require.EqualValues(t, code, refused.Code(), who)
	}
}
