package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/place"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// asking is an engine with waits.
type asking struct {
	place.Engine
	records []session.WaitRecord
}

func (w asking) Waits(context.Context, session.Key) ([]session.WaitRecord, error) {
	return w.records, nil
}

// TestBind_an_approval_asked_anew: the command for the first, run again, does not
// approve the second, which nobody has looked at.
func TestBind_an_approval_asked_anew(t *testing.T) {
	t.Parallel()
	approval := func(id, nonce string, state session.WaitState) session.WaitRecord {
		return session.WaitRecord{State: state, Wait: session.Wait{ID: id, Kind: session.WaitApproval, Call: "c2-1", Tool: "deploy", Arguments: []byte(`{}`), Digest: session.Digest([]byte(`{}`)), Nonce: nonce}}
	}
	e := asking{records: []session.WaitRecord{approval("w2-1", "first", session.WaitTaken), approval("w4-1", "second", session.WaitOpen)}}
	bound := func(call string) (session.Answer, error) {
		approved := true
		a := session.Answer{Kind: session.AnswerApproval, Approved: &approved}
		err := bind(context.Background(), e, session.Key{Tenant: session.DefaultTenant, ID: "s1"}, call, &a)
		return a, err
	}
	_, err := bound("c2-1")
	require.Equal(t, runtime.CodeStaleCheckpoint, runtime.AsError(err).Code)
	require.ErrorContains(t, err, "w4-1")
	for id, nonce := range map[string]string{"w2-1": "first", "w4-1": "second"} {
		a, err := bound(id)
		require.NoError(t, err)
		require.Equal(t, []string{id, nonce}, []string{a.Wait, a.ApprovalID})
	}
	e.records = e.records[:1]
	a, err := bound("c2-1")
	require.NoError(t, err)
	require.Equal(t, "w2-1", a.Wait, "none is open: the runtime says what became of it")
}
