//go:build unix

package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/adjourn/adjourn/pkg/store"
)

// lockFolder keeps other processes from making a data file in a folder. The lock
// ends with its process.
func lockFolder(dir string, wait time.Duration) (unlock func(), err error) {
	f, err := os.Open(dir) //nolint:gosec // the user's own folder
	if err != nil {
		return nil, err
	}
	for waited := time.Duration(0); ; waited += lockPause {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("lock of %s: %w", dir, err), f.Close())
		case waited >= wait:
			err := fmt.Errorf("%w: it is making a data file in %s; waited %v: it may be stopped; continue or end it", store.ErrLocked, dir, waited)
			return nil, errors.Join(err, f.Close())
		}
		time.Sleep(lockPause)
	}
}

// syncFolder has the names in a folder on the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // the user's own folder
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // this file system syncs no folders
	}
	return errors.Join(err, f.Close())
}

// fileNumber tells a file from others of its file system, as long as it exists.
func fileNumber(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(s.Ino), 10) //nolint:unconvert,nolintlint // its type depends on the system
}

// sameFile reports whether a path surely leads to the file, and there is something
// in it, if it must not be empty. It is asked with each transaction, so it costs less
// than [os.Stat].
func sameFile(path string, file fs.FileInfo, mayBeEmpty bool) bool {
	was, ok := file.Sys().(*syscall.Stat_t)
	var is syscall.Stat_t
	return ok && syscall.Stat(path, &is) == nil && is.Dev == was.Dev && is.Ino == was.Ino && (mayBeEmpty || is.Size > 0)
}
