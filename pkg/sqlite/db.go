package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	driversqlite "modernc.org/sqlite"

	"github.com/adjourn/adjourn/pkg/store"
)

// readers is how many connections read a file at once.
const readers = 4

// Config says which file to open, and for which owner.
type Config struct {
	// Path of the file. Its folder is made if there is none. ":memory:" is a
	// database of its own that ends with Close.
	Path string
	// Owner names this process to others; empty means [NewOwner]. Leases are taken by owners
	// that the caller chooses. If the leases are to end when this process dies, their owners are
	// made from [DB.Owner], a slash and any text.
	Owner string
	// MaxReceives is how often a message is received before it goes to the dead
	// letters; 0 means 20.
	MaxReceives int
	// Now is the queue's clock; nil means time.Now.
	Now func() time.Time
	// Wait is how long is waited for another process that is writing; 0 means 10 s.
	Wait time.Duration
	// OnLocked is called once by each transaction that has waited a short time for another
	// process and continues to wait. It must return soon.
	OnLocked func(Holder)
	// OnCreate is called with the identity of the file ([Identity.File]) when this call creates
	// it: before the file has its name, so that a process that finds the file finds its identity
	// recorded. After a crash, or if another process was first, no file of that identity
	// appears.
	OnCreate func(Identity)
	// HoldLog leaves a log that was found (see [Identity]) as it is, also on Close, until
	// [DB.AcceptLog]: SQLite would take it into the file. A connection that only reads leaves it
	// in any case.
	HoldLog bool
	// ReadOnly opens a file that is there for reading. It works on files and in
	// folders that cannot be written, also on others', and whatever would write is refused.
	ReadOnly bool
}

// DB is one open file: a store and a queue that share their transactions. It is
// safe for concurrent use, as is the file by any number of processes.
type DB struct {
	path        string
	readOnly    bool
	owner       string
	maxReceives int
	now         func() time.Time
	wait        time.Duration
	onLocked    func(Holder)
	onCreate    func(Identity)
	file        *openedFile // nil in memory
	identity    string      // the text in the file
	logFound    bool
	holdLog     atomic.Bool // it is not taken into the file

	ops     chan operation
	pool    chan *conn         // nil in memory, where the writer also reads
	signals chan chan struct{} // spare ones

	closing   chan struct{}
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open opens the file, making it if there is none. A file that is not ours, or
// from a newer program, is [store.ErrNotOurs]; one that cannot be read or
// written is [store.ErrUnavailable]. For writing, one that others own or may write,
// itself or in its folder, is [owned.ErrOthers].
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if cfg.Path == "" {
		return nil, errors.New("open data file: no path")
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open %s: %w", cfg.Path, err)
	}
	if cfg.Owner == "" {
		cfg.Owner = NewOwner()
	}
	if cfg.MaxReceives == 0 {
		cfg.MaxReceives = 20
	}
	if cfg.Wait == 0 {
		cfg.Wait = WaitFor
	}
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // an adapter at the edge; the queue's clock unless one is injected
	}
	// Without this, any code in this process that opens and closes the file (an
	// agent hashing what it finds, say) would strip SQLite's locks from it. It
	// fails where there is no such thing, or after the first database: so be it.
	_, _ = driversqlite.OFDLocking(true)
	db := &DB{
		path: cfg.Path, readOnly: cfg.ReadOnly && cfg.Path != memoryPath, owner: cfg.Owner, maxReceives: cfg.MaxReceives, now: cfg.Now, wait: cfg.Wait, onLocked: cfg.OnLocked, onCreate: cfg.OnCreate,
		ops: make(chan operation, 128), signals: make(chan chan struct{}, 64), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	if cfg.Path != memoryPath {
		db.pool = make(chan *conn, readers)
		for range readers {
			db.pool <- nil
		}
	}
	db.holdLog.Store(cfg.HoldLog)
	if err := db.open(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", cfg.Path, explain(err, store.ErrUnavailable))
	}
	return db, nil
}

func (db *DB) open(ctx context.Context) (err error) {
	if db.readOnly {
		close(db.closed) // there is no writer
		switch there, err := present(db.path); {
		case err != nil:
			return err
		case !there:
			return fmt.Errorf("%w: there is no such file", store.ErrUnavailable)
		}
		if db.file, err = seeFile(db.path, true); err != nil {
			return err
		}
		if err := db.file.whole(); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(db.path)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		if err := checkJournal(real); err != nil {
			return err
		}
		db.logFound = db.file.enter(real)
		db.holdLog.Store(true)
		defer func() {
			if err != nil {
				err = errors.Join(err, db.dropReaders())
			}
		}()
		// The first connection finds out what is wrong with the file.
		return db.read(ctx, func(c *conn) error {
			if c.unused != nil {
				return nil // it has no log
			}
			return errors.Join(db.file.rememberSidecars(), db.file.hasLog(c))
		})
	}
	c, err := db.openWriter()
	if err != nil {
		return err
	}
	go newWriter(db, c).run()
	return nil
}

// openWriter opens the connection that writes, without writing.
func (db *DB) openWriter() (_ *conn, err error) {
	if db.path != memoryPath {
		if err := prepareFile(db.path, db.wait, db.onCreate); err != nil {
			return nil, err
		}
	}
	if db.file, err = seeFile(db.path, false); err != nil {
		return nil, err
	}
	if err := db.file.whole(); err != nil {
		return nil, err
	}
	if err := db.checkOwner(); err != nil {
		return nil, err
	}
	c, err := openConn(db.path, existing)
	if err != nil {
		db.file.left()
		return nil, err
	}
	defer func() {
		if err != nil {
			if db.logFound && db.holdLog.Load() {
				err = errors.Join(err, c.leaveLog())
			}
			err = errors.Join(err, c.close())
			db.file.left()
		}
	}()
	if db.path == memoryPath {
		err = initialize(c)
	} else if err = identify(c); err == nil {
		if err = enterWAL(c, db.wait); err == nil {
			err = errors.Join(db.file.rememberSidecars(), db.file.hasLog(c))
		}
		if err == nil {
			db.identity, err = readIdentity(c)
		}
		if err == nil {
			err = db.file.checkAgain(c)
		}
	}
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.wait(db.lockWait()), c.script("PRAGMA synchronous=FULL; PRAGMA cache_size=-16000"))
}

// checkOwner is asked before a file is opened for writing.
func (db *DB) checkOwner() error {
	if db.file == nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(db.path)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := checkFile(real); err != nil {
		return err
	}
	if err := checkJournal(real); err != nil {
		return err
	}
	db.logFound = db.file.enter(real)
	return nil
}

// AcceptLog says that a log that was found counts: it is taken into the file, as any
// other.
func (db *DB) AcceptLog() { db.holdLog.Store(false) }

// Owner returns the name of this process.
func (db *DB) Owner() string { return db.owner }

// Store returns the store in the file.
func (db *DB) Store() *Store { return &Store{db: db} }

// Queue returns the queue in the file.
func (db *DB) Queue() *Queue { return &Queue{db: db} }

// DeadLetters returns the queue of messages that were received too often.
// Nothing leaves it by itself.
func (db *DB) DeadLetters() *Queue { return &Queue{db: db, dead: true} }

// Close ends what waits with an error, finishes what was begun and closes the
// file. Closing twice is no error.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		close(db.closing)
		<-db.closed
		db.closeErr = errors.Join(db.closeErr, db.dropReaders())
		if db.closeErr != nil {
			db.closeErr = fmt.Errorf("close %s: %w", db.path, db.closeErr)
		}
	})
	return db.closeErr
}

// dropReaders closes the connections that read. Then nothing of the file is open here.
func (db *DB) dropReaders() (err error) {
	for range cap(db.pool) {
		if c := <-db.pool; c != nil {
			err = errors.Join(err, db.closeConn(c))
		}
	}
	if err == nil && db.closeErr == nil {
		db.file.left()
	}
	return err
}

// closeConn closes a connection, and touches nothing of others' in the place of a lost log.
func (db *DB) closeConn(c *conn) error {
	if db.logFound && db.holdLog.Load() || db.file.leaves() {
		if err := c.leaveLog(); err != nil {
			return err // it stays open: only so its locks keep SQLite from the log
		}
	}
	return c.close()
}

// submit hands an operation to the writer. Once it is handed over it runs,
// whether or not its caller still waits.
func (db *DB) submit(ctx context.Context, o operation) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case <-db.closing:
		return errClosed
	default:
	}
	if db.readOnly {
		return errReadOnly
	}
	select {
	case db.ops <- o:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-db.closed:
		return errClosed
	}
}

// do has the writer carry out an operation and waits for it.
func (db *DB) do(ctx context.Context, o operation) error {
	var signal chan struct{}
	select {
	case signal = <-db.signals:
	default:
		signal = make(chan struct{}, 1)
	}
	j := o.base()
	j.done = signal
	if err := db.submit(ctx, o); err != nil {
		return err
	}
	select {
	case <-signal:
	case <-ctx.Done():
		return context.Cause(ctx) // the signal is still owed: it is not spare
	case <-db.closed:
		select {
		case <-signal:
		default:
			return errClosed
		}
	}
	select {
	case db.signals <- signal:
	default:
	}
	return j.err
}

// read lends a connection that sees everything committed. In memory there is
// one connection only, the writer's.
func (db *DB) read(ctx context.Context, f func(c *conn) error) error {
	if db.pool == nil {
		return db.do(ctx, &readOp{f: f})
	}
	var c *conn
	select {
	case <-db.closing:
		return errClosed
	default:
	}
	select {
	case c = <-db.pool:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-db.closing:
		return errClosed
	}
	defer func() { db.pool <- c }()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	for {
		if c == nil {
			// Closing a connection to another file would write the lost one's log into it.
			if lost := db.file.lost(); lost != nil {
				return lost
			}
			opened, err := openReader(db.path)
			if err != nil {
				return cmp.Or(db.file.lost(), err)
			}
			c = opened
		}
		err := f(c)
		if lost := db.file.lost(); lost != nil {
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

type readOp struct {
	job
	f func(c *conn) error
}

func (o *readOp) run(w *writer) error { return o.f(w.c) }
