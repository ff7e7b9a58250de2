package lambdafn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEventKey: no request over HTTP can have the key of an event and so use it up,
// for there a space is refused in one; and no two events share theirs.
func TestEventKey(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, id := range [][]string{{"e-1"}, {"e-2"}, {"e-1", ""}, {"", "e-1"}, {"e-1 e-2"}, {"e-1", "e-2"}, {`e-1","e-2`}} {
		for _, source := range []string{"eventbridge", "invoke"} {
			key := eventKey(source, id...)
			require.Contains(t, key, " ")
			require.LessOrEqual(t, len(key), 255)
			require.False(t, seen[key], key)
			seen[key] = true
		}
	}
}
