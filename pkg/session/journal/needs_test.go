package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// An entry that needs what this program does not know is refused by name, wherever
// in it the word stands.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*journal.Entry)
		says   string
	}{
		"entry": {func(e *journal.Entry) { e.Needs = []string{"quorum"} }, `entry 4 needs "quorum"`},
		"wait":  {func(e *journal.Entry) { e.Waits[1].Needs = []string{"grants"} }, `wait w4-2 needs "grants"`},
		"rules": {func(e *journal.Entry) { e.Rules = &session.Rules{Needs: []string{"skills"}} }, `the task of entry 4 needs "skills"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := entry(4, session.KindSuspended, session.StatusSuspended)
			e.Waits = []session.Wait{{ID: "w4-1"}, {ID: "w4-2"}}
			stored, err := journal.Encode(&e)
			require.NoError(t, err)
			_, err = journal.Decode(stored)
			require.NoError(t, err)

			c.change(&e)
			stored, err = journal.Encode(&e)
			require.NoError(t, err)
			_, err = journal.Decode(stored)
			require.ErrorIs(t, err, journal.ErrNeeds)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "use a newer adjourn")
			var needs *journal.NeedsError
			require.ErrorAs(t, err, &needs)
		})
	}
	record := approvalRecord()
	record.Wait.Needs = []string{"quorum"}
	err := journal.UnmarshalRecord(withUnknown(t, &record), &record)
	require.ErrorIs(t, err, journal.ErrNeeds)
	require.ErrorContains(t, err, `wait w4-3 needs "quorum"`)
}
