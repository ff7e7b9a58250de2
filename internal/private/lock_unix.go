//go:build unix

package private

import (
	"errors"
	"os"
	"syscall"
)

// locks says that a lock tells whether the writer of a file lives.
const locks = true

// lock takes the lock of a file that was just made. It waits only for somebody who
// looks whether the file was left behind.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// removeLeft removes a file, or a folder, that nobody has the lock of.
func removeLeft(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && still(f) {
		_ = os.RemoveAll(path) // or it stays, which is no harm
	}
}
