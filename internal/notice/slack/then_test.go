package slack

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestThen: a card says what silence does, so that nobody who is asked leaves an approval to it unknowingly.
func TestThen(t *testing.T) {
	t.Parallel()
	to := &session.Escalation{Who: []string{"eve"}, After: time.Hour}
	for want, c := range map[string]struct {
		kind session.WaitKind
		d    session.Deadline
	}{
		"deny":           {session.WaitApproval, session.Deadline{Outcome: session.ExpireDeny}},
		"it is approved": {session.WaitApproval, session.Deadline{Outcome: session.ExpireDefault, Value: json.RawMessage(" true ")}},
		"it is denied":   {session.WaitApproval, session.Deadline{Outcome: session.ExpireDefault, Value: json.RawMessage("false")}},
		"default":        {session.WaitQuestion, session.Deadline{Outcome: session.ExpireDefault, Value: json.RawMessage(`"true"`)}},
		"escalate for 1h0m0s, then: it is approved": {session.WaitApproval, session.Deadline{Outcome: session.ExpireDefault, Value: json.RawMessage("true"), Escalate: to}},
	} {
		require.Equal(t, want, then(c.kind, c.d))
	}
}
