package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServerWithoutTheAgent: what is told to a session whose agent the server does not
// have is stored, and no command waits for what never comes.
func TestServerWithoutTheAgent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("decided", `[{call: deploy, with: {service: web}}, {say: ok}]`, 10)
	b.start("answered", `[{call: name}, {say: ok}]`, 10)
	local := b.registry
	b.registry = another
	b.serve()
	for _, words := range [][]string{
		{"resume", "decided", "--approve", "w2-1"},
		{"submit", "answered", "w2-1", "--reply", "Ada"},
	} {
		r := b.run(words...).ends(3)
		require.Contains(t, r.stderr, "is stored, and nobody goes on with it here: this server does not have agent toy")
		require.NotContains(t, r.stdout+r.stderr, "has not begun yet")
		id := words[1]
		r = b.run("resume", id).ends(3)
		require.Contains(t, r.stderr, "this server does not have agent toy")
		require.NotContains(t, r.stderr, "to go on")
		require.Equal(t, "unknown_agent", b.run("resume", id, "-o", "json").ends(3).manifest().Error.Code)
		r = b.run("resume", id, "--wait", "0s").ends(0)
		require.Contains(t, r.stdout, "this server does not have agent toy")
	}
	b.url, b.registry = "", local
	b.run("work").ends(0)
	require.Contains(t, b.run("show", "decided").ends(0).stdout, "completed")
	require.Contains(t, b.run("show", "answered").ends(0).stdout, "completed")
}
