package sqlite

import (
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

const (
	// batchMax bounds how much one transaction takes in, and so how long the first
	// of it waits for the last.
	batchMax = 128
	// lazyFor is how long an operation nobody waits for is kept, so that it can
	// share the next one's transaction.
	lazyFor = time.Millisecond
	// pollEvery is how often a file is looked at for what other processes sent.
	pollEvery = 50 * time.Millisecond
)

// operation is one piece of work for the writer.
//
// run checks every condition before it writes anything, so that a refusal
// leaves nothing behind and the others of its batch need no savepoint. A refusal
// goes into the job's err; what run returns is SQLite's failure: then the
// transaction is undone, and run may be called again.
type operation interface {
	run(w *writer) error
	base() *job
}

// job is what every operation has.
type job struct {
	durable bool          // committed with an fsync
	lazy    bool          // nobody waits for it
	done    chan struct{} // told once the transaction is over; nil if lazy
	err     error
}

func (j *job) base() *job { return j }

func (j *job) answer() {
	if j.done != nil {
		j.done <- struct{}{}
	}
}

// writer owns the one connection that writes.
type writer struct {
	db *DB
	c  *conn

	batch []operation
	full  bool // the connection's synchronous level
	sids  map[session.Key]int64
	self  int64 // our number among the owners; 0 until it is needed
	mid   int64 // the newest message's number

	parked []*receiveOp // waiting for a message
	fresh  []*receiveOp // parked by the transaction under way
	filled []*receiveOp // given something by the transaction under way
	wakeAt time.Time    // when something becomes visible, as far as we know
}

// sidsMax bounds the cache of session numbers. They never change.
const sidsMax = 1 << 16

func newWriter(db *DB, c *conn) *writer {
	return &writer{db: db, c: c, full: true, sids: map[session.Key]int64{}}
}

func (w *writer) run() {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		var ticks <-chan time.Time
		if wait, ok := w.idleFor(); ok {
			timer.Reset(wait)
			ticks = timer.C
		}
		select {
		case o := <-w.db.ops:
			w.gather(o)
			w.commit(w.batch)
		case <-ticks:
			w.tick()
		case <-w.db.closing:
			w.shutdown()
			return
		}
	}
}

// gather takes what is there. When that is nothing anybody waits for, it waits a
// little for something that is.
func (w *writer) gather(first operation) {
	w.batch = append(w.batch[:0], first)
	lazy := first.base().lazy
	if !lazy {
		// Those who were answered by the last transaction are about to come back.
		runtime.Gosched()
	}
	var patience <-chan time.Time
	for len(w.batch) < batchMax {
		select {
		case o := <-w.db.ops:
			w.batch = append(w.batch, o)
			lazy = lazy && o.base().lazy
			continue
		default:
		}
		if !lazy {
			return
		}
		if patience == nil {
			t := time.NewTimer(lazyFor)
			defer t.Stop()
			patience = t.C
		}
		select {
		case o := <-w.db.ops:
			w.batch = append(w.batch, o)
			lazy = o.base().lazy
		case <-patience:
			return
		case <-w.db.closing:
			return
		}
	}
}

// commit runs a batch in one transaction and answers all of it. When SQLite
// fails, each runs alone, so that one that is too big for the disk does not take
// the others down.
func (w *writer) commit(batch []operation) {
	err := w.transact(batch)
	if err != nil && len(batch) > 1 && !isBusy(err) {
		for i := range batch {
			w.commit(batch[i : i+1])
		}
		return
	}
	for _, r := range w.filled {
		r.answer()
	}
	for _, o := range batch {
		if err != nil {
			o.base().err = err
		} else if r, ok := o.(*receiveOp); ok && r.parked {
			continue // waiting, or answered above
		}
		o.base().answer()
	}
	if len(w.fresh) > 0 {
		w.parked = append(slices.DeleteFunc(w.parked, (*receiveOp).gone), w.fresh...)
		for _, r := range w.fresh {
			r.running = false
		}
	}
	w.fresh, w.filled = w.fresh[:0], w.filled[:0]
}

func (w *writer) transact(batch []operation) (err error) {
	durable := false
	for _, o := range batch {
		durable = durable || o.base().durable
	}
	if err := w.synchronous(durable); err != nil {
		return err
	}
	if _, err := w.c.exec(stmtBegin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, undo := w.c.exec(stmtRollback)
			if undo != nil && code(undo) != 1 { // 1: SQLite has undone it by itself
				err = errors.Join(err, undo)
			}
			w.undo()
		}
	}()
	for _, o := range batch {
		o.base().err = nil
		if err := o.run(w); err != nil {
			return err
		}
	}
	_, err = w.c.exec(stmtCommit)
	return err
}

// undo forgets what a transaction did that did not happen.
func (w *writer) undo() {
	clear(w.sids)
	w.self = 0
	for _, r := range w.filled {
		r.deliveries = nil
		if !r.running {
			r.answer() // early, with nothing: its caller looks again
		}
	}
	w.fresh, w.filled = w.fresh[:0], w.filled[:0]
}

// synchronous sets whether a commit is synced. The one connection switches (1 µs)
// because a second one would find its page cache stale after each of the
// first's transactions (30 µs).
func (w *writer) synchronous(full bool) error {
	if w.full == full {
		return nil
	}
	text := "PRAGMA synchronous=NORMAL"
	if full {
		text = "PRAGMA synchronous=FULL"
	}
	if err := w.c.script(text); err != nil {
		return err
	}
	w.full = full
	return nil
}

// sid returns a session's number, or 0.
func (w *writer) sid(key session.Key) (int64, error) {
	if sid, ok := w.sids[key]; ok {
		return sid, nil
	}
	row, err := w.c.one(stmtFindSession, key.Tenant, key.ID)
	if err != nil || row == nil {
		return 0, err
	}
	if len(w.sids) >= sidsMax {
		clear(w.sids)
	}
	w.sids[key] = intOf(row[0])
	return intOf(row[0]), nil
}

func (w *writer) newSID(key session.Key) (int64, error) {
	sid, err := w.c.insert(stmtNewSession, key.Tenant, key.ID)
	if err == nil {
		w.sids[key] = sid
	}
	return sid, err
}

func (w *writer) shutdown() {
	for done := false; !done; {
		select {
		case o := <-w.db.ops:
			w.gather(o)
			w.commit(w.batch)
		default:
			done = true
		}
	}
	for _, r := range w.parked {
		if r.take() {
			r.err = errClosed
			r.answer()
		}
	}
	w.db.closeErr = w.c.close()
	close(w.db.closed)
}
