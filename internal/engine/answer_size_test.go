package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestFitAnswers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 10<<10)
	approved := true
	for _, a := range []session.Answer{
		{Kind: session.AnswerClientTool, Result: json.RawMessage(`"` + large + `"`)},
		{Kind: session.AnswerReply, Text: &large},
		{Kind: session.AnswerVerdict, Verdict: session.VerdictHappened, Result: json.RawMessage(`"` + large + `"`)},
		{Kind: session.AnswerApproval, Approved: &approved, EditedInput: json.RawMessage(`"` + large + `"`)},
		{Kind: session.AnswerApproval, Approved: &approved, Reason: large},
	} {
		got := engine.FitAnswers([]session.Answer{a, {Kind: session.AnswerReply}}, 5<<10)
		require.Less(t, engine.EncodedSize(got[0]), engine.SmallAnswer, a.Kind)
		require.Equal(t, a.Verdict, got[0].Verdict)
		if a.EditedInput != nil {
			require.NotEqual(t, journal.Digest(got[0].EditedInput), got[0].Digest)
		}
		require.Equal(t, a, engine.FitAnswers([]session.Answer{a}, 20<<10)[0])
	}
}

// The largest answer is cut first.
func TestFitAnswers_cuts_the_largest(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("x", 6<<10), strings.Repeat("x", 20<<10)
	got := engine.FitAnswers([]session.Answer{{Kind: session.AnswerReply, Text: &a}, {Kind: session.AnswerReply, Text: &b}}, 10<<10)
	require.NotNil(t, got[0].Text)
	require.Nil(t, got[1].Text)
}
