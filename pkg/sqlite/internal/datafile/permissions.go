package datafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/process"
	"github.com/adjourn/adjourn/pkg/store"
)

// A user who can write to a data file decides what its owner's tools do, and with which
// approvals. So what is opened for writing must belong to this user alone: the file, its
// sidecars, and the folders in which another file could be put in its place. A file that is only
// read may belong to any user.

// rollbackSuffix names the log of SQLite's other way to write. There is one beside a data file
// only where a change to WAL was cut off, and SQLite writes what is in it into the file
// before it reads anything.
const rollbackSuffix = "-journal"

// checkFolders refuses a file in a folder that is not this user's alone: the folder of
// the path, and the one that it leads to.
func checkFolders(path, real string) error {
	dir := filepath.Dir(real)
	if err := refused(owned.FolderAt(dir)); err != nil {
		return err
	}
	if named := filepath.Dir(path); named != dir {
		return refused(owned.FolderAt(named))
	}
	return nil
}

// checkFile refuses a file, and what lies beside it, that others own or may write. A
// log and shared memory that more users may read than the file are made as private
// as that is.
func checkFile(real string) error {
	info, err := os.Lstat(real)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := owned.File(real, info); err != nil {
		return refused(err)
	}
	for _, suffix := range sidecars {
		if err := checkBeside(real+suffix, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

func checkBeside(path string, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := owned.File(path, info); err != nil {
		return refused(err)
	}
	private := info.Mode().Perm() & (mode | 0o600)
	if id, known := owned.User(info); !known || id != os.Geteuid() || private == info.Mode().Perm() {
		return nil
	}
	if err := os.Chmod(path, private); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}

// checkJournal refuses a file with such a log, for reading and for writing.
func checkJournal(real string) error {
	info, err := os.Lstat(real + rollbackSuffix)
	if err != nil || info.Size() == 0 && info.Mode().IsRegular() {
		return nil //nolint:nilerr // there is none
	}
	return fmt.Errorf("%w: %s lies beside the data file, where no adjourn leaves one and SQLite would write it into the file: "+
		"if a copy was being changed by SQLite's own tools, let them finish or make the copy anew; else move it away", owned.ErrOthers, real+rollbackSuffix)
}

// checkAgain refuses a file beside which others have put something between the first
// look and SQLite's, as all may in a folder like /tmp. Nothing of it goes into the file.
func (f *openedFile) checkAgain(c *Conn) error {
	if err := checkFile(f.real); err != nil {
		return errors.Join(err, c.leaveLog())
	}
	return nil
}

// refused keeps what is known of a file that has gone meanwhile apart from a refusal.
func refused(err error) error {
	if err == nil || errors.Is(err, owned.ErrOthers) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// working are the files that this process has open. The system does not report the process's own
// locks, and to close another descriptor of the same file would drop them.
var working struct {
	sync.Mutex
	files []fs.FileInfo
}

// enter is called before a file is opened. It returns the birth of a log with something in
// it that lies beside one that no process works on.
func (f *openedFile) enter(real string) (log string, found bool) {
	working.Lock()
	defer working.Unlock()
	here := slices.ContainsFunc(working.files, func(info fs.FileInfo) bool { return os.SameFile(info, f.info) })
	working.files = append(working.files, f.info)
	log = owned.Birth(real + sidecars[theLog])
	info, err := os.Lstat(real + sidecars[theLog])
	return log, !here && err == nil && info.Size() > 0 && !process.LockedNow(real+sidecars[theMemory], []int64{openLock})
}

// wasLeft reports whether a log that enter found is there still, now that the file is open. A process
// that closes the file gives up its locks a moment before it removes its log, and then nobody has left one.
func (f *openedFile) wasLeft(log string) bool {
	return owned.Birth(f.real+sidecars[theLog]) == log
}

// left is called when a file has been closed.
func (f *openedFile) left() {
	if f == nil {
		return
	}
	working.Lock()
	defer working.Unlock()
	if i := slices.IndexFunc(working.files, func(info fs.FileInfo) bool { return os.SameFile(info, f.info) }); i >= 0 {
		working.files = slices.Delete(working.files, i, i+1)
	}
}

// openLock is the lock in the shared memory that every process holds that has the file open.
const openLock = 128
