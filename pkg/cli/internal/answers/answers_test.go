package answers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// asking has waits.
type asking struct {
	Sessions
	waits []client.Wait
}

func (w asking) Session(context.Context, string, time.Duration) (client.Session, error) {
	open := slices.DeleteFunc(slices.Clone(w.waits), func(w client.Wait) bool { return w.State != session.WaitOpen })
	return client.Session{Outcome: session.OutcomePaused, Pause: &client.Pause{Pending: open}}, nil
}

func (w asking) Waits(context.Context, string) ([]client.Wait, error) { return w.waits, nil }

// TestBind_an_approval_asked_anew: an answer is for the wait it names, and a call,
// which may have been asked about again, names none.
func TestBind_an_approval_asked_anew(t *testing.T) {
	t.Parallel()
	approval := func(id, nonce string, state session.WaitState) client.Wait {
		return client.Wait{State: state, WaitID: id, Kind: session.WaitApproval, CallID: "c2-1", Tool: "deploy", Arguments: []byte(`{}`), Digest: journal.Digest([]byte(`{}`)), ApprovalID: nonce}
	}
	e := asking{waits: []client.Wait{approval("w2-1", "first", session.WaitTaken), approval("w4-1", "second", session.WaitOpen)}}
	bound := func(id string) (client.SubmitRequest, error) {
		approved := true
		a := client.SubmitRequest{Kind: session.AnswerApproval, Approved: &approved}
		waits, err := WaitsOf(t.Context(), e, "s1")
		require.NoError(t, err)
		err = waits.Bind(t.Context(), id, &a)
		return a, err
	}
	for id, nonce := range map[string]string{"w2-1": "first", "w4-1": "second"} {
		a, err := bound(id)
		require.NoError(t, err)
		require.Equal(t, []string{id, "", nonce}, []string{a.WaitID, a.ToolCallID, a.ApprovalID})
	}
	_, err := bound("c2-1")
	require.Equal(t, client.CodeInvalidInput, exit.CodeOf(err))
	require.ErrorContains(t, err, "w4-1")
	e.waits = e.waits[:1]
	_, err = bound("c2-1")
	require.ErrorContains(t, err, "w2-1", "the newest there was")
	_, err = bound("w9-9")
	require.Equal(t, client.CodeWaitNotFound, exit.CodeOf(err))
	require.ErrorContains(t, err, "Nothing waits there now")
}

// TestAnswerFlags: every kind of wait is answered by some flag, but a child's.
func TestAnswerFlags(t *testing.T) {
	t.Parallel()
	for _, kind := range session.WaitKinds() {
		flags := answerFlags(client.Wait{Kind: kind})
		require.Equal(t, kind == session.WaitChild, len(flags) == 0, kind)
	}
	require.Equal(t, "nobody answers it by hand", answeredWith(nil))
	require.Equal(t, 3, screen.Columns("a世"))
}
