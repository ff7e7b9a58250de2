package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// anyTwo is a tool that any two people approve.
func anyTwo() tool.Spec[textIn] {
	return tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], Need: 2, NotRequester: true}
}

// managers is a tool that two managers approve.
func managers() tool.Spec[textIn] {
	return tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], Roles: []string{"manager"}, Need: 2}
}

func manager(who string) runtime.Caller {
	return runtime.Caller{Who: who, From: "test", Roles: []string{"manager"}}
}

func (w *world) delegates(p *process, by runtime.Caller, to string) {
	w.t.Helper()
	_, err := p.Act(context.Background(), runtime.ActParams{Key: w.key, Wait: w.open(session.WaitApproval).Wait.ID, Kind: session.ActDelegated, To: to, Caller: by})
	require.NoError(w.t, err)
}

// TestVotes_delegated_twice: somebody to whom two people delegated is still one person.
func TestVotes_delegated_twice(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, anyTwo())
	w.delegates(p, named("bob"), "zoe")
	_, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	w.delegates(p, named("cyd"), "zoe")
	again, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all(), "one person has approved")
	require.Len(t, w.waits()[0].Votes, 1)
}

// TestVotes_delegated_silences: to delegate to somebody who may answer anyway takes no voice from them, so
// that a no of theirs still ends it.
func TestVotes_delegated_silences(t *testing.T) {
	t.Parallel()
	no := yes()
	no.Approved = new(false)
	for name, test := range map[string]struct {
		spec tool.Spec[textIn]
		by   func(string) runtime.Caller
	}{"everyone may": {anyTwo(), named}, "by a role": {managers(), manager}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := ruled(t, test.spec)
			_, err := w.votes(p, test.by("bob"), yes())
			require.NoError(t, err)
			w.delegates(p, test.by("bob"), "cyd")
			said, err := w.votes(p, test.by("cyd"), no)
			require.NoError(t, err)
			require.Empty(t, said.Answer.For)
			require.NoError(t, p.settle())
			require.Empty(t, w.effects.all())
			require.False(t, *w.answered().Approved)
		})
	}
}

// TestVotes_delegated_on: a manager who delegated has one voice together with whom it was delegated to, also
// where a voice was delegated to that manager before.
func TestVotes_delegated_on(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, managers())
	w.delegates(p, manager("bob"), "cyd")
	w.delegates(p, manager("cyd"), "zoe")
	_, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	for _, who := range []string{"bob", "cyd"} {
		again, err := w.votes(p, manager(who), yes())
		require.NoError(t, err)
		require.True(t, again.Repeated, who)
	}
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all())

	w, p = ruled(t, managers())
	w.delegates(p, manager("bob"), "cyd")
	w.delegates(p, manager("cyd"), "zoe")
	_, err = w.votes(p, manager("cyd"), yes())
	require.NoError(t, err)
	again, err := w.votes(p, named("zoe"), yes())
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all())
	_, err = w.votes(p, manager("dan"), yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, map[string]int{"pay 5": 1}, w.effects.all())
}

// TestVotes_without_a_seal: a vote that was written into a wait from outside, with its seal taken off, is
// no vote: no program writes a wait with a rule and without a seal.
func TestVotes_without_a_seal(t *testing.T) {
	t.Parallel()
	w, p := ruled(t, fourEyes())
	for _, item := range w.items(store.KindWait) {
		forged := *item.Wait
		forged.Votes = []session.Vote{{Who: "bob", When: forged.Wait.OpenedAt, Approved: true, Digest: forged.Wait.Digest}}
		journal.SetSeal(&forged, journal.SealNone)
		_, err := w.store.Update(context.Background(), w.key, store.WaitItem(forged, item.Rev))
		require.NoError(t, err)
	}
	_, check, err := p.VerifyAudit(context.Background(), w.key)
	require.NoError(t, err)
	require.False(t, check.Whole)
	_, err = w.votes(p, named("cyd"), yes())
	require.Equal(t, runtime.CodeCorrupt, codeOf(err))
	_, err = p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Approve: []string{"w2-1"}, Caller: named("cyd")})
	require.Equal(t, runtime.CodeCorrupt, codeOf(err))
	require.NoError(t, p.settle())
	require.Empty(t, w.effects.all())
}
