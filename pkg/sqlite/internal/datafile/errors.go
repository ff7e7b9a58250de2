package datafile

import (
	"errors"
	"fmt"

	driversqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/adjourn/adjourn/pkg/store"
)

// ErrClosed is what every method says after Close.
var ErrClosed = errors.New("the database is closed")

// ErrReadOnly is what every method that writes says when the file was opened for reading.
var ErrReadOnly = errors.New("the data file was opened for reading only")

func code(err error) int {
	return fullCode(err) & 0xff
}

func fullCode(err error) int {
	if err == nil { // as a rule
		return 0
	}
	var e *driversqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// IsBusy reports whether a process waited in vain for another to let go of the file.
func IsBusy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// Explain turns a driver's error into one of a port, whose word for "cannot be
// reached or written" is unavailable. The driver's own stays readable in the
// text and goes no further.
func Explain(err error, unavailable error) error {
	if err == nil || errors.Is(err, store.ErrNotOurs) || errors.Is(err, unavailable) {
		return err
	}
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, ErrClosed) || errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("%w: %w", unavailable, err)
	}
	// The driver's error stops here: its text goes on, its type does not.
	text := err.Error()
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: the disk is full: free some space and try again (%s)", unavailable, text)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: the data file, its folder or the disk is read-only: allow writing, or choose another data file (%s)", unavailable, text)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: the data file cannot be opened: look at its permissions and those of its folder (%s)", unavailable, text)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL: // the last: while it made the WAL's index
		return fmt.Errorf("%w: it may be stopped; continue or end it (%s)", store.ErrLocked, text)
	case sqlite3.SQLITE_IOERR:
		if fullCode(err) == sqlite3.SQLITE_IOERR_SHORT_READ {
			return fmt.Errorf("%w: the data file is cut off, or it %s (%s)", unavailable, logRemoved, text)
		}
		fallthrough
	case sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_NOLFS:
		return fmt.Errorf("%w: the disk is full or not readable: check it and its free space (%s)", unavailable, text)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: it is not a database: choose another data file (%s)", store.ErrNotOurs, text)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: the data file is damaged: move it and what lies beside it (-wal, -shm) away, then restore it from a copy (%s)", store.ErrCorrupt, text)
	case 0:
		return err // not SQLite's
	}
	return fmt.Errorf("sqlite: %s", text)
}
