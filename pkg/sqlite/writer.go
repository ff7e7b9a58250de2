package sqlite

import (
	"cmp"
	"errors"
	"runtime"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// batchMax bounds how much one transaction takes in, and so how long the first
	// of it waits for the last.
	batchMax = 128
	// quietRounds is how often the writer steps aside for others to come before it
	// begins an fsync that fewer share than usual: some 50 µs.
	quietRounds = 32
	// usualMax is how many operations are expected to share an fsync at most: while it goes on, the
	// others get ready for the next.
	usualMax = 32
	// roundsMax is how often at most the quick operations come first: a caller with one quick
	// operation after the other must not keep durable ones from the disk.
	roundsMax = 128
	// lazyFor is how long an operation without a waiting caller is kept, so that it can share
	// the next one's transaction.
	lazyFor = 2 * time.Millisecond
	// pollEvery is how often the owners of what was received are looked at: one may have died.
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
	lazy    bool          // no caller waits for it
	done    chan struct{} // closed or sent to once the transaction is over; nil if lazy
	err     error
}

func (j *job) base() *job { return j }

func (j *job) answer() {
	if j.done != nil {
		j.done <- struct{}{}
	}
}

// writer owns the one connection that writes.
//
// Who works with it holds its turn: its own goroutine (run), or a caller that carries out its
// operation itself (inline).
type writer struct {
	db   *DB
	file *datafile.File
	c    *datafile.Conn // the one that writes
	// turn is full while somebody works here. It is a channel, not a mutex, because a goroutine
	// that waits for a channel lets the time of a testing/synctest bubble pass.
	turn chan struct{}
	// nudged has run look again: at what was left to it, or at how long it may sleep.
	nudged chan struct{}
	wakes  time.Time // when run wakes by itself; zero: it does not

	// What has come and waits for its transaction: without an fsync, with one, and
	// with whichever comes first.
	quick, durable, lazy []operation
	batch                []operation // the one under way
	usual                int         // how many share an fsync, lately
	overdue              *time.Timer // the lazy must go

	full bool // the connection's synchronous level
	sids map[session.Key]int64
	// heads are as they are in the file, as long as no other process wrote to it: every claim
	// needs one, and nearly always it was our own claim that changed it last.
	heads   map[int64]row.Head
	version uint32 // of the file, when heads was valid
	self    int64  // our number among the owners; 0 until it is needed
	mid     int64  // the newest message's number
	inboxes bool   // the file is known to have them

	parked []*receiveOp // waiting for a message
	fresh  []*receiveOp // parked by the transaction under way
	filled []*receiveOp // given something by the transaction under way
	wakeAt time.Time    // the earliest known time at which a message becomes visible
	// pulledAt is when messages too far ahead were last pulled in.
	pulledAt time.Time
	pollAt   time.Time // when to look at the owners
	dry      [2]dry    // what was looked for in vain, among the living and the dead

	checkAt   time.Time // when to ask whether others wrote
	lookedAt  time.Time // when the messages were looked at last
	writtenAt time.Time // when the system last told that something was written
	owners    []string  // others that were alive and may have died
}

const (
	sidsMax  = 1 << 16 // session numbers never change
	headsMax = 1 << 12
)

func newWriter(db *DB, file *datafile.File) *writer {
	return &writer{
		db: db, file: file, c: file.Writer(), turn: make(chan struct{}, 1), nudged: make(chan struct{}, 1),
		full: true, sids: map[session.Key]int64{}, heads: map[int64]row.Head{}, overdue: stopped(),
	}
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (w *writer) run() {
	timer := stopped()
	defer timer.Stop()
	defer w.overdue.Stop()
	w.enter()
	for {
		var ticks <-chan time.Time
		w.listen()
		w.wakes = time.Time{}
		now := w.db.now()
		if wait, ok := w.idleFor(now); ok {
			timer.Reset(wait)
			ticks, w.wakes = timer.C, now.Add(wait)
		}
		told := w.db.others.Told()
		w.leave()
		select {
		case o := <-w.db.ops:
			w.enter()
			w.sort(o)
			w.serve()
		case <-w.nudged:
			w.enter()
			if len(w.quick)+len(w.durable) > 0 {
				w.serve()
			}
		case <-w.overdue.C:
			w.enter()
			w.flush()
		case <-ticks:
			w.enter()
			w.tick()
		case <-told:
			w.enter()
			w.wrote()
		case <-w.db.others.Begun():
			w.enter()
			w.tick()
		case <-w.db.closing:
			w.enter() // and never leaves: nobody works here any more
			w.shutdown()
			return
		}
	}
}

// sort puts an operation into the batch it belongs to.
func (w *writer) sort(o operation) {
	switch j := o.base(); {
	case j.lazy:
		if len(w.lazy) == 0 {
			w.overdue.Reset(lazyFor)
		}
		w.lazy = append(w.lazy, o)
	case j.durable:
		w.durable = append(w.durable, o)
	default:
		w.quick = append(w.quick, o)
	}
}

// drain sorts what has gathered and returns how much that was.
func (w *writer) drain() int {
	for n := 0; ; n++ {
		if len(w.quick)+len(w.durable) >= batchMax {
			return n
		}
		select {
		case o := <-w.db.ops:
			w.sort(o)
		default:
			return n
		}
	}
}

// serve carries out the waiting operations. Those that need no fsync go first and are answered at
// once: their callers are likely to ask next for an operation that needs one, and then share it.
// So a durable transaction begins only when no other operation is expected.
func (w *writer) serve() {
	for quiet, round := 0, 0; quiet < quietRounds && round < roundsMax && len(w.durable) < batchMax; round++ {
		w.drain()
		if len(w.quick) > 0 {
			w.batch = append(w.batch[:0], w.quick...)
			w.quick = w.quick[:0]
			w.commit(w.batch)
		}
		runtime.Gosched()
		quiet++
		if w.drain() > 0 {
			quiet = 0
		} else if len(w.durable) >= w.usual || len(w.durable) == 0 {
			break
		}
	}
	if n := len(w.durable); n > 0 {
		w.usual = min(max(n, w.usual*3/4), usualMax)
	}
	if len(w.durable)+len(w.quick) > 0 || w.late() {
		w.flush()
	}
}

// late reports whether operations without a waiting caller have waited long enough. Usually they
// share the next fsync, which often writes the same pages.
func (w *writer) late() bool {
	select {
	case <-w.overdue.C:
		return true
	default:
		return len(w.lazy) >= batchMax
	}
}

// flush carries out everything that is there.
func (w *writer) flush() {
	w.batch = append(append(append(w.batch[:0], w.lazy...), w.quick...), w.durable...)
	w.lazy, w.quick, w.durable = w.lazy[:0], w.quick[:0], w.durable[:0]
	if len(w.batch) > 0 {
		w.commit(w.batch)
	}
}

// commit runs a batch in one transaction and answers all of it. When SQLite
// fails, each runs alone, so that one that is too big for the disk does not take
// the others down.
func (w *writer) commit(batch []operation) {
	batch = w.parkKnown(batch)
	if len(batch) == 0 {
		return
	}
	err := w.transact(batch, w.begin)
	if each(batch, err) {
		for i := range batch {
			w.commit(batch[i : i+1])
		}
		return
	}
	w.settle(batch, err)
}

// each reports whether each of a batch is to be tried alone, after SQLite's failure.
func each(batch []operation, err error) bool {
	return err != nil && len(batch) > 1 && !datafile.IsBusy(err) && !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrGone)
}

// settle answers a batch, and keeps those of it that wait for a message.
func (w *writer) settle(batch []operation, err error) {
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
		w.wait(w.fresh...)
	}
	w.fresh, w.filled = w.fresh[:0], w.filled[:0]
}

// transact runs a batch in one transaction.
func (w *writer) transact(batch []operation, begin func() error) error {
	err := w.attempt(batch, begin)
	if err != nil {
		err = cmp.Or(w.file.Lost(), err)
	}
	return err
}

func (w *writer) attempt(batch []operation, begin func() error) (err error) {
	durable := false
	for _, o := range batch {
		durable = durable || o.base().durable
	}
	if err := w.synchronous(durable); err != nil {
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	done := false
	defer func() {
		if err != nil || !done { // a panic may be caught by the caller whose goroutine this is
			if undo := w.file.Rollback(); undo != nil {
				err = errors.Join(err, undo)
			}
			w.undo()
		}
	}()
	if err := w.refresh(); err != nil {
		return err
	}
	for _, o := range batch {
		o.base().err = nil
		if err := o.run(w); err != nil {
			return err
		}
	}
	err = w.file.Commit()
	done = true
	if err != nil {
		return err
	}
	if w.version, err = w.c.ContentVersion(); err != nil {
		clear(w.heads)
	}
	return nil
}

// refresh forgets the HEADs it knows, when another process has written since the last transaction.
func (w *writer) refresh() error {
	v, err := w.c.ContentVersion()
	if v != w.version || len(w.heads) >= headsMax {
		clear(w.heads)
	}
	return err
}

// undo forgets what a transaction did that did not happen: what it received is
// there again, and what it found received is not.
func (w *writer) undo() {
	clear(w.sids)
	clear(w.heads)
	w.self, w.inboxes = 0, false
	w.dry = [2]dry{}
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
	if err := w.c.Script(text); err != nil {
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
	values, err := w.c.One(stmtFindSession, key.Tenant, key.ID)
	if err != nil || values == nil {
		return 0, err
	}
	if len(w.sids) >= sidsMax {
		clear(w.sids)
	}
	w.sids[key] = values.Int(0)
	return values.Int(0), nil
}

// head returns HEAD of a session that has a number.
func (w *writer) head(sid int64) (row.Head, error) {
	if h, ok := w.heads[sid]; ok {
		return h, nil
	}
	values, err := w.c.One(stmtHead, sid)
	if err != nil {
		return row.Head{}, err
	}
	h := row.HeadOf(values)
	h.Keep()
	w.heads[sid] = h
	return h, nil
}

func (w *writer) newSID(key session.Key) (int64, error) {
	sid, err := w.c.Insert(stmtNewSession, key.Tenant, key.ID)
	if err == nil {
		w.sids[key] = sid
	}
	return sid, err
}

func (w *writer) shutdown() {
	w.db.others.Close()
	for w.drain() > 0 || len(w.lazy)+len(w.quick)+len(w.durable) > 0 {
		w.flush()
	}
	for _, r := range w.parked {
		if r.take() {
			r.err = datafile.ErrClosed
			r.answer()
		}
	}
	close(w.db.closed)
}
