// Package datafile holds the data file of the embedded engine: its connections, its locks, its log, and what other processes write.
//
// A file is opened once for the connection that writes and those that read. It belongs to its user
// alone (see [owned.ErrOthers]), comes into being whole, and is noticed to be lost before the next
// transaction is confirmed: SQLite continues to work in a file that has lost its name or its log.
// The tables are made here (schema.go). The statements that read and write rows come from package
// sqlite, and package row encodes what is in them. No other package of the program imports SQLite's
// driver.
package datafile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	driversqlite "modernc.org/sqlite"

	"github.com/adjourn/adjourn/pkg/store"
)

// readers is how many connections read a file at once.
const readers = 4

// Config says which file to open, and how.
type Config struct {
	// Path of the file. Its folder is made if there is none. [Memory] is a database of its own
	// that ends with Close: the connection that writes is the only one.
	Path string
	// Statements are what [Stmt] numbers.
	Statements []string
	// Wait is how long is waited for another process that makes the file or takes it into WAL
	// mode, and the most that [File.Begin] waits.
	Wait time.Duration
	// OnCreate is called with the identity of the file ([File.Identity]) when this call creates
	// it: before the file has its name.
	OnCreate func(id string)
	// HoldLog leaves a log that was found (see [File.Log]) as it is, also on Close, until
	// [File.AcceptLog]. A connection that only reads leaves it in any case.
	HoldLog bool
	// ReadOnly opens a file that is there for reading: there is no connection that writes.
	ReadOnly bool
	// Closing is closed when nobody is to wait for a connection any more.
	Closing <-chan struct{}
}

// File is one open data file. The connection that writes has one user at a time; what concerns
// that connection says so. The rest is safe for concurrent use.
type File struct {
	path       string
	statements []string
	wait       time.Duration
	opened     *openedFile // nil in memory
	identity   string      // the text in the file
	logSeen    string      // the birth of the log that was there before the file was opened
	logFound   bool
	holdLog    atomic.Bool // it is not taken into the file

	writer  *Conn // nil if the file was opened for reading
	hasty   bool  // the connection that writes waits for nobody
	readers *pool // those that read; nil in memory
	closing <-chan struct{}
}

// Open opens the file, making it if there is none. A file that is not ours, or from a newer
// program, is [store.ErrNotOurs]; one that cannot be read or written is [store.ErrUnavailable].
// For writing, one that others own or may write, itself or in its folder, is [owned.ErrOthers].
func Open(ctx context.Context, cfg Config) (*File, error) {
	// Without this, any code in this process that opens and closes the file (an
	// agent hashing what it finds, say) would strip SQLite's locks from it. It
	// fails where there is no such thing, or after the first database: so be it.
	_, _ = driversqlite.OFDLocking(true)
	f := &File{path: cfg.Path, statements: cfg.Statements, wait: cfg.Wait, closing: cfg.Closing}
	if cfg.Path != Memory {
		f.readers = newPool(readers)
	}
	f.holdLog.Store(cfg.HoldLog)
	var err error
	if cfg.ReadOnly {
		err = f.openForReading(ctx)
	} else {
		f.writer, err = f.openWriter(cfg.OnCreate)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) openForReading(ctx context.Context) (err error) {
	switch there, err := present(f.path); {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("%w: there is no such file", store.ErrUnavailable)
	}
	if f.opened, err = seeFile(f.path, true); err != nil {
		return err
	}
	if err := f.opened.whole(); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := checkJournal(real); err != nil {
		return err
	}
	_, f.logFound = f.opened.enter(real)
	f.holdLog.Store(true)
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	// The first connection finds out what is wrong with the file.
	return f.Read(ctx, func(c *Conn) error {
		if c.unused != nil {
			return nil // it has no log
		}
		return errors.Join(f.opened.rememberSidecars(), f.opened.hasLog(c))
	})
}

// openWriter opens the connection that writes, without writing.
func (f *File) openWriter(onCreate func(id string)) (_ *Conn, err error) {
	if f.path != Memory {
		if err := prepareFile(f.path, f.wait, onCreate); err != nil {
			return nil, err
		}
	}
	if f.opened, err = seeFile(f.path, false); err != nil {
		return nil, err
	}
	if err := f.opened.whole(); err != nil {
		return nil, err
	}
	if err := f.checkOwner(); err != nil {
		return nil, err
	}
	c, err := openConn(f.path, existing, f.statements)
	if err != nil {
		f.opened.left()
		return nil, err
	}
	defer func() {
		if err != nil {
			if f.logFound && f.holdLog.Load() {
				err = errors.Join(err, c.leaveLog())
			}
			err = errors.Join(err, c.close())
			f.opened.left()
		}
	}()
	if f.path == Memory {
		err = initialize(c)
	} else if err = identify(c); err == nil {
		if err = enterWAL(c, f.wait); err == nil {
			err = errors.Join(f.opened.rememberSidecars(), f.opened.hasLog(c))
		}
		if err == nil {
			f.identity, err = readIdentity(c)
		}
		if err == nil {
			err = f.opened.checkAgain(c)
		}
		f.logFound = f.logFound && f.opened.wasLeft(f.logSeen)
	}
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.wait(f.LockWait()), c.Script("PRAGMA synchronous=FULL; PRAGMA cache_size=-2000"))
}

// checkOwner is asked before a file is opened for writing.
func (f *File) checkOwner() error {
	if f.opened == nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := checkFile(real); err != nil {
		return err
	}
	if err := checkJournal(real); err != nil {
		return err
	}
	f.logSeen, f.logFound = f.opened.enter(real)
	return nil
}

// AcceptLog says that a log that was found counts: it is taken into the file, as any
// other.
func (f *File) AcceptLog() { f.holdLog.Store(false) }

// Writer returns the connection that writes; nil if the file was opened for reading.
func (f *File) Writer() *Conn { return f.writer }

// Read lends a connection that sees everything committed. In memory there is none.
func (f *File) Read(ctx context.Context, use func(c *Conn) error) error {
	c, err := f.readers.take(ctx, f.closing)
	if err != nil {
		return err
	}
	defer func() { f.readers.give(c) }()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	for {
		if c == nil {
			// Closing a connection to another file would write the lost one's log into it.
			if lost := f.opened.lost(); lost != nil {
				return lost
			}
			opened, err := openReader(f.path, f.statements)
			if err != nil {
				return cmp.Or(f.opened.lost(), err)
			}
			c = opened
		}
		err := use(c)
		if lost := f.opened.lost(); lost != nil {
			return lost
		}
		if c.unused.holds() {
			return err
		}
		// The file changed under a connection that cannot see it: once more.
		old := c
		c = nil
		if err := old.close(); err != nil {
			return err
		}
	}
}

// Close closes all connections: that which writes must be out of use, those that read are waited
// for. Then nothing of the file is open here. It must be called once.
func (f *File) Close() (err error) {
	if f.writer != nil {
		err = f.closeConn(f.writer)
	}
	if f.readers != nil {
		f.readers.each(func(c *Conn) { err = errors.Join(err, f.closeConn(c)) })
	}
	if err == nil {
		f.opened.left()
	}
	return err
}

// closeConn closes a connection, and touches nothing of others' in the place of a lost log.
func (f *File) closeConn(c *Conn) error {
	if f.logFound && f.holdLog.Load() || f.opened.leaves() {
		if err := c.leaveLog(); err != nil {
			return err // it stays open: only so its locks keep SQLite from the log
		}
	}
	return c.close()
}
