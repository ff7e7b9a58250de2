package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestForkTags: a fork has tags of its own, and none of the other session's.
func TestForkTags(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.run("run", "--agent", "toy", "--session", "s", "--tag", "blue", "[{say: ok}]").ends(0)
		b.run("fork", "s", "--session", "t", "--tag", "red", "--tag", "big").ends(0)
		b.run("fork", "s", "--session", "u").ends(0)
		for tag, id := range map[string]string{"blue": "s", "red": "t", "big": "t"} {
			lines := splitLines(b.run("sessions", "--tag", tag).ends(0).stdout)
			require.Len(t, lines, 2, tag)
			require.Regexp(t, "^"+id+" ", lines[1])
		}
		b.run("fork", "s", "--session", "v", "--tag", "two words").ends(2)
		b.run("show", "v").ends(3)
	})
}

// TestBegins: a session begins with a state and metadata; a next turn takes metadata alone.
func TestBegins(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		words := []string{"run", "--agent", "toy", "--session", "s"}
		b.run(append(words, "--state", `{"count": 3, "names": ["a"]}`, "--metadata", "order=A-17", "--metadata", "note=a=b", "--metadata", "none=", "[{say: ok}]")...).ends(0)
		shown := b.run("show", "s").ends(0).stdout
		require.Contains(t, shown, "state     replace count: 3")
		require.Contains(t, shown, `state     replace names: ["a"]`)
		entries := func(id string) (all []journal.Entry) {
			require.NoError(t, json.Unmarshal([]byte(b.run("show", id, "-o", "json").ends(0).stdout), &all))
			return all
		}
		require.Equal(t, map[string]string{"order": "A-17", "note": "a=b", "none": ""}, entries("s")[0].Metadata)

		require.Contains(t, shown, "metadata: none=, note=a=b, order=A-17\n")
		require.NotContains(t, shown, "asked of task")

		refused := b.run("run", "--session", "s", "--state", "{}", "[{say: more}]").ends(2)
		require.Contains(t, refused.stderr, "only a new session begins with one")
		b.run("run", "--session", "s", "--metadata", "order=B-1", "[{say: more}]").ends(0)
		all := entries("s")
		require.Equal(t, map[string]string{"order": "B-1"}, all[2].Metadata)

		path := b.file("state.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"from": "a file"}`+"\n"), 0o600))
		b.run("run", "--agent", "toy", "--session", "t", "--state", "@"+path, "[{say: ok}]").ends(0)
		require.Contains(t, b.run("show", "t").ends(0).stdout, `replace from: "a file"`)
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(" ", 5<<20)), 0o600))

		for _, wrong := range [][]string{
			{"--state", "[1]"},
			{"--state", "null"},
			{"--state", "{"},
			{"--state", ""},
			{"--state", "@" + b.file("nowhere")},
			{"--state", "@" + path},
			{"--metadata", "order"},
			{"--metadata", "=x"},
			{"--metadata", "a=1", "--metadata", "a=2"},
			{"--metadata", "two words=1"},
		} {
			b.run(append(append([]string{"run", "--agent", "toy", "--session", "u"}, wrong...), "[{say: ok}]")...).ends(2)
		}
		b.run("show", "u").ends(3)
		b.run("retry", "s", "--state", "{}").ends(2)
		b.run("send", "s", "--metadata", "a=1", "hi").ends(2)
	})
}
