package link

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestDeciders: a page names everybody who voted and how, and in whose place somebody answered.
func TestDeciders(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ann", deciders(session.Answer{Kind: session.AnswerApproval, Who: "ann"}))
	require.Equal(t, "cy for bob", deciders(session.Answer{Kind: session.AnswerApproval, Who: "cy", For: "bob"}))
	votes := []session.Vote{{Who: "ann", Approved: true}, {Who: "cy", For: "bob"}}
	require.Equal(t, "ann (yes), cy for bob (no)", deciders(session.Answer{Kind: session.AnswerApproval, Who: "cy", For: "bob", Votes: votes}))
	require.Equal(t, "dan", deciders(session.Answer{Kind: session.AnswerDismissal, Who: "dan", Votes: votes}))
}
