//go:build unix

package cli_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/terminaltest"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// planted is a bench whose data file somebody else has made and put into its folder:
// in it are a call that is approved and goes on at once, and one that waits.
func planted(t *testing.T) (b *bench, ran string) {
	t.Helper()
	b, other := setup(t), setup(t)
	other.env = map[string]string{configHome: other.file("config")}
	ran = b.file("ran")
	other.start("s", deploys(ran, "web"), 10)
	other.run("resume", "s", "--approve", "w2-1", "--wait", "0s").ends(0)
	other.start("t", deploys(ran, "api"), 10)
	copyTo(t, other.data, b.data)
	return b, ran
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from) //nolint:gosec // a test's own
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
	require.NoError(t, os.WriteFile(to, text, 0o600))
}

// Nothing that works on a planted file does without being told to; what reads does.
func TestPlantedFile(t *testing.T) {
	t.Parallel()
	b, ran := planted(t)
	for _, args := range [][]string{
		{"work"},
		{"work", "--watch"},
		{"run", "--agent", "toy", "[{say: ok}]"},
		{"run", "--agent", "toy", "--session", "t", "[{say: ok}]"},
		{"resume", "s"},
		{"resume", "t", "--approve", "w2-1"},
		{"submit", "t", "w2-1", "--approve"},
		{"dev", "--addr", "127.0.0.1:0"},
	} {
		r := b.run(args...).ends(4)
		require.Contains(t, r.stderr, "--trust-data", args)
		require.NoFileExists(t, ran, args)
	}
	require.Equal(t, "data_untrusted", b.run("work", "-o", "json").ends(4).manifest().Error.Code)
	b.env["ADJOURN_TRUST_DATA"] = "false"
	b.run("work").ends(4)
	b.env["ADJOURN_TRUST_DATA"] = "perhaps"
	b.run("work").ends(2)
	b.env["ADJOURN_TRUST_DATA"] = ""
	require.NoFileExists(t, ran)

	require.Contains(t, b.run("inbox").ends(0).stdout, "deploy")
	b.run("show", "s").ends(0)
	b.run("sessions").ends(0)
	b.run("work").ends(4)

	b.run("work", "--trust-data").ends(0)
	require.Equal(t, "web\n", read(t, ran))
	b.run("resume", "t", "--approve", "w2-1").ends(0)
	require.Equal(t, "web\napi\n", read(t, ran), "it is not asked about again")
}

// Nor does a server let in who has a key in a planted folder that holds no data yet.
func TestPlantedKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := b.data + ".api-keys"
	require.NoError(t, os.MkdirAll(filepath.Dir(keys), 0o700))
	_, err := httpapi.NewAPIKey(keys, "mallory", "")
	require.NoError(t, err)
	for range 2 {
		r := b.run("dev", "--addr", "127.0.0.1:0").ends(4)
		require.Contains(t, r.stderr, "api-keys")
		require.Contains(t, r.stderr, "--trust-data")
		require.NoFileExists(t, b.data, "or the next start would take it for its own")
	}
	b.run("dev", "--addr", "192.0.2.1:1", "--trust-data").ends(2)
	require.NoFileExists(t, b.data, "an address that is refused makes nothing")
	s := startDev(t, b.install(), []string{asProgram + "=1", "ADJOURN_DATA=" + b.data}, "--trust-data")
	require.FileExists(t, b.data)
	require.Zero(t, s.interrupt())
}

// Nor does one take links for signed that whoever planted their key has made.
func TestPlantedLinkKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(b.data), 0o700))
	require.NoError(t, os.WriteFile(b.data+".link-key", []byte("dev:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\nhttp://127.0.0.1:8420\n"), 0o600))
	r := b.run("dev", "--addr", "127.0.0.1:0").ends(4)
	require.Contains(t, r.stderr, "link-key")
	require.NoFileExists(t, b.data)

	// Beside a data file that others have written it is asked about with that file.
	other, _ := planted(t)
	require.NoError(t, os.WriteFile(other.data+".link-key", []byte("dev:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\nhttp://127.0.0.1:8420\n"), 0o600))
	require.Contains(t, other.run("dev", "--addr", "127.0.0.1:0").ends(4).stderr, "--trust-data")
}

func TestTrustByEnvironment(t *testing.T) {
	t.Parallel()
	b, ran := planted(t)
	b.env["ADJOURN_TRUST_DATA"] = "true"
	b.run("work").ends(0)
	require.Equal(t, "web\n", read(t, ran))
	require.Contains(t, b.runIn(t.Context(), "", "--url", "http://127.0.0.1:1", "--trust-data", "inbox").ends(2).stderr, "belongs to a data file")
}

// On a terminal it is asked, and what was typed before is no answer.
func TestPlantedFileOnATerminal(t *testing.T) {
	t.Parallel()
	b, ran := planted(t)
	_, err := httpapi.NewAPIKey(b.data+".api-keys", "mallory", "")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	gate := b.file("gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	p := terminaltest.Sit(t, terminaltest.Program{
		Args: append([]string{"sh", "-c", `cat "$0"; exec "$@"`, gate, self}, append(b.where(), "work")...),
		Env:  b.environ("TERM=xterm", "NO_COLOR=1"), Rows: 40, Columns: 100,
	})
	p.Types("y\n").Sees("y\r\n")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	for _, says := range []string{
		"You have not worked on this data file before.", "belongs to ",
		"1 session that would go on at once: s", "1 session that waits for somebody",
		"1 call approved already", "deploy, approved by ada (session s)", `"service":"web"`,
		"is let in by adjourn dev",
		"Work on it, and do not ask again? [y]es, [N]o: ",
	} {
		p.Sees(says)
	}
	require.NoFileExists(t, ran)
	p.Types("\n")
	require.Equal(t, 4, p.Leaves(), p.All())
	require.NoFileExists(t, ran)

	ask := func(code int, answer string) {
		p := b.sit(nil, "work")
		p.Sees("[N]o: ").Types(answer)
		require.Equal(t, code, p.Leaves(), p.All())
	}
	p = b.sit(nil, "work")
	p.Sees("[N]o: ").Types("?\n").Sees("To look first, answer n").Sees("[N]o: ").Types("\n")
	require.Equal(t, 4, p.Leaves(), p.All())
	ask(4, "n\n")
	ask(4, "\x04")
	b.sitQuiet(4, "--no-input", "work")
	require.NoFileExists(t, ran)
	ask(0, "yes\n")
	require.Equal(t, "web\n", read(t, ran))
	b.sitQuiet(0, "work")
}

// sitQuiet runs the program on a terminal, where it must not ask about the data file.
func (b *bench) sitQuiet(code int, args ...string) {
	b.t.Helper()
	p := b.sit(nil, args...)
	require.Equal(b.t, code, p.Leaves(), p.All())
	require.NotContains(b.t, p.All(), "Work on it")
}

// One's own file is known where it is moved to; a copy is another, as a file is that
// takes its place.
func TestMovedAndCopied(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	first := b.data
	b.data = b.file("moved.db")
	require.NoError(t, os.Rename(first, b.data))
	b.run("work").ends(0)
	moved := b.data
	b.data = b.file("copy.db")
	copyTo(t, moved, b.data)
	b.run("work").ends(4)
	require.NoError(t, os.Rename(b.data, moved))
	b.data = moved
	b.run("work").ends(4)
	b.run("work", "--trust-data").ends(0)
	b.run("work").ends(0)
}

// A log that somebody puts beside a known file counts as its content, so it is asked
// about, and neither a refusal nor a look takes it into the file.
func TestPlantedLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	require.NoFileExists(t, b.data+"-wal")
	before := read(t, b.data)
	// A log as SQLite makes it, for a copy of the file.
	forged := b.file("forged.db")
	copyTo(t, b.data, forged)
	db, err := sql.Open("sqlite", forged)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE planted (x)")
	require.NoError(t, err)
	copyTo(t, forged+"-wal", b.data+"-wal")
	require.NoError(t, db.Close())
	planted := read(t, b.data+"-wal")
	require.NotEmpty(t, planted)

	for _, args := range [][]string{{"work"}, {"inbox"}, {"show", "s"}, {"work"}} {
		code := map[string]int{"work": 4}[args[0]]
		r := b.run(args...).ends(code)
		require.Equal(t, code == 4, strings.Contains(r.stderr, "the log beside it"), r.stderr)
		require.Equal(t, before, read(t, b.data), args)
		require.Equal(t, planted, read(t, b.data+"-wal"), args)
	}
	b.run("work", "--trust-data").ends(0)
	require.NoFileExists(t, b.data+"-wal")
	require.NotEqual(t, before, read(t, b.data))
	b.run("resume", "s", "--approve", "w2-1").ends(0)
}

// A rollback journal, which no command leaves, would be written into the file at once.
func TestPlantedJournal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	require.NoError(t, os.WriteFile(b.data+"-journal", []byte("planted"), 0o600))
	for _, args := range [][]string{{"work", "--trust-data"}, {"inbox"}} {
		require.Contains(t, b.run(args...).ends(4).stderr, "-journal lies beside the data file")
	}
	require.FileExists(t, b.data+"-journal")
}

func TestDataOfOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	require.NoError(t, os.Chmod(filepath.Dir(b.data), 0o777)) //nolint:gosec // that is the point
	r := b.run("work", "--trust-data", "-o", "json").ends(4)
	require.Contains(t, r.stderr, "chmod go-w")
	require.Equal(t, "data_of_others", r.manifest().Error.Code)
	b.run("show", "s").ends(0)
}

// Several commands at once on a file that is not there yet: each finds it known.
func TestManyMakeOneFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r := b.run("run", "--agent", "hello", "hi"); r.code != 0 {
				t.Errorf("exit %d: %s", r.code, r.stderr)
			}
		})
	}
	wg.Wait()
	b.run("work").ends(0)
}

// Where nothing can be remembered, making a file works, and what comes after names the flag.
func TestNothingCanBeRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.env = map[string]string{"TMPDIR": filepath.Join(os.DevNull, "x")}
	r := b.run("run", "--agent", "toy", "--session", "s", "[{call: deploy, with: {service: a}}, {say: ok}]").ends(10)
	require.Contains(t, r.stderr, "cannot be remembered")
	require.Contains(t, r.stderr, "--trust-data")
	require.Contains(t, b.run("resume", "s", "--approve", "w2-1").ends(4).stderr, "--trust-data")
	r = b.run("resume", "s", "--approve", "w2-1", "--trust-data").ends(0)
	require.NotContains(t, r.stderr, "remembered")
}

// What else lies in the folder and is read there may be planted, too.
func TestPlantedPauseFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start("s", "[{call: deploy, with: {service: a}}, {say: ok}]", 10)
	pause := filepath.Join(filepath.Dir(b.data), "pause.json")
	require.NoError(t, os.Remove(pause))
	require.NoError(t, syscall.Mkfifo(pause, 0o600)) // to read it would wait for ever
	require.Contains(t, b.run("resume", "s", "--approve", "w2-1").ends(0).stderr, "no plain file")
}
