package chain

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestWords: the model has every word of the program, or says that it leaves it out.
func TestWords(t *testing.T) {
	t.Parallel()
	known := slices.Clone(kindsLeftOut)
	statuses := []session.Status{}
	for _, k := range kinds[1:] {
		known = append(known, k.word)
		statuses = append(statuses, k.status)
	}
	require.Subset(t, known, session.Kinds())
	require.Subset(t, statuses, session.Statuses())
	for i := range signals[1:] {
		require.True(t, stronger(uint8(i+1), uint8(i)))
	}
	require.Len(t, Texts, len(propertyNames))
	require.Equal(t, keptShort, 1<<(len(propertyNames)-1), "the names are in the order of the bits")
}
