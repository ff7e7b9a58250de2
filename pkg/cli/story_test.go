package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/session"
)

// build makes the real program, with the agents people get.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := filepath.Join(t.TempDir(), "adjourn")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/adjourn")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released; what other tests built can be used
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// sh runs a line in a folder without a terminal.
func sh(t *testing.T, dir, line string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ADJOURN_DATA=", "ADJOURN_AGENT=", "ADJOURN_MODEL=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return result{t: t, code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	program := build(t)
	dir := filepath.Join(t.TempDir(), "a demo")
	r := sh(t, t.TempDir(), "'"+program+"' demo --dir '"+dir+"'").ends(0)
	for _, text := range []string{"exit code is 10", "approval of delete_file", "Already settled", "What to try next", "--approve-all"} {
		require.Contains(t, r.stdout, text)
	}
	require.FileExists(t, filepath.Join(dir, "sample", "photos", "sunrise.jpg"))
	require.NoFileExists(t, filepath.Join(dir, "sample", "photos", "sunrise copy.jpg"))
	require.FileExists(t, filepath.Join(dir, "sample", "notes.txt"))
	require.NoFileExists(t, filepath.Join(dir, "sample", "old", "notes (1).txt"))

	// What it says to try next works.
	_, next, found := strings.Cut(r.stdout, "What to try next")
	require.True(t, found)
	var codes []int
	for line := range strings.Lines(next) {
		line, command := strings.CutPrefix(line, "    ")
		if !command || strings.Contains(line, "openai:") || strings.Contains(line, "sleep") {
			continue
		}
		codes = append(codes, sh(t, t.TempDir(), line).code)
	}
	require.Equal(t, []int{0, 10, 10, 0}, codes, "cp, the janitor pauses, the lab asks, nothing is left to work on")

	r = sh(t, t.TempDir(), "'"+program+"' demo --dir '"+dir+"'").ends(2)
	require.Contains(t, r.stderr, "not empty")
}

func TestJanitor(t *testing.T) {
	t.Parallel()
	program := build(t)
	dir := t.TempDir()
	files := filepath.Join(dir, "files")
	for name, text := range map[string]string{"a.txt": "same", "b.txt": "same", "c.txt": "other"} {
		require.NoError(t, os.MkdirAll(files, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(files, name), []byte(text), 0o644))
	}
	count := func() int {
		t.Helper()
		left, err := os.ReadDir(files)
		require.NoError(t, err)
		return len(left)
	}
	r := sh(t, dir, "'"+program+"' run --agent janitor --output json files").ends(10)
	require.Equal(t, 3, count(), "nothing is deleted before it is approved")
	m := r.manifest()
	require.NotContains(t, m.ResumeHint, "--data", "the default data file need not be named")
	require.Equal(t, session.PauseToolApproval, m.PauseReason.Type)
	require.FileExists(t, filepath.Join(dir, ".adjourn", "pause.json"))
	require.FileExists(t, filepath.Join(dir, ".adjourn", ".gitignore"))

	sh(t, dir, m.ResumeHint).ends(0)
	require.Equal(t, 2, count())
	require.FileExists(t, filepath.Join(files, "c.txt"))
	require.Contains(t, sh(t, dir, m.ResumeHint).ends(0).stderr, "Already settled")
	require.Equal(t, 2, count())
}

// TestRaces has processes compete for one answer, one session, one session id.
func TestRaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.program = b.install()
	program := "'" + strings.ReplaceAll(b.program, "'", `'\''`) + "' --data '" + b.data + "' --output json "
	race := func(lines ...string) map[int]int {
		codes := make(map[int]int)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, line := range lines {
			wg.Go(func() {
				r := b.shell(line)
				mu.Lock()
				defer mu.Unlock()
				codes[r.code]++
				var m report.Manifest
				if err := json.Unmarshal([]byte(r.stdout), &m); err != nil || r.code == 5 && (m.Error == nil || m.Error.Message == "") {
					t.Errorf("%s: exit %d without a manifest that says why: %s%s", line, r.code, r.stdout, r.stderr)
				}
			})
		}
		wg.Wait()
		return codes
	}
	run := program + "run --agent toy "

	log := b.file("log")
	b.start("one", deploys(log, "web"), 10)
	codes := race(program+"resume one --approve w2-1", program+"resume one --reject w2-1")
	require.Equal(t, map[int]int{0: 1, 5: 1}, codes, "two answers to one approval")

	b.run("run", "--agent", "toy", "--session", "two", "--wait", "0s", "[{say: ok}]").ends(0)
	codes = race(program+"resume two", program+"resume two")
	require.Equal(t, 2, codes[0]+codes[5], "two that continue one session: %v", codes)
	require.NotZero(t, codes[0])

	codes = race(run+"--session three '[{say: a}]'", run+"--session three '[{need: b}]'")
	require.Equal(t, 2, codes[0]+codes[5]+codes[10], "two that start one session id: %v", codes)
	require.Positive(t, codes[5]+codes[0])
}
