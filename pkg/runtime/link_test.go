package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestByLink: what comes by a link says exactly what was shown, and is held to the approvers as what
// comes by every other door; what is refused is recorded.
func TestByLink(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := waiting(t, "guarded")
	open := w.open(session.WaitApproval).Wait
	good := session.Answer{Wait: open.ID, Kind: session.AnswerApproval, Approved: new(true), ApprovalID: open.Nonce, Digest: open.Digest}
	carol := runtime.Caller{Who: "carol", From: "link 192.0.2.1", ByLink: true}
	refusals := 0
	for name, c := range map[string]struct {
		who   string
		alter func(*session.Answer)
		code  runtime.Code
	}{
		"who may not answer":    {"bob", func(*session.Answer) {}, runtime.CodeNotAllowed},
		"without a nonce":       {"carol", func(a *session.Answer) { a.ApprovalID = "" }, runtime.CodeWaitNotFound},
		"another nonce":         {"carol", func(a *session.Answer) { a.ApprovalID += "x" }, runtime.CodeWaitNotFound},
		"without a digest":      {"carol", func(a *session.Answer) { a.Digest = "" }, runtime.CodeWaitNotFound},
		"another digest":        {"carol", func(a *session.Answer) { a.Digest = "x" }, runtime.CodeWaitNotFound},
		"with edited arguments": {"carol", func(a *session.Answer) { a.EditedInput = json.RawMessage(`{"text":"2"}`) }, runtime.CodeNotAllowed},
		"without a decision":    {"carol", func(a *session.Answer) { a.Approved = nil }, runtime.CodeInvalidAnswer},
	} {
		a := good
		c.alter(&a)
		_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: runtime.Caller{Who: c.who, From: carol.From, ByLink: true}, Answer: a})
		require.Equal(t, c.code, codeOf(err), name)
		refusals++
		require.Len(t, w.items(store.KindAudit), refusals, name)
	}
	linked, err := p.LinkedWait(ctx, w.key, open.ID, runtime.Caller{Who: "carol"})
	require.NoError(t, err)
	require.NoError(t, linked.NotAllowed)
	require.False(t, linked.Over)
	require.NoError(t, linked.Undecidable)
	linked, err = p.LinkedWait(ctx, w.key, open.ID, runtime.Caller{Who: "bob"})
	require.NoError(t, err)
	require.Equal(t, runtime.CodeNotAllowed, codeOf(runtime.AsError(linked.NotAllowed)))

	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: carol, Answer: good})
	require.NoError(t, err)
	linked, err = p.LinkedWait(ctx, w.key, open.ID, runtime.Caller{Who: "carol"})
	require.NoError(t, err)
	require.True(t, linked.Over)
	require.Equal(t, []string{"carol", "link 192.0.2.1"}, []string{linked.Record.Answer.Who, linked.Record.Answer.From})
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	_, err = p.LinkedWait(ctx, w.key, "w9-9", runtime.Caller{Who: "carol"})
	require.Equal(t, runtime.CodeWaitNotFound, codeOf(err))
	_, err = p.LinkedWait(ctx, session.Key{Tenant: w.key.Tenant, ID: "none"}, open.ID, runtime.Caller{Who: "carol"})
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
}

// TestByLink_approvals_alone: a link answers no question, and brings no message.
func TestByLink_approvals_alone(t *testing.T) {
	t.Parallel()
	for input, kind := range map[string]session.WaitKind{"name": session.WaitQuestion, "client": session.WaitClientTool, "input": session.WaitInput} {
		w, p := waiting(t, input)
		linked, err := p.LinkedWait(context.Background(), w.key, w.open(kind).Wait.ID, person)
		require.NoError(t, err)
		require.Equal(t, runtime.CodeWrongKind, codeOf(runtime.AsError(linked.Undecidable)), input)
		byLink := person
		byLink.ByLink = true
		text := "x"
		answer := map[session.WaitKind]session.Answer{
			session.WaitQuestion:   {Kind: session.AnswerReply, Text: &text},
			session.WaitClientTool: {Kind: session.AnswerClientTool, Result: json.RawMessage(`1`)},
			session.WaitInput:      {Kind: session.AnswerMessage},
		}[kind]
		answer.Wait = w.open(kind).Wait.ID
		_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: byLink, Answer: answer})
		require.Equal(t, runtime.CodeWrongKind, codeOf(err), input)
	}
}

// TestByLink_of_a_role: what a role may approve is shown by a link to whoever has the role when it is made, and
// not decided by it, for a link proves no role.
func TestByLink_of_a_role(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	spec := fourEyes()
	spec.Who, spec.Roles, spec.Need, spec.NotRequester = nil, []string{"finance"}, 0, false
	w, p := ruled(t, spec)
	open := w.open(session.WaitApproval).Wait
	linked, err := p.LinkedWait(ctx, w.key, open.ID, runtime.Caller{Who: "bob"})
	require.NoError(t, err)
	require.Equal(t, runtime.CodeNotAllowed, codeOf(runtime.AsError(linked.NotAllowed)))
	for _, by := range []runtime.Caller{{Who: "bob", Roles: []string{"finance"}}, {Who: "bob", ByLink: true}} {
		linked, err = p.LinkedWait(ctx, w.key, open.ID, by)
		require.NoError(t, err)
		require.NoError(t, linked.NotAllowed)
		require.Equal(t, runtime.CodeSignInRequired, codeOf(runtime.AsError(linked.Undecidable)))
	}
	_, err = p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: runtime.Caller{Who: "bob", From: "link", ByLink: true}, Answer: session.Answer{
		Wait: open.ID, Kind: session.AnswerApproval, Approved: new(true), ApprovalID: open.Nonce, Digest: open.Digest,
	}})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	require.Empty(t, w.effects.all())
}
