package cli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestSend: a message to what works, waits, has ended, was interrupted, has failed.
func TestSend(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.run("run", "--agent", "toy", "--session", "s", "--wait", "0s", "[{call: hang}, {say: done}]").ends(0)
		said := b.run("send", "s", "only the green ones").ends(0)
		require.Contains(t, said.stdout, "The message is stored: task 1 takes it in with its next step.")
		require.Equal(t, session.OutcomeRunning, b.run("send", "s", "--task", "1", "--idempotency-key", "k", "-o", "json", "and hurry").ends(0).manifest().Outcome)
		require.Contains(t, b.run("send", "s", "--task", "1", "--idempotency-key", "k", "and hurry").ends(0).stderr, "This message was taken before")
		b.run("cancel", "s").ends(0)
		shown := b.run("show", "s").ends(0).stdout
		require.Equal(t, 1, strings.Count(shown, "only the green ones"), "%s", shown)
		require.Equal(t, 1, strings.Count(shown, "and hurry"), "%s", shown)
		require.Less(t, strings.Index(shown, "and hurry"), strings.Index(shown, "Cancelled by user"), "%s", shown)

		refused := b.run("send", "s", "more").ends(5)
		require.Contains(t, refused.stderr, "it is cancelled, and nobody reads a message")
		require.Contains(t, b.sameAs(refused.stderr), "run --session s more")
		require.Contains(t, b.run("send", "s", "--start", "[{need: where?}, {say: thanks}]").ends(10).stdout, "where?")
		require.Contains(t, b.run("send", "s", "Bern").ends(0).stdout, "thanks")
		b.run("send", "s", "--start", "--task", "1", "more").ends(5)
		b.run("send", "s", "--start", "--task", "9", "more").ends(2)

		b.start("t", deploys(log, "a"), 10)
		require.Contains(t, b.run("send", "t", "Bern").ends(5).stderr, "not for a message")
		b.run("interrupt", "t").ends(0)
		refused = b.run("send", "t", "now").ends(5)
		require.Contains(t, refused.stderr, "Resume it with the message")
		require.Contains(t, b.sameAs(refused.stderr), "resume t now")
		b.run("abort", "t").ends(0)
		require.Contains(t, b.run("send", "t", "--start", "now").ends(5).stderr, "for good")

		require.Contains(t, b.run("send", "s").ends(2).stderr, "the message is missing")
		require.Contains(t, b.run("send", "s", " ").ends(2).stderr, "the message is empty")
		require.Contains(t, b.run("send", "s", "MESSAGE").ends(2).stderr, "a word to replace")
		b.run("send", "nobody", "x").ends(3)
	})
}

// A working agent is steered from another terminal: what it is told takes the place of its plan.
func TestSend_steers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := b.where()
	b.run("run", "--agent", "toy", "--session", "first", "[{say: hi}]").ends(0)
	b.serve()
	for name, where := range map[string][]string{"url": b.where(), "data": file} {
		gate := b.file("gate-" + name)
		b.run("run", "--agent", "toy", "--session", name, "--wait", "0s", "[{call: gate, with: {service: "+gate+"}}, {call: hang}, {say: as planned}]").ends(0)
		require.Eventually(t, func() bool { return exists(gate + ".reached") }, time.Minute, 5*time.Millisecond)
		b.runIn(t.Context(), "", append(where, "send", name, "[{say: steered}]")...).ends(0)
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		require.Eventually(t, func() bool { return b.status(name) == session.StatusCompleted }, time.Minute, 5*time.Millisecond)
		shown := b.run("show", name).ends(0).stdout
		require.Contains(t, shown, "assistant steered")
		require.NotContains(t, shown, "assistant as planned")
	}
}
