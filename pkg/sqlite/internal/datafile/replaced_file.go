package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/adjourn/adjourn/pkg/store"
)

// openedFile is the file that was opened, and its state now. SQLite continues to work in a file
// that has lost its name, and what it writes there could never be read again.
type openedFile struct {
	path     string // absolute
	readOnly bool
	info     fs.FileInfo
	gone     atomic.Pointer[loss]

	losing   sync.Mutex // held while the state of a missing file is found out
	real     string     // where the path leads, once its sidecars are known
	sidecars [len(sidecars)]fs.FileInfo
	names    [len(sidecars)]string // their paths
}

type loss struct {
	err     error
	logOnly bool // the data file itself is there
}

// seeFile is called before a file is opened.
func seeFile(path string, readOnly bool) (*openedFile, error) {
	if path == Memory {
		return nil, nil //nolint:nilnil // what is in memory cannot be lost
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return &openedFile{path: path, readOnly: readOnly, info: info}, nil
}

// lost returns [store.ErrGone] when the path does not lead to the file any more.
// It stays lost: what was done meanwhile is not in the file that comes back.
func (f *openedFile) lost() error {
	if f == nil {
		return nil
	}
	if known := f.gone.Load(); known != nil {
		return known.err
	}
	lost, what := f.became()
	if what == "" {
		return nil
	}
	f.losing.Lock()
	defer f.losing.Unlock()
	if known := f.gone.Load(); known != nil {
		return known.err
	}
	// A file that has lost its log alone keeps what else there is: others work with it.
	next := "stop every program that works on " + f.path + ", and start again"
	if lost == f.path {
		next = f.setAside(what == cutOff)
	}
	err := fmt.Errorf("%w: %s %s while it was in use: what was done since is lost with it, and this program does nothing more; %s",
		store.ErrGone, lost, what, next)
	f.gone.Store(&loss{err: err, logOnly: lost != f.path})
	return err
}

// lostMemory is lost where the shared memory is gone. The log beside it is others' by
// then, and what is committed now would be written over what they have committed.
func (f *openedFile) lostMemory() error {
	if f == nil || f.sidecars[theMemory] == nil || sameFile(f.names[theMemory], f.sidecars[theMemory], true) {
		return nil
	}
	return f.lost()
}

// leaves reports whether the file and its log must be left as they are when the file is closed.
// SQLite finds a log by its name: with a lost file it would write old content into the data file,
// and delete the log in which others have confirmed more since. If no process has written such a
// log, the lost one holds the last confirmed writes: SQLite takes it into the file as usual,
// unless other processes have the file open.
//
// One case is not covered: a log that is lost between this check and SQLite's own deletion, while
// another program opens the file, writes and closes it.
func (f *openedFile) leaves() bool {
	if f.lost() == nil {
		return false
	}
	if !f.gone.Load().logOnly {
		return true
	}
	log, err := os.Stat(f.names[theLog])
	return err == nil && log.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

const cutOff = "was cut off to 0 bytes"

// became says which of the files is gone, the data file or one of its sidecars, and what happened
// to it; nothing if all are there. Without its log a file lacks confirmed writes, and a process
// that opens it begins another log beside ours.
func (f *openedFile) became() (path, what string) {
	if what = becameOf(f.path, f.info, false); what != "" {
		return f.path, what
	}
	for i, info := range f.sidecars {
		if info == nil {
			continue
		}
		if what = becameOf(f.names[i], info, true); what != "" {
			return f.names[i], what
		}
	}
	return "", ""
}

func becameOf(path string, was fs.FileInfo, mayBeEmpty bool) string {
	if sameFile(path, was, mayBeEmpty) {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "was deleted or moved away"
	case err != nil: // nothing is known
		return ""
	case !os.SameFile(info, was):
		return "was replaced by another file"
	case info.Size() == 0 && !mayBeEmpty:
		return cutOff
	}
	return ""
}
