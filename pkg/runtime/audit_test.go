package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestAudit_of_refused_answers: who was refused, when and why stands beside the wait,
// up to a bound; who may not answer does not reach it, and the answer that counts is
// taken all the same.
func TestAudit_of_refused_answers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := waiting(t, "guarded")
	carol := runtime.Caller{Who: "carol", From: "test"}
	for range session.MaxAudit + 5 {
		_, err := w.submit(p, session.WaitApproval, yes())
		require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	}
	lines := w.items(store.KindAudit)
	require.Len(t, lines, session.MaxAudit/2, "the rest is for those who may answer")
	require.Equal(t, session.AuditRefused, lines[0].Audit.Kind)
	require.Equal(t, person.Who, lines[0].Audit.Who)
	require.JSONEq(t, `{"code":"not_allowed"}`, string(lines[0].Audit.Data))
	for range session.MaxAudit {
		_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(w.open(session.WaitApproval).Wait, session.Answer{})})
		require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	}
	lines = w.items(store.KindAudit)
	require.Len(t, lines, session.MaxAudit)
	require.Equal(t, carol.Who, lines[session.MaxAudit/2].Audit.Who)
	require.Equal(t, session.AuditFull, lines[session.MaxAudit-1].Audit.Kind)
	_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: carol, Answer: fill(w.open(session.WaitApproval).Wait, yes())})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)

	// The lines are a chain, and the entry that takes the answer in holds its end.
	chain := make([]session.Audit, 0, len(lines))
	for _, line := range lines {
		chain = append(chain, *line.Audit)
	}
	record := w.waits()[0]
	require.NoError(t, session.CheckAudit(w.key, record.Wait.ID, chain, record.Audit))
	taken := w.journal()[record.TakenBy-1]
	require.Equal(t, session.KindResumed, taken.Kind)
	require.Equal(t, record.Audit.Hash, taken.Answers[0].Audit)
	require.NotEmpty(t, taken.Answers[0].Audit)
}
