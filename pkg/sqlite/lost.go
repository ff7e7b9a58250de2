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

// identity is the file that was opened, and what became of it. SQLite works on in
// a file that has lost its name, and nobody would ever read what it writes there.
type identity struct {
	path string // absolute
	info fs.FileInfo
	gone atomic.Pointer[error]

	losing   sync.Mutex // held by who finds out that it is gone
	real     string     // where the path leads, if the file was opened for writing
	sidecars [len(sidecars)]fs.FileInfo
}

// identifyFile is called before a file is opened.
func identifyFile(path string) (*identity, error) {
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
	return &identity{path: path, info: info}, nil
}

// lost returns [store.ErrGone] when the path does not lead to the file any more.
// It stays lost: what was done meanwhile is not in the file that comes back.
func (id *identity) lost() error {
	if id == nil {
		return nil
	}
	if known := id.gone.Load(); known != nil {
		return *known
	}
	what := id.became()
	if what == "" {
		return nil
	}
	id.losing.Lock()
	defer id.losing.Unlock()
	if known := id.gone.Load(); known != nil {
		return *known
	}
	gone := fmt.Errorf("%w: %s %s while it was in use: what was done since is lost with it, and this program does nothing more; %s",
		store.ErrGone, id.path, what, id.setAside(what == cutOff))
	id.gone.Store(&gone)
	return gone
}

const cutOff = "was cut off to 0 bytes"

// became says what became of a file that is gone, and nothing of one that is there.
func (id *identity) became() string {
	if sameFile(id.path, id.info) {
		return ""
	}
	info, err := os.Stat(id.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "was deleted or moved away"
	case err != nil: // nothing is known
		return ""
	case !os.SameFile(info, id.info):
		return "was replaced by another file"
	case info.Size() == 0:
		return cutOff
	}
	return ""
}
