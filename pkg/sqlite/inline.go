package sqlite

import "github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"

// progress says how far an operation has come.
type progress int

const (
	untouched  progress = iota
	handedOver          // the writer's goroutine has it
	carriedOut
)

// inline carries out an operation on its caller's goroutine, when the writer has nothing else to
// do and no fsync was shared lately: to hand it over and to be woken takes as long as the rest of a
// small transaction. When another process holds the file, the writer's goroutine gets the
// operation: that waits, and the caller only as long as its context allows.
//
// The caller is not asked again whether it still waits: what it began it finishes, as the writer's
// goroutine does.
func (w *writer) inline(o operation) progress {
	if !w.tryEnter() {
		return untouched
	}
	defer w.leaveAwake()
	j := o.base()
	if j.lazy {
		if len(w.lazy) >= batchMax-1 {
			return untouched // it is time for all of them
		}
		w.sort(o)
		return carriedOut
	}
	if w.usual > 1 || len(w.quick)+len(w.durable)+len(w.db.ops) > 0 {
		return untouched
	}
	w.batch = w.batch[:0]
	if j.durable {
		w.batch, w.lazy = append(w.batch, w.lazy...), w.lazy[:0]
	}
	w.batch = append(w.batch, o)
	batch := w.parkKnown(w.batch)
	if len(batch) == 0 {
		return carriedOut
	}
	err := w.transact(batch, w.file.TryBegin)
	if datafile.IsBusy(err) || each(batch, err) {
		w.db.promise(o)
		for _, o := range batch {
			w.sort(o)
		}
		w.nudge()
		return handedOver
	}
	w.settle(batch, err)
	return carriedOut
}

// enter waits for the writer's turn.
func (w *writer) enter() { w.turn <- struct{}{} }

func (w *writer) tryEnter() bool {
	select {
	case w.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *writer) leave() { <-w.turn }

// leaveAwake is leave for a caller, after which the writer's goroutine may have to wake earlier
// than it had meant to.
func (w *writer) leaveAwake() {
	now := w.db.now()
	if wait, ok := w.idleFor(now); ok && (w.wakes.IsZero() || w.db.path == datafile.Memory || now.Add(wait).Before(w.wakes)) {
		w.nudge() // in memory a sleep has no upper bound that would make good for a clock that was set
	}
	w.leave()
}

func (w *writer) nudge() {
	select {
	case w.nudged <- struct{}{}:
	default:
	}
}
