package datafile

import (
	"os"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/process"
)

// lockWait is how long a write waits for another process's transaction before it looks for the
// holder. Our transactions take milliseconds: a process that holds the lock for longer has been
// stopped, or its disk is slow.
const lockWait = time.Second

// LockWait is how long [File.Begin] waits for another process.
func (f *File) LockWait() time.Duration { return min(lockWait, f.wait) }

// Begin begins a transaction of the connection that writes. When another process holds the lock
// for longer than [File.LockWait], the error is one of [IsBusy].
func (f *File) Begin() error {
	_, err := f.writer.exec(&f.writer.begin, nil)
	if !f.hasty || !IsBusy(err) {
		return err
	}
	if err := f.writer.wait(f.LockWait()); err != nil {
		return err
	}
	f.hasty = false
	_, err = f.writer.exec(&f.writer.begin, nil)
	return err
}

// TryBegin is Begin that does not wait. The connection stays without patience until Begin needs
// it: to change that takes as long as a small statement.
func (f *File) TryBegin() error {
	if !f.hasty {
		if err := f.writer.wait(0); err != nil {
			return err
		}
		f.hasty = true
	}
	_, err := f.writer.exec(&f.writer.begin, nil)
	return err
}

// Commit ends a transaction: what it wrote is in the file that the path leads to.
func (f *File) Commit() error {
	if err := f.opened.lostMemory(); err != nil {
		return err
	}
	if _, err := f.writer.exec(&f.writer.commit, nil); err != nil {
		return err
	}
	return f.opened.lost() // before any caller learns that it is in the file
}

// Rollback ends a transaction that failed.
func (f *File) Rollback() error {
	_, err := f.writer.exec(&f.writer.rollback, nil)
	if code(err) == sqlite3.SQLITE_ERROR { // SQLite has undone it by itself
		return nil
	}
	return err
}

// Lost returns [store.ErrGone] when the path does not lead to the file any more, or its log is
// gone. It stays lost: what was done meanwhile is not in the file that comes back.
func (f *File) Lost() error { return f.opened.lost() }

// The locks that a writer of a WAL file holds, in its shared memory: to write, and
// to rebuild what is in there after a crash.
var writerLocks = [...]int64{120, 122}

// Holder returns the process that holds the file for writing, and when something was written to
// the file last; 0 and the zero time if they are unknown.
func (f *File) Holder() (pid int, lastWrite time.Time, held bool) {
	real, err := target(f.path)
	if err != nil {
		return 0, time.Time{}, false
	}
	pid, held = process.LockHolder(real+sidecars[theMemory], writerLocks[:])
	if log, err := os.Stat(real + sidecars[theLog]); held && err == nil {
		lastWrite = log.ModTime()
	}
	return pid, lastWrite, held
}
