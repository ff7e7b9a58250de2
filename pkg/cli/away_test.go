package cli_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
)

// TestAway: on a data file nobody stands in for anybody, and is told what to do; who is away is listed.
func TestAway(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.run("run", "--agent", "toy", "--session", "s", "[{say: hi}]").ends(0)
		require.Contains(t, b.run("away", "--list").ends(0).stderr, "Nobody is away.")
		for _, words := range [][]string{
			{},
			{"--to", "bob"},
			{"--until", "2026-12-01"},
			{"--list", "--end"},
			{"--list", "--to", "bob"},
			{"--end", "--reason", "x"},
			{"bob"},
			{"--to", "bob", "--until", "soon"},
			{"--to", "bob", "--until", "2026-12-01", "--begins", "soon"},
			{"--to", "", "--until", "2026-12-01"},
		} {
			b.run(append([]string{"away"}, words...)...).ends(2)
		}
		until := b.now().Add(24 * time.Hour).Format(time.RFC3339)
		if b.token == "" {
			for _, words := range [][]string{{"--to", "bob", "--until", until}, {"--end"}} {
				refused := b.run(append([]string{"away"}, words...)...).ends(4)
				require.Contains(t, refused.stderr, "adjourn dev")
				require.Contains(t, refused.stderr, "api-keys")
			}
			return
		}
		require.Contains(t, b.run("away", "--end").ends(0).stdout, "Nobody stood in for you.")
		b.run("away", "--to", "ada", "--until", until).ends(2)
		b.run("away", "--to", "bob", "--until", "2020-01-01").ends(2)
	})
}

// TestAway_stands_in: Bob answers in the place of Ada, who is away, until she is back.
func TestAway_stands_in(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve()
	b.start("s", "[{call: bobs, with: {service: a}}, {call: bobs, with: {service: b}}, {say: ok}]", 10)
	b.run("submit", "s", "w2-1", "--approve").ends(4)
	require.Contains(t, b.run("inbox", "--mine", "--no-input").ends(0).stderr, "Nothing of that kind waits")
	ada := b.token
	b.as("bob")
	bob := b.token
	is := func(token string) { b.token, b.env["ADJOURN_TOKEN"] = token, token }
	until := b.now().Add(24 * time.Hour).Format(time.RFC3339)
	set := b.run("away", "--to", "ada", "--until", until, "--reason", "on holiday").ends(0)
	require.Contains(t, set.stdout, "ada stands in for bob from ")
	require.Contains(t, b.run("away", "--to", "ada", "--until", until, "--reason", "on holiday").ends(0).stderr, "that was so before")

	is(ada)
	b.run("away", "--to", "bob", "--until", until).ends(5)
	require.Contains(t, b.run("away", "--list").ends(0).stdout, "on holiday")
	var away client.Away
	require.NoError(t, json.Unmarshal([]byte(b.run("away", "--list", "-o", "json").ends(0).stdout), &away))
	require.Len(t, away.Items, 1)
	require.Len(t, away.Changes, 1)
	require.Contains(t, b.run("inbox", "--mine", "--no-input").ends(0).stdout, "w2-1")
	shown := b.run("show", "s", "w2-1").ends(0).stdout
	require.Contains(t, shown, "You answer in the place of bob.")
	require.Contains(t, shown, "ada stands in for bob from ")
	b.run("submit", "s", "w2-1", "--approve").ends(10)
	shown = b.run("show", "s", "w2-1").ends(0).stdout
	require.Contains(t, shown, "stood in for bob by ada")
	require.Contains(t, shown, "on holiday")
	audit := b.run("audit", "s", "--verify").ends(0).stdout
	require.Contains(t, audit, "stood_in")

	is(bob)
	require.Contains(t, b.run("away", "--end").ends(0).stdout, "ada does not stand in for bob any more.")
	is(ada)
	b.run("submit", "s", "w5-1", "--approve").ends(4)
	require.NotContains(t, b.run("show", "s", "w5-1").ends(0).stdout, "stands in")
}
