package cli_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// hold has somebody hold a data file for writing, as a worker does that is stopped
// inside a commit, until the function it returns is called.
func (b *bench) hold() (release func()) {
	b.t.Helper()
	db, err := sql.Open("sqlite", b.data)
	require.NoError(b.t, err)
	conn, err := db.Conn(b.t.Context())
	require.NoError(b.t, err)
	_, err = conn.ExecContext(b.t.Context(), "BEGIN IMMEDIATE")
	require.NoError(b.t, err)
	return func() {
		b.t.Helper()
		_, err := conn.ExecContext(b.t.Context(), "ROLLBACK")
		require.NoError(b.t, err)
		require.NoError(b.t, conn.Close())
		require.NoError(b.t, db.Close())
	}
}

// TestWaitForAHeldFile: --wait bounds how long a command waits for another process, too,
// and nothing is written then; what only looks does not wait at all.
func TestWaitForAHeldFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	b.run("run", "--agent", "toy", "--session", "u", "--wait", "0s", "[{say: ok}]").ends(0)
	release := b.hold()
	began := time.Now()
	for _, args := range [][]string{
		{"resume", "s", "--approve", "w2-1"},
		{"submit", "s", "w2-1", "--approve"},
		{"run", "--agent", "toy", "--session", "t", "[{say: ok}]"},
		{"resume", "u"},
		{"work"},
	} {
		r := b.run(append(args, "--wait", "30ms")...).ends(124)
		if args[0] != "work" && args[1] != "u" { // these wait for work, too, and that time is over as well
			require.Contains(t, r.stderr, "another process holds it: waited 30ms", args)
		}
		require.NotContains(t, r.stderr, "store unavailable")
	}
	require.Contains(t, b.run("show", "s").ends(0).stdout, "--approve w2-1")
	require.Contains(t, b.run("inbox").ends(0).stdout, "--approve")
	require.Less(t, time.Since(began), sqlite.WaitFor, "none of them waited as long as one without --wait")
	release()
	require.Equal(t, session.OutcomeCompleted, b.run("resume", "s", "--approve", "w2-1", "-o", "json").ends(0).manifest().Outcome)
	b.run("show", "t").ends(3)
}
