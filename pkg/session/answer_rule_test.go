package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// cast returns votes written as names with + or -, and with ? a yes to other arguments.
func cast(votes string) []session.Vote {
	var out []session.Vote
	for _, v := range strings.Fields(votes) {
		vote := session.Vote{Who: v[:len(v)-1], Approved: v[len(v)-1] != '-', Digest: "d"}
		if strings.HasSuffix(v, "?") {
			vote.Digest = "other"
		}
		out = append(out, vote)
	}
	return out
}

// TestTally: what votes come to. Missing, unmatched or repeated is never a yes.
func TestTally(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  session.AnswerRule
		who   string
		votes string
		want  session.Tally
		may   string // who is left, "-" where that is not known
		asked string
	}{
		"nobody":                        {rule: session.AnswerRule{Need: 2}, who: "a b c", want: session.Tally{Missing: 2}, may: "a b c"},
		"one of two":                    {rule: session.AnswerRule{Need: 2}, who: "a b c", votes: "b+", want: session.Tally{Missing: 1}, may: "a c"},
		"two of two":                    {rule: session.AnswerRule{Need: 2}, who: "a b c", votes: "b+ c+", want: session.Tally{Decided: true, Approved: true}, may: "a"},
		"one twice":                     {rule: session.AnswerRule{Need: 2}, who: "a b c", votes: "b+ b+", want: session.Tally{Missing: 1}, may: "a c"},
		"other arguments":               {rule: session.AnswerRule{Need: 2}, who: "a b c", votes: "b+ c?", want: session.Tally{Missing: 1}, may: "a"},
		"who asked":                     {rule: session.AnswerRule{Need: 2, NotRequester: true}, who: "a b c", asked: "c", votes: "b+ c+", want: session.Tally{Missing: 1}, may: "a"},
		"one no":                        {rule: session.AnswerRule{Need: 2}, who: "a b c", votes: "b+ c-", want: session.Tally{Decided: true, Missing: 1}, may: "a"},
		"a yes after a no of his":       {rule: session.AnswerRule{Need: 2, Noes: 2}, votes: "b- b+ c+", want: session.Tally{Missing: 1}, may: "-"},
		"one no of two, by roles":       {rule: session.AnswerRule{Need: 2, Noes: 2, Roles: []string{"r"}}, who: "a b", votes: "b-", want: session.Tally{Missing: 2}, may: "-"},
		"too few are left":              {rule: session.AnswerRule{Need: 2, Noes: 2}, who: "a b", votes: "b-", want: session.Tally{Decided: true, Missing: 2}, may: "a"},
		"too few, as one of them asked": {rule: session.AnswerRule{Need: 2, Noes: 3, NotRequester: true}, who: "a b c", asked: "a", votes: "b-", want: session.Tally{Decided: true, Missing: 2}, may: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := session.Wait{Kind: session.WaitApproval, Digest: "d", Who: strings.Fields(c.who)}
			w.Hold(&c.rule, strings.Fields(c.asked))
			require.Equal(t, []string{session.NeedsAnswerRule}, w.Needs)
			require.Equal(t, c.want, w.Tally(cast(c.votes), nil))
			if left := w.Left(cast(c.votes), nil); c.may == "-" {
				require.Nil(t, left)
			} else {
				require.Equal(t, strings.Fields(c.may), left)
			}
		})
	}
}

// TestTally_delegated: who delegated a wait and all it was delegated to are one voice, so that a no ends it where
// too few voices are left, however many people they are.
func TestTally_delegated(t *testing.T) {
	t.Parallel()
	w := session.Wait{Kind: session.WaitApproval, Digest: "d", Who: []string{"a", "b", "c", "d"}}
	w.Hold(&session.AnswerRule{Need: 2, Noes: 2}, nil)
	acts := []session.WaitAct{{Kind: session.ActDelegated, Who: "a", To: "c"}, {Kind: session.ActDelegated, Who: "c", To: "d"}}
	require.Equal(t, session.Tally{Missing: 2}, w.Tally(nil, acts))
	require.Equal(t, session.Tally{Decided: true, Missing: 2}, w.Tally(cast("b-"), acts))
	votes := cast("d+")
	votes[0].For = "a"
	require.Equal(t, []string{"b"}, w.Left(votes, acts))
	require.Equal(t, session.Tally{Missing: 1}, w.Tally(votes, acts))
}

// TestHold: a wait has the part of a rule that is for its kind, and where that asks for nothing it is as
// it was before there were rules.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, rule := range []*session.AnswerRule{nil, {}, {Need: 1, Noes: 1, Assurance: session.AssuranceLink}} {
		w := session.Wait{Kind: session.WaitApproval}
		w.Hold(rule, []string{"ann"})
		require.Equal(t, session.Wait{Kind: session.WaitApproval}, w)
	}
	question := session.Wait{Kind: session.WaitQuestion}
	question.Hold(&session.AnswerRule{Need: 2, Noes: 2}, []string{"ann"})
	require.Nil(t, question.Rule)
	question.Hold(&session.AnswerRule{Need: 2, NotRequester: true}, []string{"ann"})
	require.Equal(t, &session.AnswerRule{NotRequester: true}, question.Rule)
	require.Equal(t, []string{"ann"}, question.Requesters)
	require.False(t, question.Votes())
}
