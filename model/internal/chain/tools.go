package chain

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// mark marks the call as started by this attempt, if nobody has.
func (c *chain) mark(s state, i int, emit emitter) {
	t := s
	w := &t.workers[i]
	mine, l := ledgerStarted+uint8(i), s.ledger[w.call]
	w.perhaps = false // it reads whose the mark is
	label := search.Move{Who: workerNames[i], What: "marks call", X: w.call + 1}
	switch {
	case startable(l), l == mine, !c.rules.Mark && l != ledgerFinished:
		if c.world.Marks && s.heard() != 0 { // its watcher, before the call begins
			u := s
			c.readHead(&u, &u.workers[i])
			u.workers[i].at = work
			emit(u, search.Move{Who: workerNames[i], What: "is told of a signal"})
		}
		t.ledger[w.call] = mine
		if l != mine { // else it was looked at when the mark was written
			c.begin(&t, w)
		}
		w.at = c.afterMark()
		emit(t, label)
		if startable(l) && s.budget.LostAnswers > 0 {
			t.spend(&t.budget.LostAnswers)
			if !c.rules.OwnRefusal { // it reads its own mark as somebody else's
				t.workers[i].result, t.workers[i].at = saidUnknown, commitStepped
				t.faulty = s.faulty // no fault of that kind may cost an outcome
			}
			label.What = "marks, the answer lost, call"
			label.Fault = true
			emit(t, label)
		}
		return
	case l == ledgerFinished:
		w.result, w.at = saidDone, commitStepped
	case l == ledgerClosed:
		if c.rules.ClosedResult && s.owner == uint8(i) {
			w.result, w.at = saidNotRun, commitStepped
		} else {
			c.lose(&t, i)
		}
	case c.atLeastOnce():
		w.at, w.saw = askLease, l
	case s.owner == uint8(i) || !c.rules.OwnerTells:
		w.result, w.at = saidUnknown, commitStepped
	default:
		c.lose(&t, i)
	}
	label.What = "finds " + string(toolStates[l]) + " call"
	emit(t, label)
}

// begin notes what may not begin: a call nobody approved, or one of a deleted session.
func (c *chain) begin(t *state, w *worker) {
	switch {
	case t.gone():
		t.bad |= runDeleted
	case t.call != w.call, !toRun(t.phase):
		t.bad |= unapproved
	}
}

func (c *chain) afterMark() uint8 {
	if c.atLeastOnce() && c.rules.MarkFirst {
		return renewLease
	}
	return runTool
}

// ask: the mark is lost; only who still has the lease may try again.
func (c *chain) ask(t state, i int, emit emitter) {
	w := &t.workers[i]
	label := search.Move{Who: workerNames[i], What: "asks for the lease", X: w.n + 1}
	if !c.claim(&t, store.ClaimRenew, uint8(i), w.n+1) {
		c.lose(&t, i)
	} else {
		w.lapsed, w.at = false, markAgain
	}
	emit(t, label)
}

// remark takes the call over from whoever marked it: a probe looks first whether it took effect.
func (c *chain) remark(t state, i int, emit emitter) {
	w := &t.workers[i]
	what := "marks again call"
	switch {
	case c.world.Policy == session.UnknownProbe && t.effects[w.call] > 0:
		w.result, w.at = saidDone, commitStepped
		what = "looks, it happened, call"
	case toolStates[t.ledger[w.call]] == journal.ToolFinished:
		w.result, w.at = saidDone, commitStepped
		what = "finds finished call"
	case t.ledger[w.call] == ledgerClosed:
		c.lose(&t, i)
		what = "finds closed call"
	case t.ledger[w.call] != w.saw: // lost to one more
		w.at, w.saw = askLease, t.ledger[w.call]
		emit(t, search.Move{Who: workerNames[i], What: "loses its mark again, call", X: w.call + 1})
		return
	default:
		t.ledger[w.call] = ledgerStarted + uint8(i)
		c.begin(&t, w)
		w.at = c.afterMark()
	}
	t.workers[i].saw = 0
	emit(t, search.Move{Who: workerNames[i], What: what, X: t.workers[i].call + 1})
}

// renew makes the lease last for as long as the tool may run.
func (c *chain) renew(t state, i int, emit emitter) {
	w := &t.workers[i]
	label := search.Move{Who: workerNames[i], What: "renews for the tool", X: w.n + 1}
	if !c.claim(&t, store.ClaimRenew, uint8(i), w.n+1) {
		c.lose(&t, i)
		emit(t, label)
		return
	}
	w.lapsed = false
	w.at = runTool
	if !c.rules.MarkFirst && t.ledger[w.call] != ledgerStarted+uint8(i) {
		w.at = markStarted
	}
	emit(t, label)
}

// run starts the tool; its effect follows at once.
func (c *chain) run(t state, i int, emit emitter) {
	w := &t.workers[i]
	if w.lapsed {
		if c.rules.OwnClock {
			w.at = renewLease
			emit(t, search.Move{Who: workerNames[i], What: "sees by its clock that the renewal is old"})
			return
		}
		t.bad |= overlap
	}
	if t.effects[w.call] < 3 {
		t.effects[w.call]++
	}
	w.at = markFinished
	if c.world.Marks {
		w.result, w.at = owed, commitStepped
	}
	emit(t, search.Move{Who: workerNames[i], What: "RUNS CALL", X: w.call + 1})
	if c.world.Marks && c.world.Finishes {
		w.at = commitCompleted
		emit(t, search.Move{Who: workerNames[i], What: "RUNS THE FINISH CALL", X: w.call + 1})
	}
}

func (c *chain) finish(t state, i int, emit emitter) {
	w := &t.workers[i]
	if t.ledger[w.call] == ledgerStarted+uint8(i) || !c.rules.Mark {
		t.ledger[w.call] = ledgerFinished
		w.result, w.at = saidDone, commitStepped
	} else {
		c.lose(&t, i)
	}
	if c.world.Marks {
		t.workers[i].result = 0 // the entry was refused
		c.lose(&t, i)
	}
	emit(t, search.Move{Who: workerNames[i], What: "marks finished call", X: t.workers[i].call + 1})
	if w.at == commitStepped && c.world.Finishes { // a finish tool: its result ends the task
		w.at = commitCompleted
		emit(t, search.Move{Who: workerNames[i], What: "marks finished the finish call", X: w.call + 1})
	}
}
