package chain

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// The actions of a worker. A crash or a freeze may come between any two.
const (
	idle          = iota
	arrived       // has a message, knows nothing
	hasClaimed    // and has not read
	hasRead       // and has not claimed
	commitResumed // leaves the suspension
	work          // obeys, or plans
	closeCall     // closes a call in the ledger before the commit that says so
	commitObeyed
	commitReplied
	commitAgain // the commit of its reply was: it is written or not
	giveFree    // what may be its mark
	moveLease
	markStarted
	askLease // its mark is lost: is the lease still its own?
	markAgain
	renewLease // for as long as the tool may run
	runTool
	markFinished
	commitStepped
	commitSuspended
	commitDelayed
	commitCompleted
	commitFailed
	sendNext
	acknowledge
)

var actionNames = [...]string{
	idle: "nothing", arrived: "claim and read", hasClaimed: "read", hasRead: "claim", commitResumed: "commit resumed", work: "work",
	closeCall: "close the call", commitObeyed: "obey", commitReplied: "commit replied", commitAgain: "commit replied once more", giveFree: "give the call free", moveLease: "move the lease", markStarted: "mark started",
	askLease: "ask for the lease", markAgain: "mark again", renewLease: "renew", runTool: "run the tool", markFinished: "mark finished",
	commitStepped: "commit stepped", commitSuspended: "commit suspended", commitDelayed: "commit delayed", commitCompleted: "commit completed",
	commitFailed: "commit failed", sendNext: "send", acknowledge: "acknowledge",
}

// act makes a worker's next move, or each of those it may make.
func (c *chain) act(s state, i int, emit emitter) {
	do := [...]func(s state, i int, emit emitter){
		arrived: c.arrive, hasClaimed: c.readAfterClaim, hasRead: c.claimAfterRead, commitResumed: c.leave, work: c.work,
		closeCall: c.closeFirst, commitObeyed: c.obey, commitReplied: c.reply, commitAgain: c.replyAgain, giveFree: c.giveFree, moveLease: c.moveOn, markStarted: c.mark,
		askLease: c.ask, markAgain: c.remark, renewLease: c.renew, runTool: c.run, markFinished: c.finish,
		commitStepped: c.stepDone, commitSuspended: c.end, commitDelayed: c.end, commitCompleted: c.end, commitFailed: c.end,
		sendNext: c.sendOn, acknowledge: c.away,
	}
	do[s.workers[i].at](s, i, emit)
}

// leave leaves a suspension: takes the answers in, goes on in the same invocation.
func (c *chain) leave(t state, i int, emit emitter) {
	w := &t.workers[i]
	if t.n != w.n || c.rules.WaitsAsSeen && t.asRead() != w.waits {
		c.claim(&t, store.ClaimRelease, uint8(i), w.k)
		if j := t.held(i); j >= 0 { // decided on afresh
			t.queue[j].at, t.queue[j].by = visible, nobody
		}
		t.retire(i)
		emit(t, search.Move{Who: workerNames[i], What: "cannot leave the suspension it saw"})
		return
	}
	switch {
	case t.interrupted():
		t.bad |= undone
	case t.open():
		t.bad |= unanswered
	}
	c.written(&t, i, resumed, 0, true)
	c.goOn(&t, w.waits)
	t.headDue = false
	w.call, w.phase = t.call, t.phase
	c.continueWith(&t, i, true)
	emit(t, search.Move{Who: workerNames[i], What: "commits resumed", X: t.n})
}

// work obeys a signal it knows of, runs the open call, or asks the planner.
func (c *chain) work(t state, i int, emit emitter) {
	w := &t.workers[i]
	if w.signal != 0 && w.perhaps {
		w.at = giveFree
		emit(t, search.Move{Who: workerNames[i], What: "hears " + string(signals[w.signal])})
		return
	}
	if w.signal != 0 {
		w.at = commitObeyed
		if ends(w.signal) && toRun(w.phase) && c.rules.CloseCall && !c.rules.CloseInCommit {
			w.at = closeCall
		}
		emit(t, search.Move{Who: workerNames[i], What: "hears " + string(signals[w.signal])})
		return
	}
	if w.result == owed { // only mail came
		w.at = commitStepped
		emit(t, search.Move{Who: workerNames[i], What: "has what call", X: w.call + 1})
		return
	}
	if toRun(w.phase) {
		w.at = markStarted
		if c.atLeastOnce() && !c.rules.MarkFirst {
			w.at = renewLease
		}
		emit(t, search.Move{Who: workerNames[i], What: "goes to call", X: w.call + 1})
		return
	}
	if t.suspended() || t.interrupted() {
		t.bad |= unanswered // nobody asked it to plan
	}
	if t.budget.Misfits > 0 {
		c.giveBack(t, i, emit)
	}
	if c.world.Economy && t.n == w.n && t.asked < 3 {
		if t.asked++; t.asked > 1 && !t.faulty {
			t.bad |= wasteful
		}
	}
	c.plan(&t, i, emit)
}

// giveBack: a worker that cannot do the step gives the lease back, and its message is delivered again.
func (c *chain) giveBack(t state, i int, emit emitter) {
	t.spend(&t.budget.Misfits)
	c.claim(&t, store.ClaimRelease, uint8(i), t.workers[i].n+1)
	if j := t.held(i); j >= 0 {
		t.queue[j].at, t.queue[j].by = visible, nobody
	}
	t.retire(i)
	emit(t, search.Move{Who: workerNames[i], What: "lacks the agent, gives the lease back", Fault: true})
}

// plan makes every choice the planner has.
func (c *chain) plan(t *state, i int, emit emitter) {
	choose := func(at uint8, from func(*Budget) *uint8, what string) {
		u := *t
		if from != nil {
			left := from(&u.budget)
			if *left == 0 {
				return
			}
			*left--
		}
		u.workers[i].at = at
		emit(u, search.Move{Who: "planner", What: what})
	}
	phase := t.workers[i].phase
	if phase == noCall && t.gen < c.world.Suspensions && t.made < calls {
		choose(commitSuspended, nil, "asks")
	}
	if phase == noCall && t.made < calls {
		choose(commitReplied, func(b *Budget) *uint8 { return &b.EffectSteps }, "calls a tool")
	}
	choose(commitStepped, func(b *Budget) *uint8 { return &b.PlainSteps }, "goes on")
	choose(commitDelayed, func(b *Budget) *uint8 { return &b.Delays }, "comes later")
	choose(commitFailed, func(b *Budget) *uint8 { return &b.Failures }, "fails")
	choose(commitCompleted, nil, "is done")
}

// closeFirst closes a call before the commit that says so, where the two are apart.
func (c *chain) closeFirst(t state, i int, emit emitter) {
	w := &t.workers[i]
	if startable(t.ledger[w.call]) {
		t.ledger[w.call] = ledgerClosed
	}
	w.at = commitObeyed
	emit(t, search.Move{Who: workerNames[i], What: "closes call", X: w.call + 1})
}

// obey commits what a signal asks for.
func (c *chain) obey(t state, i int, emit emitter) {
	w := &t.workers[i]
	if t.n != w.n {
		c.lost(t, i, emit)
		return
	}
	if c.rules.ObeySame && t.heard() != w.signal || c.rules.StopTakesMail && t.mail != w.headMail {
		c.readHead(&t, w)
		w.at = work
		emit(t, search.Move{Who: workerNames[i], What: "finds another signal or mail", X: t.n})
		return
	}
	signal := w.signal
	c.takeBack(&t, i)
	if ends(signal) {
		c.giveUp(&t, c.rules.CloseCall)
		c.takeIn(&t, t.asRead())
	}
	c.written(&t, i, obeying[signal], signal, false)
	w.at = acknowledge
	emit(t, search.Move{Who: workerNames[i], What: "obeys " + string(signals[signal]), X: t.n})
}

// reply commits a reply whose call has effects, before the call runs.
func (c *chain) reply(t state, i int, emit emitter) {
	w := &t.workers[i]
	if t.n != w.n {
		c.lost(t, i, emit)
		return
	}
	if t.budget.LostReplies > 0 {
		c.loseAnswer(t, i, emit)
	}
	c.putReply(&t, i)
	emit(t, search.Move{Who: workerNames[i], What: "commits replied", X: t.n})
}

// putReply writes the reply, and with it the mark of its call, where the store does that, grants
// the lease for the next entry and finds nothing in the mark's place.
func (c *chain) putReply(t *state, i int) {
	w := &t.workers[i]
	c.written(t, i, replied, 0, true)
	t.call, t.phase = t.made, mayRun
	t.made++
	w.call, w.phase = t.call, t.phase
	c.continueWith(t, i, false)
	if c.world.Marks && w.at == work && t.ledger[t.call] == ledgerNone {
		t.ledger[t.call] = ledgerStarted + uint8(i)
	}
}

// stepDone commits what came of a step. Nothing of HEAD is in it.
func (c *chain) stepDone(s state, i int, emit emitter) {
	if s.n != s.workers[i].n || s.lostMark(i) {
		c.lost(s, i, emit)
		return
	}
	t := s
	w := &t.workers[i]
	if toRun(w.phase) {
		c.result(&t, w, i)
	}
	after := t
	c.written(&t, i, stepped, 0, false)
	w.at, w.copy = sendNext, 0
	emit(t, search.Move{Who: workerNames[i], What: "commits stepped", X: t.n})
	if c.world.SeveralSteps {
		t = after
		c.written(&t, i, stepped, 0, true)
		c.continueWith(&t, i, true)
		emit(t, search.Move{Who: workerNames[i], What: "commits stepped and goes on", X: t.n})
	}
}

// end commits what suspends, puts off or ends: it moves HEAD, and is conditioned on HEAD's
// revision being the one the step saw.
func (c *chain) end(s state, i int, emit emitter) {
	at := s.workers[i].at
	isDelay := at == commitDelayed
	if s.budget.Renewals > 0 && s.owner == uint8(i) && (s.signal != s.workers[i].headSignal || s.mail != s.workers[i].headMail) {
		t := s
		w := &t.workers[i]
		t.budget.Renewals--
		w.headSignal, w.headMail = t.signal, t.mail
		if c.rules.LookAtHead {
			c.readHead(&t, w)
			w.at = work
		}
		emit(t, search.Move{Who: workerNames[i], What: "renews, HEAD's revision taken over"})
	}
	t := s
	w := &t.workers[i]
	if t.n != w.n || s.lostMark(i) {
		c.lost(t, i, emit)
		return
	}
	signalMoved := t.signal != w.headSignal && (c.rules.EndSeesSignal || isDelay)
	mailMoved := t.mail != w.headMail && (c.rules.MailWithHead || isDelay)
	if (signalMoved || mailMoved) && (!isDelay || c.rules.DelaySeesHead) {
		c.readHead(&t, w)
		w.at = work
		emit(t, search.Move{Who: workerNames[i], What: "finds HEAD moved", X: t.n})
		return
	}
	if toRun(w.phase) {
		c.result(&t, w, i)
	}
	switch at {
	case commitSuspended:
		c.written(&t, i, suspended, 0, false)
		c.askPerson(&t, true)
	case commitDelayed:
		c.written(&t, i, delayed, 0, false)
		t.early = true
		t.send(step, t.n+1, putOff)
	case commitCompleted:
		c.written(&t, i, completed, 0, false)
	case commitFailed:
		c.written(&t, i, failed, 0, false)
	}
	w.at = acknowledge
	emit(t, search.Move{Who: workerNames[i], What: "commits " + string(kinds[t.kind].word), X: t.n})
}

func (c *chain) sendOn(t state, i int, emit emitter) {
	w := &t.workers[i]
	if w.copy != 0 { // it may have been sent before
		t.sendAgain(step, w.n+1)
	} else {
		t.send(step, w.n+1, visible)
	}
	x := w.n + 1
	*w = worker{at: acknowledge}
	emit(t, search.Move{Who: workerNames[i], What: "sends for", X: x})
}

func (c *chain) away(t state, i int, emit emitter) {
	if j := t.held(i); j >= 0 {
		t.queue[j] = message{}
	}
	t.retire(i)
	emit(t, search.Move{Who: workerNames[i], What: "acknowledges"})
}

// atLeastOnce reports whether tools are declared so: the policy may run them again.
func (c *chain) atLeastOnce() bool {
	return c.world.Policy == session.UnknownProbe || c.world.Policy == session.UnknownRetry
}
