package report

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestDetails_escalation: who is asked is told that others are asked at the deadline, then that they were; a wait
// that is only to be escalated is not over.
func TestDetails_escalation(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	to := &session.Escalation{Who: []string{"eve", "a\x1bb"}, Roles: []string{"chief"}, After: time.Hour}
	w := client.Wait{Kind: session.WaitApproval, Tool: "pay", Arguments: json.RawMessage(`{}`), Deadline: &session.Deadline{At: now, Outcome: session.ExpireDeny, Escalate: to}}
	text := Details(w, now, "  ", 80)
	require.Contains(t, text, "then: it is escalated to eve, ")
	require.Contains(t, text, "the role chief for 1h0m0s, and after that: it counts as a no")
	require.NotContains(t, text, "\x1b")
	require.False(t, Late(w, now))
	require.Equal(t, to, newPendingItem(w).Escalate)

	w.Deadline = &session.Deadline{At: now.Add(time.Hour), Outcome: session.ExpireDeny}
	w.Acts = []session.WaitAct{{Kind: session.ActReminded}, {Kind: session.ActEscalated, At: now, Escalation: to}}
	text = Details(w, now, "  ", 80)
	require.Contains(t, text, "  escalated to eve, ")
	require.Contains(t, text, "then: it counts as a no")
	require.False(t, Late(w, now))
	require.True(t, Late(w, now.Add(time.Hour)))
}
