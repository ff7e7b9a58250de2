package session_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// Each operation is about a whole key; the same value in other words is no change.
func TestState_Diff(t *testing.T) {
	t.Parallel()
	state := func(values map[string]string) *session.State {
		var s session.State
		for key, value := range values {
			require.NoError(t, s.Apply(session.StateOp{Op: session.StateReplace, Key: key, Value: json.RawMessage(value)}))
		}
		return &s
	}
	from := state(map[string]string{"same": `{"a": 1}`, "gone": `1`, "other": `[1]`})
	to := state(map[string]string{"same": `{"a":1}`, "new/~": `"x"`, "other": `[1,2]`})
	require.Equal(t, []session.StateChange{
		{Op: "remove", Path: "/gone"},
		{Op: "add", Path: "/new~1~0", Value: json.RawMessage(`"x"`)},
		{Op: "replace", Path: "/other", Value: json.RawMessage(`[1,2]`)},
	}, from.Diff(to))
	require.Empty(t, from.Diff(from))
}
