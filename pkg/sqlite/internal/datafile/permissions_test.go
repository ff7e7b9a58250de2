//go:build unix

package datafile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/owned"
)

// What others own, or may write, is not worked on; it is read all the same.
func TestForeign(t *testing.T) {
	t.Parallel()
	give := func(path string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.Chown(filepath.Join(dir, path), 4_000_001, 4_000_001))
		}
	}
	open600 := func(path string, mode os.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { require.NoError(t, os.Chmod(filepath.Join(dir, path), mode)) }
	}
	plant := func(path string, mode os.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte("planted"), 0o600))
			require.NoError(t, os.Chmod(filepath.Join(dir, path), mode))
		}
	}
	cases := map[string]struct {
		prepare func(t *testing.T, dir string)
		says    string
	}{
		"a file that all may write":          {open600("a.db", 0o606), "every user may write"},
		"a folder that all may write":        {open600(".", 0o777), "every user may write"},
		"a log that all may write":           {plant("a.db-wal", 0o666), "every user may write"},
		"shared memory that all may write":   {plant("a.db-shm", 0o666), "every user may write"},
		"a journal":                          {plant("a.db-journal", 0o600), "SQLite would write it into the file"},
		"a log that leads somewhere else":    {func(t *testing.T, dir string) { require.NoError(t, os.Symlink("b", filepath.Join(dir, "a.db-wal"))) }, "no plain file"},
		"a folder through which it is named": {nil, "every user may write"},
	}
	if os.Geteuid() == 0 { // nobody else can give files away
		for name, path := range map[string]string{"a stranger's file": "a.db", "a stranger's folder": "."} {
			cases[name] = struct {
				prepare func(t *testing.T, dir string)
				says    string
			}{give(path), "belongs to user 4000001"}
		}
		cases["a stranger's log"] = struct {
			prepare func(t *testing.T, dir string)
			says    string
		}{func(t *testing.T, dir string) { plant("a.db-wal", 0o600)(t, dir); give("a.db-wal")(t, dir) }, "belongs to user 4000001"}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.db")
			closed(t, path)
			if tt.prepare != nil {
				tt.prepare(t, dir)
			} else {
				up := t.TempDir()
				require.NoError(t, os.Symlink(path, filepath.Join(up, "link.db")))
				require.NoError(t, os.Chmod(up, 0o777)) //nolint:gosec // that is the point
				path = filepath.Join(up, "link.db")
			}
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = Open(t.Context(), Config{Path: path})
			require.ErrorIs(t, err, owned.ErrOthers)
			require.ErrorContains(t, err, tt.says)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after, "it was not touched")
		})
	}
	t.Run("none is made in such a folder", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is the point
		_, err := Open(t.Context(), Config{Path: filepath.Join(dir, "a.db")})
		require.ErrorIs(t, err, owned.ErrOthers)
		require.NoFileExists(t, filepath.Join(dir, "a.db"))
	})
	t.Run("a folder like /tmp", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
		closed(t, filepath.Join(dir, "a.db"))
	})
	t.Run("what is only read", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a.db")
		closed(t, path)
		require.NoError(t, os.Chmod(path, 0o666)) //nolint:gosec // that is the point
		f, err := Open(t.Context(), Config{Path: path, ReadOnly: true})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	})
}

// A log that more users may read than the file is made as private as that is.
func TestLogIsAsPrivateAsTheFile(t *testing.T) {
	t.Parallel()
	path := file(t)
	closed(t, path)
	for _, suffix := range sidecars {
		require.NoError(t, os.WriteFile(path+suffix, nil, 0o600))
		require.NoError(t, os.Chmod(path+suffix, 0o644)) //nolint:gosec // that is the point
	}
	open(t, path)
	for _, suffix := range sidecars {
		info, err := os.Stat(path + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

// A log that lies beside a file that nobody works on is told; the one of somebody who
// works is not.
func TestLogFound(t *testing.T) {
	t.Parallel()
	path := file(t)
	f, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)

	c, err := openConn(path, existing, nil)
	require.NoError(t, err)
	require.NoError(t, c.Script("CREATE TABLE more (x)"), "so that there is something in the log")
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	beside, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	_, found := beside.Log()
	require.False(t, found, "somebody works with it")
	require.NoError(t, beside.Close())
	require.NoError(t, c.close())
	require.NoError(t, f.Close())
	require.NoFileExists(t, path+"-wal")
	require.NoError(t, os.WriteFile(path+"-wal", log, 0o600))
	_, found = open(t, path).Log()
	require.True(t, found)
}

// A log that lies beside a file that nobody works on was left there by nobody, if it is gone, or another
// one, once the file is open: the process that closed the file was about to remove it.
func TestLog_of_a_process_that_closes(t *testing.T) {
	t.Parallel()
	real := filepath.Join(t.TempDir(), "a.db")
	require.NoError(t, os.WriteFile(real, []byte("data"), 0o600))
	require.NoError(t, os.WriteFile(real+"-wal", []byte("log"), 0o600))
	f, err := seeFile(real, false)
	require.NoError(t, err)
	f.real = real
	log, found := f.enter(real)
	t.Cleanup(f.left)
	require.True(t, found)
	require.True(t, f.wasLeft(log))
	require.NoError(t, os.Rename(real+"-wal", real+"-kept")) // so that its number is not given again
	require.False(t, f.wasLeft(log), "it is gone")
	require.NoError(t, os.WriteFile(real+"-wal", []byte("log"), 0o600))
	require.False(t, f.wasLeft(log), "it is another one")
}
