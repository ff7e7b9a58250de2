package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeys: a command that is repeated under its key does nothing again, and prints where its session
// stands; another request under the same key is refused.
func TestKeys(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		const again = "This request was carried out before"
		entries := func(id string) int { return strings.Count(b.run("export", id).ends(0).stdout, "\n") }
		repeated := func(code int, words ...string) result {
			t.Helper()
			require.NotContains(t, b.run(words...).ends(code).stderr, again)
			r := b.run(words...).ends(code)
			require.Contains(t, r.stderr, again)
			return r
		}
		b.run("run", "--agent", "toy", "--session", "s", "[{fail: auth}]").ends(1)
		require.Equal(t, "well\n", repeated(0, "retry", "s", "--idempotency-key", "k", "[{say: well}]").stdout)
		require.Equal(t, 4, entries("s"))
		b.run("retry", "s", "--idempotency-key", "k", "[{say: worse}]").ends(5)

		require.Equal(t, "back\n", repeated(0, "resume", "s", "--from-checkpoint", "1", "--idempotency-key", "k", "[{say: back}]").stdout)
		require.Equal(t, 6, entries("s"))
		require.Contains(t, b.run("resume", "s", "--idempotency-key", "k").ends(2).stderr, "belongs to --from-checkpoint")

		require.Equal(t, "fork\n", repeated(0, "fork", "s", "--idempotency-key", "k", "[{say: fork}]").stdout)
		require.Equal(t, 1, strings.Count(b.run("sessions", "--forked-from", "s").ends(0).stdout, " toy "))
		b.run("fork", "s", "--session", "rests", "--idempotency-key", "rests").ends(0)
		require.Equal(t, "on\n", b.run("resume", "rests", "[{say: on}]").ends(0).stdout)
		require.Equal(t, "on\n", b.run("fork", "s", "--session", "rests", "--idempotency-key", "rests").ends(0).stdout, "it is told where it stands now")

		for range 2 {
			require.Contains(t, b.run("delete", "s", "--yes", "--idempotency-key", "k").ends(0).stdout, "Session s is deleted.")
		}
		b.run("delete", "s", "--yes").ends(3)
		b.run("retry", "s", "--idempotency-key", "").ends(2)
	})
}

// The command that acknowledges effects has the key too, so that it may be pasted twice.
func TestKeys_acknowledged(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bench) {
		b.program = b.install()
		log := b.file("log")
		b.start("s", deploys(log, "a"), 10)
		b.run("resume", "s", "--approve", "w2-1").ends(0)
		hint := b.run("resume", "s", "--from-checkpoint", "1", "--idempotency-key", "k", "-o", "json", "[{say: back}]").ends(5).manifest().ResumeHint
		require.Contains(t, hint, " --from-checkpoint 1 --idempotency-key k --acknowledge ")
		require.Equal(t, "back\n", b.shell(hint).ends(0).stdout)
		require.Contains(t, b.shell(hint).ends(0).stderr, "carried out before")
	})
}
