package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every command that is printed decides what was shown beside it, and nothing else.

func TestHintOfAnInputAnswersThatQuestionOnly(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		m := b.run("run", "--agent", "toy", "--session", "q", "-o", "json", `[{need: "which?"}, {need: "really delete all?"}, {say: done}]`).ends(10).manifest()
		require.Contains(t, m.ResumeHint, "resume -c "+m.CheckpointID)
		answer := []string{"resume", "-c", m.CheckpointID, "the first"}
		next := b.run(append(answer, "-o", "json")...).ends(10).manifest()
		require.Equal(t, "really delete all?", next.AgentMessage)
		again := b.run(append(answer, "-o", "json")...).ends(10).manifest()
		require.Equal(t, next.CheckpointID, again.CheckpointID, "pasted again it answers nothing")
		b.run("resume", "-c", m.CheckpointID, "something else").ends(5)

		wait := next.PauseReason.Pending[0].WaitID
		require.Contains(t, b.run("inbox").ends(0).stdout, "--call "+wait+" --reply")
		require.Equal(t, "done\n", b.run("submit", "q", "--call", wait, "--reply", "no").ends(0).stdout)
		require.Contains(t, b.run("submit", "q", "--call", wait, "--reply", "no").ends(0).stderr, "Already settled")
	})
}

func TestInboxRejectsInItsOwnSession(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		for _, id := range []string{"--approve", "--reject", "-x"} {
			b.run("run", "--agent", "toy", "--session="+id, "--no-input", deploys(log, "web")).ends(10)
		}
		out := b.run("inbox").ends(0).stdout
		for _, id := range []string{"--approve", "--reject", "-x"} {
			require.Contains(t, out, "--call w2-1 --reject -- "+id+"\n")
			require.Contains(t, out, "--call w2-1 --approve -- "+id+"\n")
		}
		require.Empty(t, read(t, log))
	})
}

func TestRefusalShowsBeforeItOffersToDecide(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		old := b.run("run", "--agent", "toy", "--session", "s", "-o", "json", "[{call: deploy, with: {service: a, log: "+log+"}}, {call: deploy, with: {service: b, log: "+log+"}}]").ends(10).manifest()
		b.run("resume", "-c", old.CheckpointID, "--approve-all").ends(10)
		refused := b.run("resume", "-c", old.CheckpointID, "--reject-all").ends(5)
		require.Contains(t, refused.stderr, "show s")
		require.NotContains(t, refused.stderr, "--approve")
	})
}

func TestInvisibleCharactersAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for id, hidden := range map[string]string{"selector": "\ufe01", "joiner": "\u200d", "grapheme": "\u034f", "supplement": "\U000e0100"} {
		out := b.run("run", "--agent", "toy", "--session", id, "--no-input", `[{call: deploy, with: {service: "b`+hidden+`.txt"}}]`).ends(10).stdout
		require.NotContains(t, out, hidden)
		require.Contains(t, out, `b\`)
	}
}

func TestMessageThatIsTheSessionsName(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		m := b.run("run", "--agent", "toy", "--session", "yes", "-o", "json", `[{need: "delete all?"}, {say: done}]`).ends(10).manifest()
		require.Contains(t, b.run("resume", "-c", m.CheckpointID, "yes").ends(2).stderr, "name both")
		require.Equal(t, "done\n", b.run("resume", "-c", m.CheckpointID, "yes", "yes").ends(0).stdout)
	})
}
