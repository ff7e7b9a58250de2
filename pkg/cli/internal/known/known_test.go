package known

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/sqlite"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func id(n int, log string, found bool) sqlite.Identity {
	return sqlite.Identity{File: fmt.Sprintf("%064d", n), Log: log, LogFound: found}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	config := t.TempDir()
	f := New(env(map[string]string{"XDG_CONFIG_HOME": config, "TMPDIR": t.TempDir()}))
	require.False(t, f.Has(id(1, "", false)))
	require.NoError(t, f.Keep("a.db", id(1, "x", false)))
	require.True(t, f.Has(id(1, "y", false)), "a log that the command itself began")
	require.True(t, f.Has(id(1, "x", true)), "one that a killed command left")
	require.False(t, f.Has(id(1, "y", true)), "one that nobody knows")
	require.False(t, f.Has(id(1, "", true)))
	require.False(t, f.Has(id(2, "x", false)))
	require.NoError(t, f.Keep("a.db", id(1, "y", false)))
	require.True(t, f.Has(id(1, "y", true)))
	require.False(t, f.Has(sqlite.Identity{}))
	require.Error(t, f.Keep("a.db", sqlite.Identity{}))

	kept := filepath.Join(config, "adjourn", "data-files")
	entries, err := os.ReadDir(kept)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	info, err := entries[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(filepath.Join(kept, entries[0].Name()), 0o606)) //nolint:gosec // that is the point
		require.False(t, f.Has(id(1, "y", false)), "others may have written it")
	}
}

// Two commands begin at once: the second finds the log that the first has begun, and has not
// remembered yet.
func TestFiles_log_that_is_remembered_soon(t *testing.T) {
	t.Parallel()
	f := New(env(map[string]string{"XDG_CONFIG_HOME": t.TempDir()}))
	require.NoError(t, f.Keep("a.db", id(1, "x", false)))
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		require.False(t, f.HasSoon(t.Context(), id(2, "y", true)), "another file")
		require.Zero(t, time.Since(begun))
		require.False(t, f.HasSoon(t.Context(), id(1, "y", true)), "nobody remembers it")
		require.Equal(t, patience, time.Since(begun))
		ended, end := context.WithCancel(t.Context())
		end()
		require.False(t, f.HasSoon(ended, id(1, "y", true)))
		require.Equal(t, patience, time.Since(begun))
		go func() {
			time.Sleep(patience / 2)
			_ = f.Keep("a.db", id(1, "y", false))
		}()
		require.True(t, f.HasSoon(t.Context(), id(1, "y", true)))
		require.Less(t, time.Since(begun), 2*patience)
	})
}

// Without a configuration that can be written, a folder of the user's own lasts for a while.
func TestWithoutConfiguration(t *testing.T) {
	t.Parallel()
	file, temporary := filepath.Join(t.TempDir(), "file"), t.TempDir()
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, values := range map[string]map[string]string{
		"none":                  {},
		"relative":              {"XDG_CONFIG_HOME": "config"},
		"one that is no folder": {"XDG_CONFIG_HOME": file},
	} {
		values["TMPDIR"] = filepath.Join(temporary, strings.Fields(name)[0])
		f := New(env(values))
		require.NoError(t, f.Keep("a.db", id(1, "", false)), name)
		require.True(t, f.Has(id(1, "", false)), name)
		values["TMPDIR"] = file
		f = New(env(values))
		require.Error(t, f.Keep("a.db", id(1, "", false)), name)
		require.False(t, f.Has(id(1, "", false)), name)
	}
	require.NoDirExists(t, "config")
}

// Another user's folder, or one that all may write, is not believed.
func TestFolderOfOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // where a mode does not tell
	}
	config := t.TempDir()
	f := New(env(map[string]string{"XDG_CONFIG_HOME": config, "TMPDIR": "relative"}))
	require.NoError(t, f.Keep("a.db", id(1, "", false)))
	require.True(t, f.Has(id(1, "", false)))
	require.NoError(t, os.Chmod(filepath.Join(config, "adjourn"), 0o777)) //nolint:gosec // that is the point
	require.False(t, f.Has(id(1, "", false)))
	require.Error(t, f.Keep("a.db", id(2, "", false)))
}

func TestMostGo(t *testing.T) {
	t.Parallel()
	config := t.TempDir()
	f := New(env(map[string]string{"XDG_CONFIG_HOME": config, "TMPDIR": "relative"}))
	require.NoError(t, f.Keep("a.db", id(0, "", false)))
	dir := filepath.Join(config, "adjourn", "data-files")
	long := time.Now().Add(-time.Hour)
	for n := 1; n <= Most; n++ {
		path := filepath.Join(dir, id(n, "", false).File)
		require.NoError(t, os.WriteFile(path, []byte(firstLine("")), 0o600))
		require.NoError(t, os.Chtimes(path, long, long.Add(time.Duration(n)*time.Second)))
	}
	require.NoError(t, f.Keep("a.db", id(Most+1, "", false)))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, Most)
	require.True(t, f.Has(id(0, "", false)))
	require.True(t, f.Has(id(Most+1, "", false)))
	require.False(t, f.Has(id(1, "", false)), "the oldest")
	require.False(t, f.Has(id(2, "", false)), "and the next")
	require.True(t, f.Has(id(3, "", false)))
}
