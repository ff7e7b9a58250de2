package chain

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/store"
)

// The verbs. Each is sent once, reads, acts on what it read, and reads again when it was refused.
const (
	Interrupt = iota
	Cancel
	Abort
	Proceed // continue
	GoBack  // to the suspension: its waits are asked anew
	Restart // from the start: from_checkpoint, or retry
	Remove  // delete
	Mail
)

var verbNames = [...]string{"interrupt", "cancel", "abort", "continue", "going back", "starting over", "delete", "mail"}

// Where a verb is.
const (
	verbNotYet = iota
	verbActs   // it has read
	verbCloses // it has closed the ledger, where that is not part of the commit
	verbSends
	verbLooks   // continue looks at the waits, like an answerer
	verbRemoves // delete removes what it can
	verbReads   // again
	verbDone
)

// request is a verb's next action.
func (c *chain) request(t state, i int, what uint8, emit emitter) {
	s, v, who := t, &t.verbs[i], verbNames[what]
	say := func(words string) { emit(t, search.Move{Who: who, What: words, X: t.n}) }
	done := func(words string) { t.giveBack(i); *v = verb{at: verbDone}; say(words) }
	if v.at != verbNotYet && v.at != verbDone && s.budget.Crashes > 0 {
		u := s
		u.spend(&u.budget.Crashes)
		if u.verbs[i] = (verb{at: verbDone}); u.owner == aVerb+uint8(i) {
			u.owner = gone
			u.deaths++ // in a worker's place
		}
		emit(u, search.Move{Who: who, What: "dies", Fault: true})
	}
	switch v.at {
	case verbDone:
	case verbNotYet, verbReads:
		if !c.allowed(&s, what) {
			if v.at == verbReads {
				done("is refused")
			}
			return
		}
		t.giveBack(i)
		*v = c.reads(&t, i, what)
		emit(t, search.Move{Who: who, What: "reads", X: s.n, Fault: s.verbs[i].at == verbNotYet})
	case verbSends:
		t.send(step, s.n+1, visible)
		done("sends")
	case verbLooks:
		if s.suspended() && !s.open() {
			t.send(resume, s.n+1, visible)
		}
		done("looks at the waits")
	case verbRemoves:
		t.remains = false
		if !c.rules.Stubs {
			t.removed = true
			t.ledger = [calls]uint8{}
		}
		done("removes what it can")
	default:
		words := c.carryOut(&t, i, what)
		if v.at == verbDone {
			t.giveBack(i)
			*v = verb{at: verbDone}
		}
		say(words)
	}
}

// giveBack ends the lease that a verb has.
func (s *state) giveBack(i int) {
	if s.owner == aVerb+uint8(i) {
		s.owner, s.lease = nobody, lapsed
	}
}

// reads notes what a verb will act on. One that is to stop a step that nobody works on claims it.
func (c *chain) reads(s *state, i int, what uint8) verb {
	v := verb{at: verbActs, n: s.n}
	switch what {
	case Interrupt, Cancel, Abort:
		v.waits, v.signal, v.head, v.working = s.asRead(), s.heard(), s.head, s.running() && c.working(s)
		v.putOff, v.mail = s.kind == delayed, s.mail
		if c.rules.StopClaims && s.running() && !v.working {
			v.claimed = c.claim(s, store.ClaimTake, aVerb+uint8(i), s.n+1)
		}
	case Proceed:
		v.waits = s.asRead()
	case GoBack, Restart:
		v.waits, v.ledger = s.asRead(), s.ledger[s.call]
	case Mail:
		if s.running() {
			v.n, v.working = 0, true
		} else {
			v.waits = s.asRead()
		}
	}
	return v
}

// allowed is the table in docs/design/README.md.
func (c *chain) allowed(s *state, what uint8) bool {
	if s.expired { // it is gone for every reader
		return false
	}
	switch what {
	case Interrupt:
		return s.running() || s.suspended()
	case Cancel, Abort:
		return !s.status().Ended() && !s.gone()
	case Proceed:
		return s.interrupted()
	case GoBack:
		return !s.gone() && !s.running() && s.gen > 0 && s.gen < suspensions && s.made < calls
	case Restart:
		return !s.gone() && !s.running() && s.gen < suspensions && s.kind != completed
	case Mail:
		return s.running() || s.suspended() && !s.open()
	}
	return !s.gone()
}

const readsAgain = "is refused and reads again"

// carryOut does what a verb does with what it read, and returns that in words.
func (c *chain) carryOut(t *state, i int, what uint8) string {
	v := &t.verbs[i]
	switch what {
	case Interrupt, Cancel, Abort:
		return c.stop(t, i, what+1)
	case Proceed:
		return c.proceed(t, v)
	case GoBack, Restart:
		return c.restore(t, v, what == Restart)
	case Remove:
		if t.n != v.n {
			v.at = verbReads
			return readsAgain
		}
		if c.rules.DeleteCloses && t.made > 0 && startable(t.ledger[t.call]) {
			t.ledger[t.call] = ledgerClosed
		}
		c.commit(t, deleted, 0)
		c.takeIn(t, t.asRead())
		v.at = verbRemoves
		return "commits deleted"
	}
	return c.putMail(t, v)
}

// putMail puts a message for the next step. Where nobody works because everything that was waited for
// has just been answered, the verb goes on with the answers, and its message after them.
func (c *chain) putMail(t *state, v *verb) string {
	switch {
	case v.working && t.running() || !c.rules.MailWithHead:
		v.at = verbDone
		t.mail++
		return "is put"
	case v.working || t.n != v.n || c.rules.WaitsAsSeen && t.asRead() != v.waits:
		v.at = verbReads
		return readsAgain
	}
	c.commit(t, resumed, 0)
	c.goOn(t, v.waits)
	v.at = verbSends
	return "commits resumed, with the message"
}

// stop interrupts, cancels or aborts: somebody works and is told by HEAD's signal,
// or nobody does and the verb commits the consequence itself.
func (c *chain) stop(t *state, i int, signal uint8) string {
	v := &t.verbs[i]
	again := func() string { v.at = verbReads; return readsAgain }
	if v.working || !c.rules.NobodyWorks {
		if c.rules.SameRevision && (t.head != v.head || t.heard() != v.signal) {
			return again()
		}
		if t.status().Ended() {
			v.at = verbDone
			return "is refused"
		}
		if !c.rules.Stronger || stronger(signal, t.signal) || c.rules.SameTask && t.signalTask != t.task {
			t.signal, t.signalTask = signal, t.task
		}
		if stronger(signal, t.accepted) {
			t.accepted = signal
		}
		if t.kind == delayed && !v.putOff {
			t.bad |= sleeps
		}
		v.at = verbDone
		if v.putOff { // whoever holds the lease may give it back and come again later
			v.at = verbSends
		}
		return "leaves the signal on HEAD"
	}
	if t.n != v.n || c.rules.Strongest && t.heard() != v.signal || c.rules.StopTakesMail && t.mail != v.mail || v.claimed && t.owner != aVerb+uint8(i) {
		return again()
	}
	if c.rules.Strongest && stronger(v.signal, signal) {
		signal = v.signal
	}
	if !ends(signal) && t.interrupted() {
		v.at = verbDone
		return "has nothing to do"
	}
	if ends(signal) {
		if c.rules.WaitsAsSeen && t.asRead() != v.waits {
			return again()
		}
		if c.rules.CloseCall && !c.rules.CloseInCommit && v.at == verbActs && toRun(t.phase) && startable(t.ledger[t.call]) {
			t.ledger[t.call] = ledgerClosed
			v.at = verbCloses
			return "closes the call"
		}
		c.giveUp(t, c.rules.CloseCall)
		c.takeIn(t, v.waits)
	}
	if c.rules.StopTakesMail {
		t.taken = t.mail
	}
	c.commit(t, obeying[signal], signal)
	if c.rules.Strongest {
		t.signal, t.signalTask = 0, 0
	}
	v.at = verbDone
	return "commits " + string(kinds[t.kind].word)
}

// proceed is continue: back to what is waited for, or on with the task.
func (c *chain) proceed(t *state, v *verb) string {
	open := t.phase == waiting && (v.waits&15 == waitOpen || v.waits>>4 == waitOpen)
	if t.n != v.n || !open && c.rules.WaitsAsSeen && t.asRead() != v.waits {
		v.at = verbReads
		return readsAgain
	}
	if open { // no wait is written, so an answer may come in between
		c.commit(t, resuspended, 0)
		t.headDue = c.rules.DueAgain
		v.at = verbDone
		if c.rules.LookAgain {
			v.at = verbLooks
		}
		return "commits suspended"
	}
	c.commit(t, resumed, 0)
	c.goOn(t, v.waits)
	v.at = verbSends
	return "commits resumed"
}

// restore goes back: to the suspension, whose waits are asked anew, or to the start.
func (c *chain) restore(t *state, v *verb, fresh bool) string {
	now := t.ledger[t.call]
	if t.n != v.n || c.rules.WaitsAsSeen && t.asRead() != v.waits || c.rules.AsListed && now != v.ledger {
		v.at = verbReads
		return readsAgain
	}
	bit := uint8(1) << t.call
	if !unrun(v.ledger) {
		t.listed |= bit // its effect was shown, and acknowledged
	}
	if toRun(t.phase) && (c.rules.NewCall || fresh) {
		t.left |= bit
	}
	c.giveUp(t, c.rules.CloseLeft)
	c.takeIn(t, v.waits)
	t.task++
	t.accepted = 0
	switch {
	case fresh:
		t.phase = noCall
		c.commit(t, restored, 0)
		v.at = verbSends
		return "commits restored"
	case c.rules.TakeOutcome && !unrun(now):
		t.phase = ran
		c.commit(t, restored, 0)
		v.at = verbSends
		return "commits restored with the outcome"
	}
	c.commit(t, reasked, 0)
	c.askPerson(t, c.rules.NewCall)
	v.at = verbDone
	return "commits restored, asks anew"
}
