package chain

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/store"
)

// commit puts the next entry. Who may, has looked before; what no entry may do is noted here.
func (c *chain) commit(s *state, kind, obeyed uint8) {
	was, is := s.status(), kinds[kind].status
	if kind != deleted && (s.gone() || !was.CanBecome(is)) {
		s.bad |= forbidden
	}
	if is.Ended() || kind == delayed {
		if stronger(s.heard(), obeyed) {
			s.bad |= passedOver
		}
	}
	if was != is || obeyed != 0 || kind == delayed || kind == restored || kind == reasked {
		s.head = s.n + 1
	}
	if obeyed != 0 && s.heard() == obeyed || is.Ended() {
		s.signal, s.signalTask = 0, 0 // the entry records its id
	}
	if is.Resting() && !stronger(s.accepted, obeyed) || is.Ended() {
		s.accepted = 0
	}
	if kind == interrupted && toRun(s.phase) && !c.rules.KeepReply {
		s.phase = noCall
	}
	s.n++
	s.expired, s.remains = false, kind == deleted
	s.byCopy = 0
	s.kind, s.by, s.keepsLease, s.early, s.young, s.asked = kind, 0, false, false, c.world.Grace, 0
}

// written is commit for a worker. on: the same invocation goes on with the next entry.
func (c *chain) written(s *state, i int, kind, obeyed uint8, on bool) {
	w := &s.workers[i]
	if s.status().Ended() {
		s.bad |= forbidden // only a verb begins the next task
	}
	c.commit(s, kind, obeyed)
	s.by, s.byCopy, s.taken = w.k, w.copy, max(s.taken, w.mail)
	w.n = s.n
	s.keepsLease = on && c.rules.MoveLease
	w.won = s.keepsLease
	if !c.rules.CommitFirst && !on {
		if j := s.held(i); j >= 0 {
			s.queue[j] = message{} // acknowledged before anybody was sent for
		}
	}
}

// lose ends an invocation that lost a race: its work is thrown away. If it won an
// entry before and goes on no more, somebody else has to be sent for.
func (c *chain) lose(t *state, i int) {
	w := &t.workers[i]
	if t.removed && w.n+1 <= t.n {
		t.bad |= afterDelete // the entry it puts is absent again
	}
	if w.won && c.rules.WinnerSends {
		*w = worker{at: sendNext, n: w.n, copy: 1}
		return
	}
	w.at = acknowledge
}

func (c *chain) lost(t state, i int, emit emitter) {
	if t.workers[i].result == owed && !t.lostMark(i) {
		t.workers[i].at = markFinished // alone
	} else {
		c.lose(&t, i)
	}
	emit(t, search.Move{Who: workerNames[i], What: "loses the race", X: t.n})
}

// readHead takes HEAD's newest revision over and looks at it.
func (c *chain) readHead(s *state, w *worker) {
	w.headSignal, w.headMail, w.mail, w.signal = s.signal, s.mail, s.mail, s.heard()
}

// takeIn takes in the answers that the writer saw and closes what is open.
func (c *chain) takeIn(s *state, saw uint8) {
	if s.gen == 0 {
		return
	}
	g := s.gen - 1
	for x := range s.waits[g] {
		was := saw >> (4 * x) & 15
		switch w := &s.waits[g][x]; {
		case settled(was):
			s.took[g] |= 1 << x
		case *w == waitOpen && c.rules.CloseWaits:
			*w = waitClosed
		}
	}
	s.due = 0
}

// goOn is takeIn for an entry after which the task goes on: an approved call may run then.
func (c *chain) goOn(s *state, saw uint8) {
	if s.phase == waiting {
		if s.waits[s.gen-1][0] == waitAnswered {
			s.phase = approved
		} else { // denied or expired: told, and never run
			c.giveUp(s, c.rules.CloseCall)
			s.phase = ran
		}
	}
	c.takeIn(s, saw)
}

// continueWith is where an invocation that goes on continues: it moves the lease, unless
// the store has done so with the entry.
func (c *chain) continueWith(s *state, i int, newStep bool) {
	w := &s.workers[i]
	w.at = moveLease
	if !c.rules.MoveLease {
		w.at = work
		if newStep {
			c.readHead(s, w)
		}
		return
	}
	if c.world.OneWrite {
		c.moved(s, i)
	}
}

// moved moves the lease and takes HEAD's revision over.
func (c *chain) moved(s *state, i int) {
	w := &s.workers[i]
	if !c.claim(s, store.ClaimMove, uint8(i), w.n+1) {
		c.lose(s, i)
		return
	}
	w.won, w.lapsed, w.at = true, false, work
	if c.rules.LookAtHead || s.kind != replied {
		c.readHead(s, w)
	} else {
		w.headSignal, w.headMail = s.signal, s.mail
	}
	if s.kind == replied || s.kind == resumed || !s.halted || w.signal != 0 {
		return // in the middle of a step
	}
	if !c.rules.HaltBetween {
		s.bad |= heldUp
		return
	}
	c.claim(s, store.ClaimRelease, uint8(i), w.n+1)
	*w = worker{at: acknowledge, k: w.k, kind: w.kind}
}

// moveOn is the lease's move as a write of its own.
func (c *chain) moveOn(t state, i int, emit emitter) {
	c.moved(&t, i)
	if w := &t.workers[i]; w.perhaps && w.at != work { // it gives free first what may be its own
		w.at = giveFree
	}
	emit(t, search.Move{Who: workerNames[i], What: "moves the lease on", X: t.workers[i].n + 1})
}

// giveUp ends the open call with what its ledger lets history say.
func (c *chain) giveUp(s *state, closes bool) {
	if s.phase != waiting && !toRun(s.phase) || s.said[s.call] != saidNothing {
		return
	}
	if closes && startable(s.ledger[s.call]) {
		s.ledger[s.call] = ledgerClosed
	}
	s.said[s.call] = told(s.ledger[s.call])
	if !c.rules.AsFound {
		s.said[s.call] = saidNotRun
	}
}

// lostMark reports whether a worker owes a finish mark that it may not write any more: another has
// taken the call over.
func (s *state) lostMark(i int) bool {
	w := &s.workers[i]
	return w.result == owed && s.ledger[w.call] != ledgerStarted+uint8(i)
}

// takeBack does, with the entry that obeys a signal, what a worker knows of its own mark: the call
// ran, or it has not begun.
func (c *chain) takeBack(s *state, i int) {
	w := &s.workers[i]
	switch {
	case !c.world.Marks || !toRun(w.phase) || s.ledger[w.call] != ledgerStarted+uint8(i):
	case w.result == owed:
		s.ledger[w.call] = ledgerFinished
	case c.rules.TakeBack:
		s.ledger[w.call] = ledgerNone
	}
}

// result gives the call its result.
func (c *chain) result(t *state, w *worker, i int) {
	if w.result == owed {
		t.ledger[w.call], w.result = ledgerFinished, saidDone
	}
	t.said[w.call] = w.result
	switch {
	case w.result == saidNotRun && !c.rules.CloseInCommit:
		t.bad |= denied
	case w.result == saidUnknown && !t.faulty:
		t.bad |= needless
	}
	if l := t.ledger[w.call]; w.result == saidUnknown && l >= ledgerStarted && l < ledgerLeft {
		if by := l - ledgerStarted; by != uint8(i) && by == t.owner && t.lease == live {
			t.bad |= hasty
		}
	}
	switch t.phase {
	case approved:
		t.phase = ran
	case mayRun:
		t.phase = noCall
	}
	w.phase, w.result = t.phase, 0
}

// askPerson opens the waits of a suspension, for a new call or for the one there is.
func (c *chain) askPerson(s *state, newCall bool) {
	s.gen++
	s.waits[s.gen-1] = [2]uint8{waitOpen, waitOpen}
	s.phase = waiting
	if newCall {
		s.call = s.made
		s.made++
	}
}
