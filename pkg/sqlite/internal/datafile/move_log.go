package datafile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/adjourn/adjourn/pkg/store"
)

// A log belongs to the file it was written for, but SQLite finds it by its name only: SQLite
// would write the content of this log into another file of that name. So a process whose file is
// lost moves the log away before the new file of that name is opened.

// sidecars are the log and the shared memory of a data file.
var sidecars = [...]string{theLog: "-wal", theMemory: "-shm"}

const (
	theLog = iota
	theMemory
)

// asideWait is how long to wait for a process that makes a data file in the same folder.
const asideWait = time.Second

// asideName is where a sidecar goes: its name says which file it belongs to.
func asideName(path, suffix, number string) string { return path + suffix + ".lost-" + number }

// rememberSidecars remembers the sidecars of a file that has just been opened.
func (f *openedFile) rememberSidecars() error {
	if f == nil {
		return nil
	}
	var err error
	if f.real, err = filepath.EvalSymlinks(f.path); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	for i, suffix := range sidecars {
		f.names[i] = f.real + suffix
		f.sidecars[i], _ = os.Stat(f.names[i]) // nil if there is none
	}
	return nil
}

// hasLog refuses a file whose log was removed while others work on it: their shared memory still
// describes that log, and readers would not find what is written to a new one.
func (f *openedFile) hasLog(c *Conn) error {
	if f == nil || f.sidecars[theLog] == nil || f.sidecars[theLog].Size() > 0 {
		return nil
	}
	frames, err := c.logged()
	if err != nil || frames <= 0 {
		return err
	}
	if info, err := os.Stat(f.names[theLog]); err != nil || info.Size() == 0 { // else another process has just begun it
		return fmt.Errorf("%w: %s %s", store.ErrUnavailable, f.real, logRemoved)
	}
	return nil
}

const logRemoved = "lacks its log (-wal), which was removed or cut off while a program works on the file: stop every program that works on it, and start again"

// setAside moves the sidecars of a lost file away, if they still lie where it was,
// and says what its owner can do.
func (f *openedFile) setAside(cutOff bool) string {
	const otherwise = "put the file back, or a copy of it, and start again"
	if f.sidecars[theLog] == nil || f.readOnly {
		return otherwise
	}
	log := f.names[theLog]
	unlock, err := lockFolder(filepath.Dir(f.real), asideWait)
	if err == nil {
		defer unlock()
	}
	number := cmp.Or(fileNumber(f.info), "0")
	if cutOff {
		number = "cut-off-" + number // whatever fills the file again is not what the log was for
	}
	filled := false
	var names [len(sidecars)]string
	for i, suffix := range sidecars {
		there, statErr := os.Stat(f.real + suffix)
		if statErr != nil || f.sidecars[i] == nil || !os.SameFile(there, f.sidecars[i]) {
			continue // moved already, or another file's
		}
		filled = filled || i == 0 && there.Size() > 0
		if err == nil {
			names[i], err = free(asideName(f.real, suffix, number))
		}
		if err == nil {
			err = os.Rename(f.real+suffix, names[i])
		}
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("its log could not be moved away (%v): before anything opens another file in its place, move %s and %s away", err, log, f.real+sidecars[theMemory])
	case !filled || cutOff:
		return otherwise
	}
	return fmt.Sprintf("its log, with what the file itself may lack, was moved to %[1]s: if the same file comes back, put the log back first: mv '%[1]s' '%[2]s' && mv '%[3]s' '%[4]s'; "+
		"beside a copy or another file it must stay away; then start again", names[theLog], log, names[theMemory], f.real+sidecars[theMemory])
}

// free returns a file name that is not in use.
func free(name string) (string, error) {
	for n := 1; ; n++ {
		next := name
		if n > 1 {
			next += "-" + strconv.Itoa(n)
		}
		if _, err := os.Lstat(next); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return next, err
		}
	}
}

// whole refuses a file whose log was moved away when it was lost: without it what
// was confirmed is missing.
func (f *openedFile) whole() error {
	if f == nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	number := fileNumber(f.info)
	if number == "" {
		return nil
	}
	log := asideName(real, sidecars[theLog], number)
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		return nil //nolint:nilerr // there is none
	}
	return fmt.Errorf("%[1]w: it was moved away while it was in use, and its log then went to %[2]s: if this is that file, put the log back: mv '%[2]s' '%[3]s' && mv '%[4]s' '%[5]s'; "+
		"if it is a copy or another file, remove what was moved", store.ErrNotOurs, log, real+sidecars[theLog], asideName(real, sidecars[theMemory], number), real+sidecars[theMemory])
}
