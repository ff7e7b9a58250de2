//go:build unix

package private

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// asWriter makes the test's binary a writer that stands still before it has renamed.
const asWriter = "ADJOURN_TEST_AS_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(asWriter); path != "" {
		f, err := create(path)
		if err != nil {
			os.Exit(1)
		}
		_, _ = f.WriteString("adj_a key")
		d, err := MakeFolder(path)
		if err != nil || os.WriteFile(filepath.Join(d.Path(), "inside"), nil, 0o600) != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("written\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // not select {}, which may be reported as a deadlock
		runtime.KeepAlive(f)                  // a file nobody uses any more may be closed, and its lock goes
		runtime.KeepAlive(d)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestKilled: what a killed writer left is removed at the next start, what a living
// one is writing is not, and neither is anything that is not ours.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "my.db.token")
	self, err := os.Executable()
	require.NoError(t, err)
	writer := exec.CommandContext(t.Context(), self)
	writer.Env = append(os.Environ(), asWriter+"="+path)
	out, err := writer.StdoutPipe()
	require.NoError(t, err)
	_, err = writer.StdinPipe() // the writer ends with the test at the latest
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	_, err = out.Read(make([]byte, 8))
	require.NoError(t, err)
	require.Len(t, names(t, dir), 2)
	for _, name := range names(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "from its creation: it holds a key")
	}

	theirs := []string{
		"my.db.token.1", "my.db.token.0123456789abcdef", "my.db.token.adjourn-tmp", "my.db.token.old.adjourn-tmp",
		"other.db.token.0123456789abcdef.adjourn-tmp", "my.db.token.0123456789abcdef.adjourn-tmp.bak",
	}
	for _, name := range theirs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, theirs[0]), path+".fedcba9876543210.adjourn-tmp"))
	require.NoError(t, os.Mkdir(path+".folder", 0o700))
	kept := len(theirs) + 2

	Tidy(path)
	require.Len(t, names(t, dir), kept+2, "the file is being written, the folder is in use")
	require.NoError(t, writer.Process.Kill())
	_ = writer.Wait()
	Tidy(path)
	require.Len(t, names(t, dir), kept, "its writer is dead")
	for _, name := range theirs {
		require.FileExists(t, filepath.Join(dir, name))
	}
	Tidy(filepath.Join(dir, "no folder", "x"))
}

// TestFolder: what is in it may be replaced, as editors do, and goes with it.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := MakeFolder(filepath.Join(dir, "edit"))
	require.NoError(t, err)
	other, err := MakeFolder(filepath.Join(dir, "edit"))
	require.NoError(t, err)
	inside := filepath.Join(d.Path(), "arguments.json")
	require.NoError(t, os.WriteFile(inside+".new", []byte("{}"), 0o600))
	require.NoError(t, os.Rename(inside+".new", inside))
	require.NoError(t, other.Remove())
	Tidy(filepath.Join(dir, "edit"))
	require.FileExists(t, inside)
	require.NoError(t, d.Remove())
	require.Empty(t, names(t, dir))
	_, err = MakeFolder(filepath.Join(dir, "no folder", "edit"))
	require.Error(t, err)
}

// TestWrite has many write at once, each of whom tidies up.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "pause.json")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := Write(path, []byte("whole\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"pause.json"}, names(t, dir))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Error(t, Write(filepath.Join(dir, "no folder", "x"), nil))
	require.Error(t, Write(dir, nil), "a folder is not replaced")
	require.Equal(t, []string{"pause.json"}, names(t, dir), "nothing is left half written")
}
