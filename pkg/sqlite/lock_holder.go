package sqlite

import (
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/process"
	"github.com/adjourn/adjourn/pkg/store"
)

// Holder is a process that holds a data file for writing while others wait.
type Holder struct {
	// Path of the data file.
	Path string
	// PID of the process; 0 where it cannot be seen, as in another container.
	PID int
	// Name of its program; "" if unknown.
	Name string
	// State of the process.
	State ProcessState
	// LastWrite is when something was written to the file last; the zero time if unknown.
	LastWrite time.Time
}

// ProcessState says what a process is doing.
type ProcessState = process.State

// The states of a process. Where the system does not tell, it is unknown.
const (
	ProcessRunning = process.Running
	ProcessStopped = process.Stopped
	ProcessWaiting = process.Waiting
	ProcessUnknown = process.Unknown
)

// String names the holder, since when it holds the lock, and what to do.
func (h *Holder) String() string {
	who, what := fmt.Sprintf("process %d", h.PID), fmt.Sprintf("if it does not finish, end it: kill %d", h.PID)
	if h.Name != "" {
		who += " (" + h.Name + ")"
	}
	switch {
	case h.PID == 0:
		who, what = "a process that cannot be seen from here (of another container?)", "find it there, and continue or end it"
	case h.State == ProcessStopped:
		who += ", which is stopped,"
		what = fmt.Sprintf("continue it: kill -CONT %[1]d, or end it: kill -KILL %[1]d (what it had confirmed is kept)", h.PID)
	case h.State == ProcessUnknown:
	default:
		who += fmt.Sprintf(", which is %s,", h.State)
	}
	text := who + " holds the data file " + h.Path
	if !h.LastWrite.IsZero() {
		text += ", to which nothing was written since " + h.LastWrite.Format("2006-01-02 15:04:05")
	}
	return text + "; " + what
}

// LockedError says that a write waited for another process in vain.
type LockedError struct {
	// Holder is nil when no process was identified.
	Holder *Holder
	// Waited is how long.
	Waited time.Duration
}

// Error names the holder of the file and what to do.
func (e *LockedError) Error() string {
	if e.Holder == nil {
		return fmt.Sprintf("%v: waited %v: it may be stopped; continue or end it", store.ErrLocked, e.Waited)
	}
	return fmt.Sprintf("%v: waited %v: %v", store.ErrLocked, e.Waited, e.Holder)
}

// Unwrap returns [store.ErrLocked].
func (e *LockedError) Unwrap() error { return store.ErrLocked }

// begin starts a transaction. SQLite waits a short time for the holder of the lock; after that,
// begin identifies the holder, reports it and continues to wait.
func (w *writer) begin() error {
	told := w.db.onLocked == nil
	for waited := time.Duration(0); ; {
		err := w.file.Begin()
		if !datafile.IsBusy(err) {
			return err
		}
		waited += w.file.LockWait()
		holder := w.holder()
		if holder != nil && !told {
			told = true
			w.db.onLocked(*holder)
		}
		select {
		case <-w.db.closing: // no caller waits any more
			return &LockedError{Holder: holder, Waited: waited}
		default:
		}
		if waited >= w.db.wait {
			return &LockedError{Holder: holder, Waited: waited}
		}
	}
}

// holder returns the process that holds the file for writing, or nil.
func (w *writer) holder() *Holder {
	pid, lastWrite, held := w.file.Holder()
	if !held {
		return nil
	}
	h := &Holder{Path: w.db.path, PID: pid, State: ProcessUnknown, LastWrite: lastWrite}
	if pid > 0 {
		h.Name, h.State = process.Describe(pid)
	}
	return h
}
