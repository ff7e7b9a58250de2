package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bothUnswept is both with a server that has no sweep, which would come first.
func bothUnswept(t *testing.T, story func(t *testing.T, b *bench)) {
	t.Helper()
	bothOver(t, func(b *bench) { b.serveWith(nil) }, story)
}

// TestDeadlineThatHasPassed: it does not look open, no command is printed that comes too
// late, and the one that is printed lets it expire and goes on.
func TestDeadlineThatHasPassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, answer, means, told string }{
		"approval": {"[{call: urgent, with: {service: a}}, {say: ok}]", "--approve w2-1", "it counts as a no", "Nobody decided"},
		"question": {"[{call: soon}, {say: ok}]", "--select CHOICE", "its default counts", `["red"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothUnswept(t, func(t *testing.T, b *bench) {
				b.program = b.install()
				m := b.start("s", c.script, 10)
				require.Contains(t, m.ResumeHint, c.answer)
				require.Contains(t, b.run("inbox").ends(0).stdout, "until ")
				b.ahead.Store(int64(2 * time.Hour))
				item := append(m.PauseReason.PendingToolCalls, m.PauseReason.Pending...)[0]
				passed := "its deadline passed at " + item.Deadline.Format(time.RFC3339) + ": " + c.means + " as soon as the session goes on\n"
				for _, look := range [][]string{{"inbox"}, {"show", "s"}} {
					out := b.run(look...).ends(0).stdout
					require.Contains(t, out, passed)
					require.Contains(t, out, " resume s\n")
					require.NotRegexp(t, "--(approve|reject|select)", out)
				}
				require.Contains(t, b.run("inbox", "-o", "json").ends(0).stdout, ` resume s"`)
				resumed := b.run("resume", "s").ends(0)
				require.Equal(t, "ok\n", resumed.stdout)
				require.Contains(t, resumed.stderr, strings.TrimSpace(passed), "the person is told why it went on")
				shown := b.run("show", "s").ends(0).stdout
				require.Contains(t, shown, c.told)
				require.Contains(t, shown, "by deadline")
			})
		})
	}
}

// TestDeadlineOfOneOfSeveral: what is still open is said, with the commands for it.
func TestDeadlineOfOneOfSeveral(t *testing.T) {
	t.Parallel()
	bothUnswept(t, func(t *testing.T, b *bench) {
		m := b.start("s", "[{calls: [{call: urgent, with: {service: a}}, {call: deploy, with: {service: b}}]}, {say: ok}]", 10)
		require.Contains(t, m.ResumeHint, "--approve-all")
		b.start("t", "[{call: urgent, with: {service: a}}, {say: ok}]", 10)
		b.ahead.Store(int64(2 * time.Hour))
		require.Contains(t, b.run("submit", "t", "w2-1", "--approve").ends(5).stderr, "w2-1 (approval of urgent) expired at")
		out := b.run("show", "s").ends(0).stdout
		require.Contains(t, out, "its deadline passed at ")
		require.Contains(t, out, b.words()+" resume s\n")
		r := b.run("resume", "s").ends(5)
		require.Contains(t, r.stderr, "it still waits for w2-2 (approval of deploy). Answer that first")
		out = b.run("show", "s").ends(0).stdout
		require.NotContains(t, out, "its deadline passed")
		require.Contains(t, out, "submit s w2-2 --approve")
		require.Equal(t, "ok\n", b.run("submit", "s", "w2-2", "--approve").ends(0).stdout)
	})
}
