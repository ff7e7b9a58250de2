package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestStop: a task is stopped from another terminal, goes on, is ended; the next turn begins.
func TestStop(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		log := b.file("log")
		b.start("s", deploys(log, "a", "b"), 10)
		require.Contains(t, b.run("interrupt", "s", "--reason", "wrong cluster").ends(0).stdout, "interrupted")
		require.Contains(t, b.run("interrupt", "s").ends(0).stderr, "Nothing was done: it is interrupted.")
		require.Contains(t, b.run("show", "s").ends(0).stdout, "wrong cluster")

		require.Contains(t, b.run("submit", "s", "w2-1", "--approve").ends(0).stderr, "The answer is stored")
		b.run("resume", "s").ends(10)
		require.Contains(t, b.run("inbox").ends(0).stdout, "w2-2", "the same wait, under the same id")

		require.Contains(t, b.run("cancel", "s", "--task", "1").ends(0).stdout, "Session s is cancelled.")
		require.NoFileExists(t, log, "what was approved and had not run never will")
		require.Contains(t, b.run("cancel", "s").ends(0).stderr, "Nothing was done: it is cancelled.")
		b.run("submit", "s", "w2-2", "--approve").ends(5)
		b.run("run", "--session", "s", "--agent", "toy", "[{say: more}]").ends(0)
		require.Contains(t, b.run("abort", "s").ends(0).stderr, "Nothing was done: it is completed.")
		b.run("interrupt", "s").ends(5)
		b.run("cancel", "s", "--task", "9").ends(2)

		b.start("t", deploys(log, "a"), 10)
		var manifest struct {
			Outcome session.Outcome `json:"outcome"`
		}
		require.NoError(t, json.Unmarshal([]byte(b.run("abort", "t", "-o", "json").ends(0).stdout), &manifest))
		next := b.run("run", "--session", "t", "[{say: on}]").ends(5).stderr
		require.Contains(t, next, "It was aborted: go back to a checkpoint, or start another session")
		require.NotContains(t, next, "Retry it")
		require.Equal(t, session.OutcomeFailed, manifest.Outcome)
		require.Contains(t, b.run("show", "t").ends(0).stdout, "Aborted by")
		b.run("cancel", "nobody").ends(3)
	})
}

// A worker is told, and the command waits for it; over HTTP, and beside another process on the file.
func TestStop_what_works(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := b.where()
	b.run("run", "--agent", "toy", "--session", "first", "[{say: hi}]").ends(0) // the file is known
	b.serve()
	for verb, outcome := range map[string]session.Outcome{"cancel": session.OutcomeCancelled, "interrupt": session.OutcomeInterrupted} {
		for name, where := range map[string][]string{"url": b.where(), "data": file} {
			id := verb + "-" + name
			b.run("run", "--agent", "toy", "--session", id, "--wait", "0s", "[{call: hang}, {say: done}]").ends(0)
			var manifest struct {
				Outcome session.Outcome `json:"outcome"`
			}
			r := b.runIn(t.Context(), "", append(where, verb, id, "-o", "json")...).ends(0)
			require.NoError(t, json.Unmarshal([]byte(r.stdout), &manifest))
			require.Equal(t, outcome, manifest.Outcome)
		}
	}
}
