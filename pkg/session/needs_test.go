package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// An entry that needs what this program does not know is refused by name, wherever
// in it the word stands.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*session.Entry)
		says   string
	}{
		"entry": {func(e *session.Entry) { e.Needs = []string{"quorum"} }, `entry 4 needs "quorum"`},
		"wait":  {func(e *session.Entry) { e.Waits[1].Needs = []string{"grants"} }, `wait w4-2 needs "grants"`},
		"rules": {func(e *session.Entry) { e.Rules = &session.Rules{Needs: []string{"skills"}} }, `the task of entry 4 needs "skills"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := entry(4, session.KindSuspended, session.StatusSuspended)
			e.Waits = []session.Wait{{ID: "w4-1"}, {ID: "w4-2"}}
			stored, err := session.Encode(&e)
			require.NoError(t, err)
			_, err = session.Decode(stored)
			require.NoError(t, err)

			c.change(&e)
			stored, err = session.Encode(&e)
			require.NoError(t, err)
			_, err = session.Decode(stored)
			require.ErrorIs(t, err, session.ErrNeeds)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "use a newer adjourn")
			var needs *session.NeedsError
			require.ErrorAs(t, err, &needs)
		})
	}
	record := approvalRecord()
	record.Wait.Needs = []string{"quorum"}
	err := session.UnmarshalRecord(withUnknown(t, &record), &record)
	require.ErrorIs(t, err, session.ErrNeeds)
	require.ErrorContains(t, err, `wait w4-3 needs "quorum"`)
}
