package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// WaitFor is how long a connection waits for another process; writers may set another time with
// [Config.Wait].
const WaitFor = datafile.WaitFor

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
	// Listen has the system tell when a process writes to the file, if the system can (Linux).
	// Otherwise the file is looked at every 15 ms while somebody waits for what others write.
	// Not for a bubble of testing/synctest, whose time stands still while the system is waited for.
	Listen bool
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
	file        *datafile.File
	listen      bool
	others      *datafile.Others

	writer  *writer // nil if the file was opened for reading
	ops     chan operation
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
	db := &DB{
		path: cfg.Path, readOnly: cfg.ReadOnly && cfg.Path != datafile.Memory, owner: cfg.Owner, maxReceives: cfg.MaxReceives, now: cfg.Now, wait: cfg.Wait, onLocked: cfg.OnLocked,
		listen: cfg.Listen,
		ops:    make(chan operation, 128), signals: make(chan chan struct{}, 64), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	file := datafile.Config{
		Path: cfg.Path, ReadOnly: db.readOnly, Wait: cfg.Wait, HoldLog: cfg.HoldLog, Statements: statements[:], Closing: db.closing,
	}
	if cfg.OnCreate != nil {
		file.OnCreate = func(id string) { cfg.OnCreate(Identity{File: id}) }
	}
	var err error
	if db.file, err = datafile.Open(ctx, file); err != nil {
		return nil, fmt.Errorf("open %s: %w", cfg.Path, datafile.Explain(err, store.ErrUnavailable))
	}
	db.others = db.file.Others()
	if db.readOnly {
		close(db.closed) // there is no writer
	} else {
		db.writer = newWriter(db, db.file)
		go db.writer.run()
	}
	return db, nil
}

// AcceptLog says that a log that was found counts: it is taken into the file, as any
// other.
func (db *DB) AcceptLog() { db.file.AcceptLog() }

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
		if err := db.file.Close(); err != nil {
			db.closeErr = fmt.Errorf("close %s: %w", db.path, err)
		}
	})
	return db.closeErr
}

// submit carries out an operation, or hands it to the writer's goroutine. Once it
// is handed over it runs, whether or not its caller still waits.
func (db *DB) submit(ctx context.Context, o operation) (progress, error) {
	if err := ctx.Err(); err != nil {
		return untouched, context.Cause(ctx)
	}
	select {
	case <-db.closing:
		return untouched, datafile.ErrClosed
	default:
	}
	if db.readOnly {
		return untouched, datafile.ErrReadOnly
	}
	if p := db.writer.inline(o); p != untouched {
		return p, nil
	}
	db.promise(o)
	select {
	case db.ops <- o:
		return handedOver, nil
	case <-ctx.Done():
		return untouched, context.Cause(ctx)
	case <-db.closed:
		return untouched, datafile.ErrClosed
	}
}

// promise gives an operation whose caller will wait its signal.
func (db *DB) promise(o operation) {
	j := o.base()
	if j.lazy || j.done != nil {
		return
	}
	select {
	case j.done = <-db.signals:
	default:
		j.done = make(chan struct{}, 1)
	}
}

// do has an operation carried out and waits for it.
func (db *DB) do(ctx context.Context, o operation) error {
	j := o.base()
	if p, err := db.submit(ctx, o); err != nil || p == carriedOut {
		return cmp.Or(err, j.err)
	}
	signal := j.done
	select {
	case <-signal:
	case <-ctx.Done():
		return context.Cause(ctx) // the signal is still owed: it is not spare
	case <-db.closed:
		select {
		case <-signal:
		default:
			return datafile.ErrClosed
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
func (db *DB) read(ctx context.Context, f func(c *datafile.Conn) error) error {
	if db.path == datafile.Memory {
		return db.do(ctx, &readOp{f: f})
	}
	return db.file.Read(ctx, f)
}

type readOp struct {
	job
	f func(c *datafile.Conn) error
}

func (o *readOp) run(w *writer) error { return o.f(w.c) }
