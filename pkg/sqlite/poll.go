package sqlite

// While a receiver waits, the writer looks for messages that become visible: when their time has
// come, by other processes, and because a clock was set.

import (
	"errors"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
)

// pullEvery is how often a busy queue looks for messages that lie too far ahead.
const pullEvery = time.Second

// pullIn makes visible what lies so far ahead that it counts as visible, and what
// was to be visible when it was sent: the clock that wrote it was ahead, or this one
// was set back.
func (w *writer) pullIn() (pulled bool, err error) {
	if there, err := w.tooFarAhead(); err != nil || !there { // as a rule: a look costs less than two writes of nothing
		return false, err
	}
	now := w.db.now()
	far, err := w.c.Exec(stmtPullIn, now.UnixNano(), now.Add(journal.MaxAhead+journal.Skew).UnixNano())
	if err != nil {
		return false, err
	}
	fresh, err := w.c.Exec(stmtPullInFresh, now.UnixNano())
	if far+fresh > 0 {
		w.expect(now) // this receiver may not take all of them
	}
	return far+fresh > 0, err
}

// tooFarAhead reports whether there is something to pull in.
func (w *writer) tooFarAhead() (bool, error) {
	now := w.db.now()
	last, err := w.c.One(stmtTooFarAhead, now.Add(journal.MaxAhead+journal.Skew).UnixNano(), now.UnixNano())
	return err == nil && last.Int(0) != 0, err
}

// expect notes that something becomes visible then.
func (w *writer) expect(at time.Time) {
	if w.wakeAt.IsZero() || at.Before(w.wakeAt) {
		w.wakeAt = at
	}
	if !at.After(w.db.now()) {
		w.dry = [2]dry{}
	}
}

// idleFor returns how long the writer may sleep while somebody waits for messages or for what
// others write. It is computed from points in time, not from now: operations that keep the writer
// busy do not put these off.
func (w *writer) idleFor(now time.Time) (time.Duration, bool) {
	if !w.awaited() {
		return 0, false
	}
	wait, known := time.Duration(0), false
	if len(w.parked) > 0 && !w.wakeAt.IsZero() {
		known = true
		if !journal.Come(w.wakeAt, now, journal.MaxAhead) { // else now, for the clock may have been set back
			wait = w.wakeAt.Sub(now)
		}
	}
	if w.db.path == datafile.Memory {
		return wait, known
	}
	every, at := w.ownerPoll(), w.pollAt
	if !w.listens() {
		every, at = checkEvery, w.checkAt
	}
	if poll := min(max(at.Sub(now), 0), every); !known || wait > poll { // the clock may have been set back
		wait = poll
	}
	return wait, true
}

// listen has the system tell what is written, once somebody has waited for that for a while.
func (w *writer) listen() {
	if w.db.listen && w.db.path != datafile.Memory && w.awaited() {
		w.db.others.Listen(w.db.now())
	}
}

// awaited reports whether anybody waits for what the writer may find by itself.
func (w *writer) awaited() bool { return len(w.parked) > 0 || w.db.others.Watched() }

// come reports whether the time of a message has come.
func (w *writer) come(now time.Time) bool {
	return !w.wakeAt.IsZero() && journal.Come(w.wakeAt, now, journal.MaxAhead)
}

// tick looks for what others have written, for messages whose time has come, and for owners that
// have died.
func (w *writer) tick() {
	now := w.db.now()
	w.checkAt = now.Add(checkEvery)
	changed := w.db.others.Changed()
	if changed {
		w.dry = [2]dry{}
	}
	if w.parked = slices.DeleteFunc(w.parked, (*receiveOp).gone); len(w.parked) == 0 {
		w.pollAt = now.Add(w.ownerPoll())
		return
	}
	if poll := w.pollAt.Sub(now); !changed && !w.come(now) && poll > 0 && poll <= w.ownerPoll() {
		return
	}
	w.pollAt = now.Add(w.ownerPoll())
	some, err := w.mayHaveMessages(changed)
	if err == nil && !some && w.file.Lost() == nil {
		for i := range w.dry {
			w.dry[i].at = now
		}
		return
	}
	w.dry = [2]dry{}
	batch := make([]operation, len(w.parked))
	for i, r := range w.parked {
		batch[i] = r
	}
	w.parked = nil
	w.commit(batch)
	// The messages that were visible at the last look are for none of the receivers here; only
	// later ones matter. The present time is not the bound, because messages that became visible
	// since that look were not looked at.
	if err := w.look(now); err != nil {
		w.wakeAt = w.db.now().Add(pollEvery)
	}
}

// mayHaveMessages reports whether a look at the messages is worth a transaction. As long as nobody
// else writes and no time comes, it reads the messages only once a second: a clock may be set.
func (w *writer) mayHaveMessages(changed bool) (bool, error) {
	if now := w.db.now(); changed || w.come(now) || now.Sub(w.lookedAt).Abs() >= lookEvery {
		w.lookedAt = now
	} else {
		return w.ownerDied(), nil
	}
	dead, err := w.deadOwners()
	if err != nil || len(dead) > 0 {
		return true, err
	}
	if far, err := w.tooFarAhead(); err != nil || far {
		return true, err
	}
	if err := w.look(time.Time{}); err != nil {
		return true, err
	}
	return !w.wakeAt.IsZero() && !w.wakeAt.After(w.db.now()), nil
}

// look sets wakeAt to the time of the first message that is visible later.
func (w *writer) look(after time.Time) error {
	w.wakeAt = time.Time{}
	dry := w.dry
	defer func() { w.dry = dry }() // it only looked
	var errs []error
	for _, dead := range []int64{0, 1} {
		values, err := w.c.One(stmtNextVisible, dead, row.Nanos(after))
		if err == nil && values[0] != nil {
			w.expect(row.Time(values.Int(0)))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
