package sqlite

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

// openedFile is the file that was opened, and what became of it. SQLite works on in
// a file that has lost its name, and nobody would ever read what it writes there.
type openedFile struct {
	path string // absolute
	info fs.FileInfo
	gone atomic.Pointer[error]

	losing   sync.Mutex // held by who finds out that it is gone
	real     string     // where the path leads, if the file was opened for writing
	sidecars [len(sidecars)]fs.FileInfo
}

// seeFile is called before a file is opened.
func seeFile(path string) (*openedFile, error) {
	if path == memoryPath {
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
	return &openedFile{path: path, info: info}, nil
}

// lost returns [store.ErrGone] when the path does not lead to the file any more.
// It stays lost: what was done meanwhile is not in the file that comes back.
func (f *openedFile) lost() error {
	if f == nil {
		return nil
	}
	if known := f.gone.Load(); known != nil {
		return *known
	}
	lost, what := f.became()
	if what == "" {
		return nil
	}
	f.losing.Lock()
	defer f.losing.Unlock()
	if known := f.gone.Load(); known != nil {
		return *known
	}
	// A file that has lost its log alone keeps what else there is: others work with it.
	next := "stop every program that works on " + f.path + ", and start again"
	if lost == f.path {
		next = f.setAside(what == cutOff)
	}
	gone := fmt.Errorf("%w: %s %s while it was in use: what was done since is lost with it, and this program does nothing more; %s",
		store.ErrGone, lost, what, next)
	f.gone.Store(&gone)
	return gone
}

const cutOff = "was cut off to 0 bytes"

// became says which of the files is gone, the data file or one of its sidecars, and
// what became of it; nothing if all are there. Without its log a file lacks what was
// confirmed, and who opens it begins another log beside ours.
func (f *openedFile) became() (path, what string) {
	if what = becameOf(f.path, f.info, false); what != "" {
		return f.path, what
	}
	for i, info := range f.sidecars {
		if info == nil {
			continue
		}
		if what = becameOf(f.real+sidecars[i], info, true); what != "" {
			return f.real + sidecars[i], what
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
