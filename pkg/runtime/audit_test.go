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
// up to a bound; the answer that counts is taken all the same.
func TestAudit_of_refused_answers(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "guarded")
	for range session.MaxAudit + 5 {
		_, err := w.submit(p, session.WaitApproval, yes())
		require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	}
	lines := w.items(store.KindAudit)
	require.Len(t, lines, session.MaxAudit)
	require.Equal(t, session.AuditRefused, lines[0].Audit.Kind)
	require.Equal(t, person.Who, lines[0].Audit.Who)
	require.JSONEq(t, `{"code":"not_allowed"}`, string(lines[0].Audit.Data))
	require.Equal(t, session.AuditFull, lines[session.MaxAudit-1].Audit.Kind)
	_, err := p.Submit(context.Background(), runtime.SubmitParams{
		Key: w.key, Caller: runtime.Caller{Who: "carol"}, Answer: fill(w.open(session.WaitApproval).Wait, yes()),
	})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}
