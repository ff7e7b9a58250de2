package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// asking is an engine with waits.
type asking struct {
	place.Engine
	records []journal.WaitRecord
}

func (w asking) Manifest(context.Context, session.Key) (session.Manifest, error) {
	m := session.Manifest{Outcome: session.OutcomePaused, PauseReason: &session.PauseReason{}}
	for _, r := range w.records {
		if r.State == session.WaitOpen {
			m.PauseReason.PendingToolCalls = append(m.PauseReason.PendingToolCalls, session.NewPendingItem(r.Wait))
		}
	}
	return m, nil
}

func (w asking) Waits(context.Context, session.Key) ([]journal.WaitRecord, error) {
	return w.records, nil
}

// TestBind_an_approval_asked_anew: an answer is for the wait it names, and a call,
// which may have been asked about again, names none.
func TestBind_an_approval_asked_anew(t *testing.T) {
	t.Parallel()
	approval := func(id, nonce string, state session.WaitState) journal.WaitRecord {
		return journal.WaitRecord{State: state, Wait: session.Wait{ID: id, Kind: session.WaitApproval, Call: "c2-1", Tool: "deploy", Arguments: []byte(`{}`), Digest: journal.Digest([]byte(`{}`)), Nonce: nonce}}
	}
	e := asking{records: []journal.WaitRecord{approval("w2-1", "first", session.WaitTaken), approval("w4-1", "second", session.WaitOpen)}}
	bound := func(id string) (session.Answer, error) {
		approved := true
		a := session.Answer{Kind: session.AnswerApproval, Approved: &approved}
		waits, err := whatWaits(t.Context(), e, session.Key{Tenant: session.DefaultTenant, ID: "s1"})
		require.NoError(t, err)
		err = waits.bind(t.Context(), id, &a)
		return a, err
	}
	for id, nonce := range map[string]string{"w2-1": "first", "w4-1": "second"} {
		a, err := bound(id)
		require.NoError(t, err)
		require.Equal(t, []string{id, "", nonce}, []string{a.Wait, a.ToolCallID, a.ApprovalID})
	}
	_, err := bound("c2-1")
	require.Equal(t, runtime.CodeInvalidInput, runtime.AsError(err).Code)
	require.ErrorContains(t, err, "w4-1")
	e.records = e.records[:1]
	_, err = bound("c2-1")
	require.ErrorContains(t, err, "w2-1", "the newest there was")
	_, err = bound("w9-9")
	require.Equal(t, runtime.CodeWaitNotFound, runtime.AsError(err).Code)
	require.ErrorContains(t, err, "Nothing waits there now")
}

// TestAnswerFlags: every kind of wait is answered by some flag, but a child's.
func TestAnswerFlags(t *testing.T) {
	t.Parallel()
	for _, kind := range session.WaitKinds() {
		flags := answerFlags(session.Wait{Kind: kind})
		require.Equal(t, kind == session.WaitChild, len(flags) == 0, kind)
	}
	require.Equal(t, "nobody answers it by hand", answeredWith(nil))
	require.Equal(t, 3, screen.Columns("a世"))
}
