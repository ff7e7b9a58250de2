package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHalt: what is stopped says so instead of hanging silently, and goes on.
func TestHalt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.run("run", "--agent", "toy", "--session", "first", "[{say: hi}]").ends(0)
		require.Contains(t, b.run("stop", "--agent", "toy", "--reason", "wrong prices").ends(0).stdout, "No step begins")
		require.Contains(t, b.run("stop", "--agent", "toy").ends(0).stderr, "that was so before")
		b.run("stop", "--agent", "toys").ends(3)
		r := b.run("run", "--agent", "toy", "--session", "s", "--wait", "3s", "[{say: hi}]").ends(124)
		require.Contains(t, r.stderr, "Stopped by")
		require.Contains(t, r.stderr, "wrong prices")
		require.Contains(t, r.stderr, " go --agent toy")
		shown := b.run("show", "s").ends(0).stdout
		require.Contains(t, shown, "(wrong prices). To let it go on: ")
		require.NotContains(t, shown, "If no worker works on it")
		require.NotContains(t, shown, "whoever runs the server")
		require.Contains(t, b.run("go").ends(0).stdout, "Nothing was stopped")
		require.Contains(t, b.run("go", "--agent", "toy").ends(0).stdout, "Goes on: agent toy")
		b.run("cancel", "s").ends(0)
		b.run("run", "--agent", "toy", "--session", "t", "[{say: hi}]").ends(0)
	})
}
