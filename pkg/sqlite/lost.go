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
	what := f.became()
	if what == "" {
		return nil
	}
	f.losing.Lock()
	defer f.losing.Unlock()
	if known := f.gone.Load(); known != nil {
		return *known
	}
	gone := fmt.Errorf("%w: %s %s while it was in use: what was done since is lost with it, and this program does nothing more; %s",
		store.ErrGone, f.path, what, f.setAside(what == cutOff))
	f.gone.Store(&gone)
	return gone
}

const cutOff = "was cut off to 0 bytes"

// became says what became of a file that is gone, and nothing of one that is there.
func (f *openedFile) became() string {
	if sameFile(f.path, f.info) {
		return ""
	}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "was deleted or moved away"
	case err != nil: // nothing is known
		return ""
	case !os.SameFile(info, f.info):
		return "was replaced by another file"
	case info.Size() == 0:
		return cutOff
	}
	return ""
}
