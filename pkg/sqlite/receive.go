package sqlite

import (
	"database/sql/driver"
	"slices"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
)

// receiveOp is one call of Receive. When there is nothing for it and it may
// wait, it is parked with the writer, which gives it what the next commit
// enqueues in that very transaction.
type receiveOp struct {
	job
	dead       bool
	only       session.Key
	max        int
	visibility time.Duration
	patient    bool

	running    bool // it is one of the batch under way, which answers it
	deliveries []queue.Delivery

	mu        sync.Mutex
	phase     phase
	parked    bool // it was tried, found nothing and waits; written by the writer only
	impatient bool // its time is over, but the writer has hold of it
}

// phase says which goroutine may decide about a receiveOp.
type phase int

const (
	waiting   phase = iota // its caller may withdraw it, the writer may take it
	taken                  // the writer has it
	withdrawn              // its caller is gone
)

// withdraw takes the operation back from the writer. When the writer has it
// already, or it was not tried yet and must be, it will be answered soon.
func (r *receiveOp) withdraw(untried bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.impatient = true
	if r.phase != waiting || !untried && !r.parked {
		return false
	}
	r.phase = withdrawn
	return true
}

func (r *receiveOp) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == withdrawn {
		return false
	}
	r.phase = taken
	return true
}

// begin takes the operation for a try of its own.
func (r *receiveOp) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.deliveries, r.parked = true, nil, false
	if r.phase == withdrawn {
		return false
	}
	r.phase = taken
	return true
}

// park lets the operation wait for a message, unless its caller did not ask for that or its time
// is over. It reports whether the operation waits.
func (r *receiveOp) park() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.patient || r.impatient {
		return false
	}
	r.phase, r.parked = waiting, true
	return true
}

func (r *receiveOp) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase == withdrawn
}

func (r *receiveOp) wants(dead bool, wake *journal.Wake) bool {
	return r.dead == dead && len(r.deliveries) < r.max &&
		(r.only == (session.Key{}) || r.only == wake.Key())
}

func (r *receiveOp) run(w *writer) error {
	if !r.begin() {
		return nil
	}
	if err := w.receive(r); err != nil {
		return err
	}
	if len(r.deliveries) == 0 && r.park() {
		w.fresh = append(w.fresh, r)
	}
	return nil
}

// wait keeps operations until there is something for them.
func (w *writer) wait(rs ...*receiveOp) {
	if len(w.parked) == 0 {
		w.pollAt = w.db.now().Add(w.ownerPoll())
	}
	w.parked = append(slices.DeleteFunc(w.parked, (*receiveOp).gone), rs...)
	for _, r := range rs {
		r.running = false
	}
}

// dry says that there was nothing to receive: until something happens here, a
// message's time comes, or (in a file) others may have sent something, there is
// no use in looking again.
type dry struct {
	valid bool
	only  session.Key
	at    time.Time
}

// parkKnown parks receipts that would find nothing, without a transaction, and
// returns the rest of the batch.
func (w *writer) parkKnown(batch []operation) []operation {
	if !w.dry[0].valid && !w.dry[1].valid {
		return batch
	}
	return slices.DeleteFunc(batch, func(o operation) bool {
		r, ok := o.(*receiveOp)
		if !ok || !r.patient || r.base().err != nil {
			return false
		}
		d := &w.dry[boolInt(r.dead)]
		if !d.valid || d.only != r.only {
			return false
		}
		now := w.db.now()
		if !w.wakeAt.IsZero() && journal.Come(w.wakeAt, now, journal.MaxAhead) || w.db.path != datafile.Memory && now.Sub(d.at) >= pollEvery {
			d.valid = false
			return false
		}
		if !r.begin() {
			return true // its caller is gone
		}
		if !r.park() {
			r.answer()
			return true
		}
		w.wait(r)
		return true
	})
}

// receive looks for messages. If there are none, it looks for owners that died after they had
// received some.
func (w *writer) receive(r *receiveOp) error {
	if now := w.db.now(); now.Sub(w.pulledAt).Abs() >= pullEvery { // also while the queue is never empty
		if _, err := w.pullIn(); err != nil {
			return err
		}
		w.pulledAt = now
	}
	if err := w.visible(r); err != nil || len(r.deliveries) > 0 {
		return err
	}
	freed, err := w.releaseDead()
	if err != nil {
		return err
	}
	pulled, err := w.pullIn()
	if err != nil {
		return err
	}
	if freed || pulled {
		if err := w.visible(r); err != nil || len(r.deliveries) > 0 {
			return err
		}
	}
	w.dry[boolInt(r.dead)] = dry{valid: true, only: r.only, at: w.db.now()}
	return nil
}

func (w *writer) visible(r *receiveOp) error {
	for len(r.deliveries) < r.max {
		now := w.db.now()
		s := stmtVisible
		args := []driver.Value{boolInt(r.dead), now.UnixNano(), int64(r.max - len(r.deliveries))}
		if r.only != (session.Key{}) {
			s = stmtVisibleOf
			args = []driver.Value{args[0], args[1], r.only.ID, r.only.Tenant, args[2]}
		}
		var found []row.Message
		err := w.c.Query(s, func(values row.Values) bool {
			found = append(found, row.MessageOf(values))
			return true
		}, args...)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, m := range found {
			if !r.dead && m.Receives >= int64(w.db.maxReceives) {
				if _, err := w.c.Exec(stmtBuryMessage, now.UnixNano(), m.Number); err != nil {
					return err
				}
				w.expect(now)
				continue
			}
			m.Receives++
			owner, err := w.owner()
			if err != nil {
				return err
			}
			until := now.Add(min(r.visibility, journal.MaxAhead))
			if _, err := w.c.Exec(stmtReceive, row.Nanos(until), m.Receives, owner, m.Number); err != nil {
				return err
			}
			w.expect(until)
			r.deliveries = append(r.deliveries, m.Delivery(r.dead))
		}
	}
	return nil
}

// send enqueues wakes. A wake that a receiver of this process waits for is enqueued as already
// received: that saves a transaction and the wait for it.
func (w *writer) send(dead bool, wakes []journal.Wake) error {
	if len(wakes) == 0 {
		return nil
	}
	now := w.db.now()
	for i := range wakes {
		wake := wakes[i]
		if wake.Delay > journal.MaxAhead {
			continue // the sweep sends for its session when the time has come
		}
		visible, receives, owner := now.Add(max(wake.Delay, 0)), int64(0), driver.Value(nil)
		wake.Delay = 0
		var r *receiveOp
		if !visible.After(now) {
			if r = w.receiver(dead, &wake); r != nil {
				self, err := w.owner()
				if err != nil {
					return err
				}
				visible, receives, owner = now.Add(min(r.visibility, journal.MaxAhead)), 1, self
			}
		}
		mid := max(now.UnixNano(), w.mid+1)
		for {
			n, err := w.c.Exec(stmtSend, mid, boolInt(dead), row.Nanos(visible), now.UnixNano(), receives, owner,
				wake.Tenant, wake.ID, wake.Seq, string(wake.Kind), int64(wake.V))
			if err != nil {
				return err
			}
			if n == 1 {
				break
			}
			mid++ // another process sent one in the same nanosecond
		}
		w.mid = mid
		w.expect(visible)
		if r != nil {
			m := row.Message{Number: mid, Sent: now.UnixNano(), Receives: 1, Wake: wake}
			r.deliveries = append(r.deliveries, m.Delivery(dead))
		}
	}
	return nil
}

// receiver returns a receiver that waits for a message, the one that waits longest first.
func (w *writer) receiver(dead bool, wake *journal.Wake) *receiveOp {
	for _, r := range w.filled {
		if r.wants(dead, wake) {
			return r
		}
	}
	if r := takeFrom(&w.parked, dead, wake); r != nil {
		w.filled = append(w.filled, r)
		return r
	}
	if r := takeFrom(&w.fresh, dead, wake); r != nil {
		w.filled = append(w.filled, r)
		return r
	}
	return nil
}

func takeFrom(list *[]*receiveOp, dead bool, wake *journal.Wake) *receiveOp {
	for i, r := range *list {
		if r.wants(dead, wake) && r.take() {
			*list = slices.Delete(*list, i, i+1)
			return r
		}
	}
	return nil
}

// owner returns this process's number in the file.
func (w *writer) owner() (driver.Value, error) {
	if w.self != 0 {
		return w.self, nil
	}
	err := w.c.Query(stmtOwners, func(values row.Values) bool {
		if values.Text(1) == w.db.owner {
			w.self = values.Int(0)
		}
		return w.self == 0
	})
	if err == nil && w.self == 0 {
		w.self, err = w.c.Insert(stmtNewOwner, w.db.owner)
	}
	return w.self, err
}

// releaseDead makes visible the messages that dead owners had received.
func (w *writer) releaseDead() (freed bool, err error) {
	if w.db.path == datafile.Memory {
		return false, nil
	}
	dead, err := w.deadOwners()
	if err != nil {
		return false, err
	}
	for _, oid := range dead {
		n, err := w.c.Exec(stmtFreeMessages, w.db.now().UnixNano(), oid)
		if err != nil {
			return false, err
		}
		if _, err := w.c.Exec(stmtDropOwner, oid); err != nil {
			return false, err
		}
		freed = freed || n > 0
	}
	if freed {
		w.expect(w.db.now()) // this receiver may not take all of them
	}
	return freed, nil
}

func (w *writer) deadOwners() ([]int64, error) {
	var dead []int64
	isDead := w.db.deadOwners()
	w.owners = w.owners[:0]
	err := w.c.Query(stmtOwners, func(values row.Values) bool {
		switch name := values.Text(1); {
		case isDead(name):
			dead = append(dead, values.Int(0))
		case name != w.db.owner:
			w.owners = append(w.owners, name)
		}
		return true
	})
	return dead, err
}
