//go:build unix

package datafile

import (
	"os"
	"path/filepath"
	"strconv"
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
	dir := filepath.Dir(path)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	log := filepath.Join(dir, "log")
	require.NoError(t, os.WriteFile(log, []byte("frames"), 0o600))
	for range 20 {
		number, aside := asideAround(t, path, log)
		made := uint64(0)
		require.NoError(t, create(path, time.Minute, func(string) {
			info, err := os.Stat(path + "-new")
			require.NoError(t, err)
			made, err = strconv.ParseUint(fileNumber(info), 10, 64)
			require.NoError(t, err)
		}))
		if _, guessed := aside[made]; !guessed {
			t.Logf("the file is number %d, not near %d: once more", made, number)
			require.NoError(t, os.Remove(path))
			continue
		}
		for n, names := range aside {
			for _, name := range names {
				if n == made {
					require.NoFileExists(t, name)
				} else {
					require.FileExists(t, name, "it belongs to another file")
				}
			}
		}
		open(t, path)
		return
	}
	t.Skip("this file system gives numbers that cannot be guessed")
}

// asideAround makes what a lost file leaves aside, for each of the numbers that the next file may
// have. They are links to one file, because a new file each would use up these numbers.
func asideAround(t *testing.T, path, log string) (number uint64, aside map[uint64][]string) {
	t.Helper()
	probe := filepath.Join(filepath.Dir(path), "probe")
	require.NoError(t, os.WriteFile(probe, nil, 0o600))
	info, err := os.Stat(probe)
	require.NoError(t, err)
	require.NoError(t, os.Remove(probe))
	number, err = strconv.ParseUint(fileNumber(info), 10, 64)
	require.NoError(t, err)
	aside = map[uint64][]string{}
	for n := max(number, 32) - 32; n < number+224; n++ {
		for _, suffix := range sidecars {
			name := asideName(path, suffix, strconv.FormatUint(n, 10))
			if err := os.Link(log, name); !os.IsExist(err) {
				require.NoError(t, err)
			}
			aside[n] = append(aside[n], name)
		}
	}
	return number, aside
}
