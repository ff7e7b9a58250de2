//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide's two jobs, each on a machine of its own: what job 1 kept is all that job 2 has.
func TestGuide_pause_in_one_job_resume_in_another(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/ci.md")
	require.NoError(t, err)
	job := func(name, dir, script string) (code int, said string) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		path := filepath.Dir(binary(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
		cmd.Env = []string{"PATH=" + path, "HOME=" + filepath.Join(dir, "home of "+name)}
		out, err := cmd.CombinedOutput()
		require.NotNil(t, cmd.ProcessState, err)
		return cmd.ProcessState.ExitCode(), string(out)
	}
	blocks := strings.Split(string(guide), "```sh\n")
	require.Len(t, blocks, 3)
	script := func(n int) string {
		commands, _, closed := strings.Cut(blocks[n], "```\n")
		require.True(t, closed)
		return commands
	}

	first, second := t.TempDir(), t.TempDir()
	code, said := job("job 1", first, script(1)+"exit $code\n")
	require.Equal(t, 10, code, said)

	require.NoError(t, os.Mkdir(filepath.Join(second, "state"), 0o755)) //nolint:gosec // as artifacts are unpacked
	for _, name := range []string{"adjourn.db", "pause.json"} {
		text, err := os.ReadFile(filepath.Join(first, "state", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(second, "state", name), text, 0o644)) //nolint:gosec // as above
	}
	code, said = job("job 2", second, strings.ReplaceAll(script(2), "--trust-data", ""))
	require.Equal(t, 4, code, said)
	require.Contains(t, said, "--trust-data")
	code, said = job("job 2", second, script(2))
	require.Zero(t, code, said)
	require.Contains(t, said, "deployed")
}
