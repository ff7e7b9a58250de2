package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnknownFlagIsNamed: a flag that does not exist is the mistake, not the word behind it.
func TestUnknownFlagIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, words := range [][]string{{"--nope", "-o", "json"}, {"--nope", "json"}, {"--nope", "sessions"}} {
		require.Contains(t, b.runIn(t.Context(), "", words...).ends(2).stderr, "unknown flag: --nope", words)
	}
	require.Contains(t, b.runIn(t.Context(), "", "-o", "json", "nope").ends(2).stderr, `unknown command "nope"`)
	require.Contains(t, b.run("submit", "s", "w2-1").ends(2).stderr, "--reject, --edit")
}

// TestURLWithAPath: refusals that the API did not make ask for its first part.
func TestURLWithAPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	delete(b.env, "ADJOURN_TOKEN")
	const hint = "--url names its first part"
	require.Contains(t, b.runIn(t.Context(), "", "--url", b.url+"/sessions", "sessions").stderr, hint)
	require.NotContains(t, b.runIn(t.Context(), "", "--url", b.url, "sessions").stderr, hint)
}
