package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// TestVotes: a vote is stored, what is missing is said, and a second person decides.
func TestVotes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	m := b.start("s", "[{call: paid, with: {service: a}}, {say: ok}]", 10)
	item := m.PauseReason.PendingToolCalls[0]
	require.Equal(t, 2, item.Need)
	require.Equal(t, 2, item.VotesMissing)
	shown := b.run("show", "s").ends(0).stdout
	require.Contains(t, shown, "2 people must approve, 1 no is enough to end it; 2 more must approve")

	first := b.run("submit", "s", "w2-1", "--approve", "--reason", "fine").ends(10)
	require.Contains(t, first.stderr, "Your vote is stored. 1 more must approve.")
	require.Contains(t, first.stdout, "ada said yes: fine")
	require.Contains(t, b.run("submit", "s", "w2-1", "--approve", "--reason", "fine").ends(10).stderr, "Your vote was stored before. 1 more must approve.")
	b.run("submit", "s", "w2-1", "--reject").ends(5)
	require.NotContains(t, b.run("resume", "-c", m.CheckpointID, "--approve-all", "--reason", "fine").ends(10).stderr, "is stored. 1 more", "it was before")
	b.run("run", "--agent", "toy", "--session", "two", "[{call: paid, with: {service: a}}, {say: ok}]").ends(10)
	require.Contains(t, b.run("resume", "two", "--approve", "w2-1").ends(10).stderr, "Your vote on w2-1 is stored. 1 more must approve.")
	b.run("resume", "-c", m.CheckpointID, "--approve-all", "--reason", "fine").ends(10)
	require.Contains(t, b.run("inbox").ends(0).stdout, "ada said yes: fine")
	again := b.run("submit", "s", "w2-1", "--approve", "--reason", "fine", "-o", "json").ends(10).manifest().PauseReason.PendingToolCalls[0]
	require.Equal(t, 1, again.VotesMissing)
	require.Len(t, again.Votes, 1)

	b.as("bob")
	done := b.run("submit", "s", "w2-1", "--approve", "-o", "json").ends(0).manifest()
	require.Equal(t, "ok", done.FinalMessage)
	b.as("ada")
	require.Contains(t, b.run("submit", "s", "w2-1", "--approve", "--reason", "fine").ends(0).stderr, "Already settled")
}

// as has commands be those of somebody else.
func (b *bench) as(who string) {
	b.t.Helper()
	key, err := httpapi.NewAPIKey(dev.KeysBeside(b.data).File, who, "")
	require.NoError(b.t, err)
	b.token = key
	b.env["ADJOURN_TOKEN"] = key
}

// TestNotRequester: a data file knows one user, who asked; who has a key of their own may answer.
func TestNotRequester(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run("run", "--agent", "toy", "--session", "s", "[{call: others, with: {service: a}}, {say: ok}]").ends(10)
	refused := b.run("submit", "s", "w2-1", "--approve").ends(4)
	require.Contains(t, refused.stderr, "adjourn dev")
	require.Contains(t, refused.stderr, "api-keys")
	b.run("submit", "s", "w2-1", "--reject").ends(4)
	b.run("resume", "s", "--approve", "w2-1").ends(4)
	shown := b.run("show", "s").ends(0).stdout
	require.Contains(t, shown, "may be answered by ada, bob, the role finance only")
	require.Contains(t, shown, "not by ada, who asked for the task, or told it something since")

	b.serve()
	require.Contains(t, b.run("submit", "s", "w2-1", "--approve").ends(4).stderr, `may not be answered by "ada", who asked for the task`)
	b.as("eve")
	b.run("submit", "s", "w2-1", "--approve").ends(4)
	keys := dev.KeysBeside(b.data).File
	text, err := os.ReadFile(keys)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keys, []byte(strings.Replace(string(text), " eve default", " eve default roles=finance", 1)), 0o600))
	b.run("submit", "s", "w2-1", "--approve").ends(0)
}
