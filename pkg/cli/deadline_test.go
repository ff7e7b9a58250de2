package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
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
		"silence":  {"[{call: silence, with: {service: a}}, {say: ok}]", "--approve w2-1", "it is approved", "approved by its deadline"},
		"question": {"[{call: soon}, {say: ok}]", "--select CHOICE", `the answer is "red"`, `["red"]`},
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
				require.Contains(t, shown, "by its deadline")
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

// TestDeadlineThatIsTakenForAYes: who is asked is told that silence is a yes.
func TestDeadlineThatIsTakenForAYes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	script := "[{call: silence, with: {service: a}}, {say: ok}]"
	for _, out := range []string{
		b.run("run", "--agent", "toy", "--session", "s", script).ends(10).stdout, b.run("inbox").ends(0).stdout, b.run("show", "s").ends(0).stdout,
	} {
		require.Contains(t, out, ", then: it is approved\n")
	}
	m := b.run("run", "--agent", "toy", "--session", "t", "-o", "json", script).ends(10).manifest()
	require.Equal(t, session.ExpireDefault, m.PauseReason.PendingToolCalls[0].OnDeadline)
	require.JSONEq(t, "true", string(m.PauseReason.PendingToolCalls[0].DeadlineValue))
}

// TestAnswerAfterTheDeadline: it is refused with what is true then, and every command
// says the same of the session until somebody goes on.
func TestAnswerAfterTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: silence, with: {service: a}}, {say: ok}]", 10)
	b.ahead.Store(int64(2 * time.Hour))
	goOn := " resume s\n"
	for range 2 { // it is recorded, and then found recorded
		refused := b.run("submit", "s", "w2-1", "--reject").ends(5)
		require.Contains(t, refused.stderr, ": its declared outcome counts as soon as the session goes on; nothing has run yet\n")
		require.Contains(t, refused.stderr, "its deadline has passed; go on with: adjourn "+b.words()+goOn)
	}
	shown := b.run("show", "s").ends(0).stdout
	require.Contains(t, shown, "session s  toy  suspended  1 step ")
	require.Contains(t, shown, "no process has gone on with it yet:\n  w2-1  approval of silence: approved, by its deadline, ")
	require.Contains(t, shown, "To go on:\n  adjourn "+b.words()+goOn)
	require.NotContains(t, shown, "running")
	inbox := b.run("inbox").ends(0).stdout
	require.Contains(t, inbox, "a deadline has passed  session s, toy\n  w2-1  approval of silence: approved, by its deadline, ")
	require.Contains(t, inbox, "  go on: adjourn "+b.words()+goOn)
	require.Regexp(t, `s +suspended `, b.run("sessions").ends(0).stdout)
	require.Equal(t, "ok\n", b.run("resume", "s").ends(0).stdout)
	require.Contains(t, b.run("submit", "s", "w2-1", "--reject").ends(5).stderr, ": what was declared for its deadline counted instead")
	require.Contains(t, b.run("inbox").ends(0).stderr, "Nothing waits")
}
