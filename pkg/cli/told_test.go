package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCutOff: what is said of a session that is left in the middle depends on whether a
// tool with an effect was running.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for tool, says := range map[string]string{
		"send": "has work left. A tool with an effect may have been interrupted; its outcome may be unknown.",
		"hang": "has work left; nothing is lost.",
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.run("run", "--agent", "toy", "--session", "s", "--wait", "500ms", "[{call: "+tool+"}, {say: ok}]").ends(124)
			require.Contains(t, r.stdout, says)
		})
	}
}

// TestSeveralWaitsInOneFlag: the way in which several waits are named is said where
// somebody writes them in another way.
func TestSeveralWaitsInOneFlag(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := "{call: deploy, with: {service: a}}"
	pause := b.run("run", "--agent", "toy", "--session", "s", "[{calls: ["+call+", "+call+", "+call+"]}, {say: ok}]").ends(10)
	require.Contains(t, pause.stdout, "--approve w2-1 --approve w2-2\n")
	for _, words := range [][]string{
		{"--approve", "w2-1", "w2-2"}, {"--approve", "w2-1,w2-2"}, {"--reject", "w2-1, w2-2"}, {"--approve", "w2-1", "w2-2,w2-3"},
	} {
		r := b.run(append([]string{"resume", "s"}, words...)...).ends(2)
		require.Contains(t, r.stderr, "each wait has its own flag, as in --approve w3-1 --approve w3-2")
	}
}

// TestWaitsOfAnAgentOfAnother: an answer can be given here, and it is said where the
// session goes on.
func TestWaitsOfAnAgentOfAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	b.run("run", "--agent", "toy", "--session", "running", "--wait", "0s", "[{say: ok}]").ends(0)
	b.registry = another
	for _, words := range [][]string{{"inbox"}, {"show", "s"}, {"show", "running"}} {
		require.Contains(t, b.run(words...).ends(0).stdout, "Its agent toy is not in this program", words)
	}
	require.NotContains(t, b.run("show", "running").ends(0).stdout, "go on:\n  \n")
}

// TestFailedSession: the commands that try a failed session again, and that start another one, are
// printed where that is told.
func TestFailedSession(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		next := b.words() + " run --session NEW-ID --agent toy MESSAGE"
		require.Contains(t, b.run("run", "--agent", "toy", "--session", "s", "[{fail: auth}]").ends(1).stderr, next)
		again := b.run("run", "--session", "s", "again").ends(5).stderr
		require.Contains(t, again, "to start another session: ")
		require.Contains(t, again, " "+b.words()+" retry s")
		b.run("abort", "t").ends(3)
		b.start("t", "[{call: deploy, with: {service: web}}, {say: ok}]", 10)
		b.run("abort", "t").ends(0)
		require.Contains(t, b.run("run", "--session", "t", "again").ends(5).stderr, b.words()+" resume t --from-checkpoint ENTRY")
		require.Contains(t, b.run("resume", "t", "--from-checkpoint", "ENTRY").ends(2).stderr, "ENTRY is a word to replace")
		require.Contains(t, b.run("run", "--session", "s", "again").ends(5).stderr, next)
		require.Contains(t, b.run("run", "--session", "NEW-ID", "--agent", "toy", "[{say: ok}]").ends(2).stderr, "NEW-ID is a word to replace")
	})
}
