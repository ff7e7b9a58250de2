package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A word that is known is no reason to refuse; every other one is.
func TestUnmet(t *testing.T) {
	t.Parallel()
	known := []string{"quorum", "grants"}
	require.NoError(t, unmet(nil, known, "entry %d", 1))
	require.NoError(t, unmet([]string{"grants", "quorum"}, known, "entry %d", 1))
	err := unmet([]string{"quorum", "skills"}, known, "entry %d", 1)
	require.EqualError(t, err, `entry 1 needs "skills", which this program does not know: use a newer adjourn`)
	require.ErrorIs(t, unmet([]string{""}, known, "entry %d", 1), ErrNeeds)
}
