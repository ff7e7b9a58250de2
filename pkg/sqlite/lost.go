package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/adjourn/adjourn/pkg/store"
)

// identity is the file that was opened, and what became of it. SQLite works on in
// a file that has lost its name, and nobody would ever read what it writes there.
type identity struct {
	path string // absolute
	info fs.FileInfo
	gone atomic.Pointer[error]
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
	info, err := os.Stat(id.path)
	var what string
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "was deleted or moved away"
	case err != nil: // nothing is known
		return nil
	case !os.SameFile(info, id.info):
		what = "was replaced by another file"
	case info.Size() == 0:
		what = "was cut off to 0 bytes"
	default:
		return nil
	}
	gone := fmt.Errorf("%w: %s %s while it was in use: what was done since is lost with it, and this program does nothing more; "+
		"put the file back, or a copy of it, and start again", store.ErrGone, id.path, what)
	id.gone.Store(&gone)
	return gone
}
