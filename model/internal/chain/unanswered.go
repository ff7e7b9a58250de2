package chain

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/store"
)

// A worker that is not told what became of the commit of its reply. The entry was written, with the
// mark of its call and the move of the lease, or nothing was. The worker commits once more and is
// told then, or it stops, and gives free before that what may be its mark.

// loseAnswer writes a reply, or does not, and tells its worker nothing. That alone costs no outcome,
// so it is no excuse for one that is told as unknown. With verbs it is: one that finds the lease
// lapsed of a worker that was not told of it interrupts the worker that has it since.
func (c *chain) loseAnswer(s state, i int, emit emitter) {
	s.budget.LostReplies--
	s.faulty = s.faulty || len(c.world.Verbs) > 0
	t := s
	c.putReply(&t, i)
	t.workers[i] = s.workers[i]
	t.workers[i].wrote = true
	for _, u := range [...]state{s, t} {
		w := &u.workers[i]
		w.at, w.perhaps, w.call = commitAgain, true, s.made // another worker's reply has a call of the same id
		what := "commits replied, not written, no answer"
		if w.wrote {
			what = "commits replied, written, no answer"
		}
		emit(u, search.Move{Who: workerNames[i], What: what, X: s.n + 1, Fault: true})
	}
}

// replyAgain commits the reply once more: the entry that is there is its own, or another's, or there
// is none yet. Or the worker stops.
func (c *chain) replyAgain(s state, i int, emit emitter) {
	t := s
	t.workers[i].at = giveFree
	emit(t, search.Move{Who: workerNames[i], What: "stops without an answer"})
	t = s
	w := &t.workers[i]
	what := "finds the entry its own"
	switch {
	case w.wrote:
		w.wrote, w.phase = false, mayRun
		w.n++
		w.won, w.at = c.rules.MoveLease, moveLease
	case t.n != w.n:
		w.perhaps = false
		c.lost(t, i, emit)
		return
	default:
		w.perhaps = false
		c.putReply(&t, i)
		what = "commits replied the second time"
	}
	emit(t, search.Move{Who: workerNames[i], What: what, X: w.n})
}

// giveFree lets a call be started by others that may be marked by this worker and has not begun.
// Then the worker obeys the signal that it has heard, or stops: its message comes again.
func (c *chain) giveFree(t state, i int, emit emitter) {
	w := &t.workers[i]
	mine := ledgerStarted + uint8(i)
	switch l := t.ledger[w.call]; {
	case !c.rules.TakeBack:
	case l == ledgerNone, l == mine, !c.rules.OwnMark && l != ledgerFinished:
		t.ledger[w.call] = ledgerFree
	}
	w.perhaps, w.wrote = false, false
	label := search.Move{Who: workerNames[i], What: "gives free what may be its call", X: w.call + 1}
	if w.signal == 0 && !toRun(w.phase) && t.heard() != 0 { // its watcher was told
		u := t
		c.readHead(&u, &u.workers[i])
		u.workers[i].at = work
		label.What = "is told of a signal, gives free what may be its call"
		emit(u, label)
		label.What = "gives free what may be its call"
	}
	switch {
	case w.signal != 0:
		w.at = work
	case toRun(w.phase): // its reply is written, and another worker has the lease
		c.lose(&t, i)
	default:
		c.claim(&t, store.ClaimRelease, uint8(i), w.n+1)
		if j := t.held(i); j >= 0 {
			t.queue[j].at, t.queue[j].by = visible, nobody
		}
		t.retire(i)
		label.What += ", stops"
	}
	emit(t, label)
}
