package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestWait_is_bounded: what is read, and shown, for a wait does not grow with the session: of many
// effects the newest are shown, of many messages the last, of a long one its beginning.
func TestWait_is_bounded(t *testing.T) {
	t.Parallel()
	const steps = 120
	lines := []turn{}
	for n := range steps {
		lines = append(lines, calls("line", fmt.Sprintf(`{"text":"%d"}`, n)))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": append(lines, calls("deploy", `{"text":"x"}`))}, func(a *agent.Agent) {
		a.Limits.Steps = 1000
	}))
	p := w.process()
	w.run(p, "go")
	require.Equal(t, session.StatusSuspended, w.session().Status)
	id := w.waits()[0].Wait.ID
	view, err := p.Wait(context.Background(), w.key, id, people)
	require.NoError(t, err)
	require.True(t, view.MayAnswer)
	require.Equal(t, 1, view.Open)
	require.EqualValues(t, steps+1, view.Used.Steps)
	require.Len(t, view.Effects.Items, 50)
	require.Less(t, view.Effects.Count, steps, "older entries are not read")
	newest := view.Effects.Items[49]
	require.Equal(t, "line", newest.Tool)
	require.JSONEq(t, fmt.Sprintf(`{"text":"%d"}`, steps-1), string(newest.Arguments))
	require.Equal(t, llm.ResultSuccess, newest.Outcome)
	require.Empty(t, view.Effects.Digest, "nothing is acknowledged by it")

	_, err = p.Wait(context.Background(), w.key, "w2-77", people)
	require.Equal(t, runtime.CodeWaitNotFound, codeOf(err))
	_, err = p.Wait(context.Background(), session.Key{Tenant: w.key.Tenant, ID: "none"}, id, people)
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
}

// TestWait_shows_who_and_what_was_said: the caller is told whether, and in whose place, they may answer.
func TestWait_shows_who_and_what_was_said(t *testing.T) {
	t.Parallel()
	w, p := askedOf(t)
	as := func(who string) runtime.WaitView {
		view, err := p.Wait(context.Background(), w.key, w.waits()[0].Wait.ID, runtime.Caller{Who: who})
		require.NoError(t, err)
		return view
	}
	require.True(t, as("ann").MayAnswer)
	require.False(t, as("cem").MayAnswer)
	_, err := actOn(w, p, session.ActDelegated, "ann")
	require.NoError(t, err)
	require.True(t, as("cem").MayAnswer)
	require.Equal(t, "ann", as("cem").For)
	require.Empty(t, as("ann").For)
	require.Len(t, as("ann").Record.Acts, 1)
	require.Equal(t, []runtime.SaidMessage{{Role: llm.RoleUser, Text: "go"}}, as("ann").Messages)

	long := newWorld(t, newEffects(), helper(newEffects(), script{strings.Repeat("long ", 1000): {needs("where?")}}))
	q := long.process()
	long.run(q, strings.Repeat("long ", 1000))
	view, err := q.Wait(context.Background(), long.key, long.waits()[0].Wait.ID, people)
	require.NoError(t, err)
	require.True(t, view.Messages[0].Cut)
	require.Len(t, view.Messages[0].Text, 2000)
}
