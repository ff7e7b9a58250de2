package journal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// What Decode would refuse is never written: it would lose the session. The bound
// is on the JSON, in which a character may take six.
func TestEncode_refuses_an_entry_too_large_to_be_read_again(t *testing.T) {
	t.Parallel()
	const most = 10_000
	entry := func(size int) *journal.Entry {
		output := json.RawMessage(`"` + strings.Repeat("<", size) + `"`)
		return &journal.Entry{V: journal.Format, Seq: 1, Kind: session.KindCompleted, Output: output}
	}
	_, err := journal.EncodeWithin(entry(most/6-100), most)
	require.NoError(t, err)
	_, err = journal.EncodeWithin(entry(most/6), most)
	require.ErrorIs(t, err, journal.ErrUnfitValue)
}
