package datafile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A file that is read as one that never changes is looked at for each sign of a change.
func TestStill(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(path, text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		return os.Chtimes(path, at, at)
	}
	for name, c := range map[string]struct {
		change func(path string) error
		holds  bool
	}{
		"nothing":         {func(string) error { return nil }, true},
		"a log with text": {func(path string) error { return write(path+"-wal", "x") }, false},
		"an empty log":    {func(path string) error { return write(path+"-wal", "") }, true},
		"another length":  {func(path string) error { return write(path, "some content and more") }, false},
		"written since":   {func(path string) error { return os.Chtimes(path, at, at.Add(time.Nanosecond)) }, false},
		"gone":            {os.Remove, false},
		"a copy of the same": {func(path string) error {
			if err := write(path+".copy", "some content"); err != nil {
				return err
			}
			return os.Rename(path+".copy", path)
		}, false},
	} {
		path := filepath.Join(t.TempDir(), "a.db")
		require.NoError(t, write(path, "some content"))
		s, ok := statUnused(path)
		require.True(t, ok, name)
		require.NoError(t, c.change(path), name)
		require.Equal(t, c.holds, s.holds(), name)
		_, ok = statUnused(path)
		require.Equal(t, name != "a log with text" && name != "gone", ok, name)
	}
	require.True(t, (*unusedFile)(nil).holds(), "a connection without it sees every change by itself")
}
