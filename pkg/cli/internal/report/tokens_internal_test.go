package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

func TestTokenKinds(t *testing.T) {
	t.Parallel()
	require.Equal(t, "7 in, 3 out", tokenKinds(llm.Usage{Input: 7, Output: 3}))
	require.Equal(t, "7 in, 5 of them from the cache, 1 of them into the cache, 3 out, 2 of them reasoning",
		tokenKinds(llm.Usage{Input: 7, CacheRead: 5, CacheWrite: 1, Output: 3, Reasoning: 2}))
}
