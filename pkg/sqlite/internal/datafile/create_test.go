//go:build unix

package datafile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
)

// file returns the path of a file in a folder that does not exist yet.
func file(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "adjourn.db")
}

// open opens a file until the test ends.
func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// closed makes a file, or opens the one that is there, and closes it.
func closed(t *testing.T, path string) {
	t.Helper()
	f, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Somebody who comes while the file is made, or died at it, is no harm.
func TestDraftOfAnother(t *testing.T) {
	t.Parallel()
	path := file(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path+"-new", []byte("half"), 0o600))
	unlock, err := lockFolder(filepath.Dir(path), 0)
	require.NoError(t, err)
	_, err = Open(t.Context(), Config{Path: path, Wait: time.Millisecond})
	require.ErrorIs(t, err, store.ErrLocked)
	require.NoFileExists(t, path)
	unlock()
	open(t, path)
	require.NoFileExists(t, path+"-new")
	require.FileExists(t, path+"-wal")
	require.ErrorIs(t, create(path, 0, nil), os.ErrExist)
	require.FileExists(t, path+"-wal", "who comes too late takes nothing from the file that is there")
}

// What was moved aside for a file of the same number is removed: that file is no more, and the new
// one would be taken for it.
func TestLogOfAReusedNumber(t *testing.T) {
	t.Parallel()
	path := file(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	var own, others []string
	require.NoError(t, create(path, time.Minute, func(string) {
		// The new file is there, without its name yet, so its number is known.
		info, err := os.Stat(path + "-new")
		require.NoError(t, err)
		for _, suffix := range sidecars {
			own = append(own, asideName(path, suffix, fileNumber(info)))
			others = append(others, asideName(path, suffix, fileNumber(info)+"0"))
		}
		for _, name := range append(others, own...) {
			require.NoError(t, os.WriteFile(name, []byte("frames"), 0o600))
		}
	}))
	for i := range own {
		require.NoFileExists(t, own[i])
		require.FileExists(t, others[i], "it belongs to another file")
	}
	open(t, path)
}
