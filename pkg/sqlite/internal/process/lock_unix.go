//go:build unix

package process

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// probes are the files whose locks were asked about. They stay open: closing one
// would drop the locks that SQLite in this process holds on the same file.
var probes struct {
	sync.Mutex
	files []*os.File
}

// LockHolder asks the system which process holds one of the locks in a file: its
// pid, or 0 when it cannot be seen from here. This process's own do not count.
func LockHolder(path string, offsets []int64) (pid int, held bool) {
	f, err := probe(path)
	if err != nil {
		return 0, false
	}
	return lockedBy(f, offsets)
}

// LockedNow is [LockHolder] for a file that this process has not open: then it need not
// stay open here.
func LockedNow(path string, offsets []int64) (held bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	_, held = lockedBy(f, offsets)
	return held
}

func lockedBy(f *os.File, offsets []int64) (pid int, held bool) {
	for _, at := range offsets {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
		if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err == nil && lock.Type != syscall.F_UNLCK {
			return max(int(lock.Pid), 0), true
		}
	}
	return 0, false
}

func probe(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	probes.Lock()
	defer probes.Unlock()
	for _, f := range probes.files {
		if known, err := f.Stat(); err == nil && os.SameFile(known, info) {
			return f, nil
		}
	}
	f, err := os.Open(path) //nolint:gosec // beside the user's own data file
	if err == nil {
		probes.files = append(probes.files, f)
	}
	return f, err
}
