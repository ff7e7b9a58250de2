package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
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
		require.Contains(t, b.run("inbox").ends(0).stdout, " submit q "+wait+" --reply")
		require.Equal(t, "done\n", b.run("submit", "q", wait, "--reply", "no").ends(0).stdout)
		require.Contains(t, b.run("submit", "q", wait, "--reply", "no").ends(0).stderr, "Already settled")
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
			require.Contains(t, out, " submit --reject -- "+id+" w2-1\n")
			require.Contains(t, out, " submit --approve -- "+id+" w2-1\n")
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

// TestApproveAllSaysWhatItApproves: who says all without a checkpoint has seen nobody
// knows what; the command that says it is printed, and approves that and no more.
func TestApproveAllSaysWhatItApproves(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		log := b.file("log")
		script := "[{calls: [{call: deploy, with: {service: web, log: " + log + "}}, {call: deploy, with: {service: api, log: " + log + "}}]}, {call: deploy, with: {service: PROD-DB-WIPE, log: " + log + "}}, {say: ok}]"
		first := b.start("s", script, 10)
		r := b.run("resume", "s", "--approve-all", "--reject", "w2-2", "--reason", "not api", "-o", "json").ends(2)
		require.Contains(t, r.stderr, "w2-1  approval of deploy  {")
		require.NotContains(t, r.stderr, `"service":"api"`, "that one is not approved")
		m := r.manifest()
		require.Equal(t, "usage", m.Error.Code)
		require.Equal(t, first.PauseReason, m.PauseReason)
		require.Contains(t, m.ResumeHint, " resume -c "+first.CheckpointID+" --approve-all --reject w2-2 --reason 'not api'")
		require.Contains(t, r.stderr, m.ResumeHint)
		require.Empty(t, read(t, log))

		b.shell(m.ResumeHint).ends(10)
		require.Equal(t, "web\n", read(t, log))
		require.Contains(t, b.shell(m.ResumeHint).ends(10).stderr, "Already settled")
		b.run("resume", "-c", first.CheckpointID, "--approve-all").ends(5)
		require.Contains(t, b.run("resume", "s", "--approve-all").ends(2).stderr, "PROD-DB-WIPE")
		require.Equal(t, "web\n", read(t, log), "what came after it was approved by nobody")
		b.run("resume", "s", "--reject-all").ends(0)
		b.run("resume", "s", "--approve-all").ends(5)
		edited := b.start("e", deploys(log, "a", "b"), 10)
		hint := b.run("resume", "e", "--approve-all", "--edit", `w2-1={"service": "it's"}`, "-o", "json").ends(2).manifest().ResumeHint
		require.Contains(t, hint, edited.CheckpointID)
		b.shell(hint).ends(0)
		require.Contains(t, b.run("show", "e").stdout, `"deployed it's"`)
	})
}

// TestApproveAllOnATerminal: there it is shown first, and only a yes is one.
func TestApproveAllOnATerminal(t *testing.T) {
	t.Parallel()
	const all = "Approve all 2? [y]es, [N]o: "
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b", "c"), 10)
		for _, typed := range []string{"\n", "n\n", "\x03"} {
			p := b.sit(nil, "resume", "s", "--approve-all", "--reject", "w2-3")
			p.Sees(`"service": "a"`).Sees(`"service": "b"`).Sees("rejected: approval of deploy  w2-3").Sees(all).Types(typed)
			require.Equal(t, 10, p.Leaves(), p.All())
			require.Empty(t, read(t, log))
		}
		p := b.sit(nil, "resume", "s", "--approve-all", "--reject", "w2-3")
		p.Sees(all).Types("sure\n").Sees(all).Types("y\n")
		require.Equal(t, 0, p.Leaves(), p.All())
		require.ElementsMatch(t, []string{"a", "b"}, splitLines(read(t, log)))

		// Somebody else decides while the person looks, and something else waits by then.
		b.start("t", "[{call: deploy, with: {service: web, log: "+log+"}}, {call: deploy, with: {service: PROD-DB-WIPE, log: "+log+"}}, {say: ok}]", 10)
		p = b.sit(nil, "resume", "t", "--approve-all")
		p.Sees("Approve it? ")
		b.run("resume", "t", "--reject", "w2-1").ends(10)
		p.Types("y\n")
		require.Equal(t, 5, p.Leaves(), p.All())
		require.NotContains(t, read(t, log), "WIPE")
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

// TestHintsBesideADecidedApproval: where one of two approvals is answered, every
// command that is printed answers the other one, and works.
func TestHintsBesideADecidedApproval(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		for name, look := range map[string]func(id string) string{
			"submit": func(id string) string { return b.run("submit", id, "w2-1", "--reject").ends(10).stdout },
			"show":   func(id string) string { return b.run("show", id).ends(0).stdout },
			"inbox":  func(id string) string { return b.run("inbox", "--root", id).ends(0).stdout },
			"resume": func(id string) string { return b.run("resume", id, "-o", "json").ends(5).stdout },
			"all":    func(id string) string { return b.run("resume", id, "--approve-all").ends(2).stderr },
			"on a terminal": func(id string) string {
				p := b.sit(nil, "resume", id)
				p.Sees(prompt).Types("\x03")
				require.Equal(t, 10, p.Leaves(), p.All())
				return p.All()
			},
		} {
			id, log := strings.ReplaceAll(name, " ", "-"), b.file(name)
			b.start(id, deploys(log, "a", "b"), 10)
			if name != "submit" {
				b.run("submit", id, "w2-1", "--reject").ends(10)
			}
			text := look(id)
			if name != "resume" {
				require.Contains(t, text, " submit "+id+" w2-2 --approve", name)
				require.NotContains(t, text, "-c ", name)
				b.run("submit", id, "w2-2", "--approve").ends(0)
				require.Equal(t, "b\n", read(t, log))
			}
		}
	})
}

// TestApproveAllBesideADecidedApproval: what is approved is what was shown, and
// what was decided before stays so.
func TestApproveAllBesideADecidedApproval(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b", "c"), 10)
		b.run("submit", "s", "w2-1", "--reject").ends(10)
		p := b.sit(nil, "resume", "s", "--approve-all")
		p.Sees("Approve all 2? ").Types("y\n")
		require.Equal(t, 0, p.Leaves(), p.All())
		require.ElementsMatch(t, []string{"b", "c"}, splitLines(read(t, log)))

		b.start("t", deploys(log, "d", "e", "f"), 10)
		b.run("submit", "t", "w2-1", "--reject").ends(10)
		paste := b.run("resume", "t", "--approve-all", "--reject", "w2-2", "--reason", "not now", "-o", "json").ends(2).manifest().ResumeHint
		self := place.Quote(b.install()) + " --"
		require.Equal(t, 0, b.shell(strings.ReplaceAll(paste, "adjourn --", self)).code, paste)
		require.ElementsMatch(t, []string{"b", "c", "f"}, splitLines(read(t, log)))
	})
}

// TestLateAtAPrompt: a decision at a prompt that others overtook is not said to count,
// and nothing else is asked of what the session has left behind.
func TestLateAtAPrompt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b"), 10)
		p := b.sit(nil, "resume", "s")
		p.Sees(prompt)
		b.run("resume", "s", "--approve", "w2-1", "--approve", "w2-2").ends(0)
		p.Types("n\n")
		require.Equal(t, 5, p.Leaves(), p.All())
		require.NotContains(t, p.All(), "Rejected")
		require.NotContains(t, p.All(), `"service": "b"`)
		require.Contains(t, p.All(), "answered before")

		b.start("t", deploys(log, "c", "d"), 10)
		p = b.sit(nil, "resume", "t")
		p.Sees(prompt)
		b.run("submit", "t", "w2-2", "--approve").ends(10)
		p.Types("n\n")
		require.Equal(t, 0, p.Leaves(), p.All())
		require.Contains(t, p.All(), "Rejected")
		require.NotContains(t, p.All(), `"service": "d"`)
	})
}

// TestBoundToAnEntry: -c takes the number of an entry too, of the session that is named, as that of fork.
func TestBoundToAnEntry(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.start("s", "[{need: where?}, {call: deploy, with: {service: a}}, {say: done}]", 10)
		require.Contains(t, b.run("resume", "-c", "2", "--approve-all").ends(2).stderr, "name the session too")
		require.Contains(t, b.run("resume", "s", "-c", "9", "here").ends(3).stderr, "entry 9 is no checkpoint")
		b.run("resume", "s", "-c", "1", "here").ends(5)
		b.run("resume", "s", "-c", "2", "here").ends(10)
		b.run("resume", "s", "-c", "2", "here").ends(10) // a repeat
		b.run("resume", "s", "-c", "2", "--approve-all").ends(5)
		require.Equal(t, "done\n", b.run("resume", "s", "-c", "4", "--approve-all").ends(0).stdout)
		b.run("resume", "nobody", "-c", "2").ends(3)
	})
}
