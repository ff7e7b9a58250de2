package place_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "/a/b.db": "/a/b.db", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'",
		"--approve": "--approve", "a;b": "'a;b'", "*": "'*'", "a\nb": "'a\nb'",
	} {
		require.Equal(t, want, place.Quote(in))
	}
}
