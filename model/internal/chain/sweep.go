package chain

import "github.com/adjourn/adjourn/model/internal/search"

// sweep does what the sweep finds to do: each a move of its own.
func (c *chain) sweep(s *state, emit emitter) {
	if !c.rules.Sweep {
		return
	}
	did := func(t state, what string, x uint8) { emit(t, search.Move{Who: "sweep", What: what, X: x}) }
	switch {
	case s.gone() && s.remains && c.rules.SweepRemoves:
		t := *s
		t.remains = false
		did(t, "removes what it can", s.n)
	case s.expired && s.overdue == 0:
		t := *s
		t.overdue = s.n
		did(t, "finds it expired", s.n)
	case s.halted && c.rules.HaltSweep && (s.heard() == 0 || !c.rules.HaltObeys) && (s.running() || s.suspended() && !s.open()):
		// It stays due as it is.
	case s.running() && !c.working(s) && !s.young && (!s.early || s.heard() != 0) && (!s.sent(step) || s.budget.Copies > 0):
		t := *s
		if s.sent(step) {
			t.spend(&t.budget.Copies)
		}
		t.sendAgain(step, s.n+1)
		t.young = c.world.Grace // the stamp on HEAD
		did(t, "sends step", s.n+1)
	case s.suspended() && s.headDue && s.open():
		t := *s
		t.headDue = false
		did(t, "takes HEAD's due away", s.n)
	case s.suspended() && (s.due != 0 || s.headDue) && !s.open() && !s.sent(resume) && !c.working(s):
		t := *s
		t.sendAgain(resume, s.n+1)
		t.due, t.headDue = 0, true // in one write: HEAD is due in place of the waits
		did(t, "sends resume", s.n+1)
	case s.interrupted() && s.due != 0 && c.rules.ClearDue && s.sweep == 0:
		t := *s
		t.sweep = s.gen<<2 | s.due
		did(t, "sees an answer of an interrupted session", s.n)
	case s.interrupted() && s.due != 0 && !c.rules.ClearDue:
		t := *s
		t.bad |= unending
		did(t, "finds an interrupted session, again and again", s.n)
	}
	if s.overdue != 0 {
		t := *s
		t.overdue = 0
		if moved := s.overdue != s.n || s.gone(); moved && (c.rules.ExpireSeen || s.gone()) {
			did(t, "leaves what has moved on", s.n)
		} else {
			if moved {
				t.bad |= keptShort
			}
			c.commit(&t, deleted, 0)
			c.takeIn(&t, t.asRead())
			did(t, "commits deleted", t.n)
		}
	}
	if s.sweep != 0 {
		t := *s
		switch {
		case !c.rules.ClearSeen:
			t.due = 0
		case s.sweep>>2 == s.gen: // conditioned on the revision it saw
			t.due &^= s.sweep & 3
		}
		t.sweep = 0
		did(t, "takes the waits' due away", s.n)
	}
}

// deadLetter decides about a message that was received too often.
func (c *chain) deadLetter(t state, j int, emit emitter) {
	m := t.queue[j]
	did := func(what string) { emit(t, search.Move{Who: "dead letters", What: what, X: m.k}) }
	t.queue[j] = message{}
	if !c.rules.CountClaims {
		if !t.status().Ended() && !t.gone() {
			c.failStep(&t)
		}
		did("give the task up")
		return
	}
	switch {
	case t.status().Ended(), t.gone(), t.interrupted(), t.suspended(), m.k <= t.n:
		did("drop")
	case c.working(&t):
		// It stays until the lease ends.
	case c.dying(&t):
		c.failStep(&t)
		did("give the task up")
	default:
		t.sendAgain(step, t.n+1)
		did("send afresh")
	}
}

// dying reports whether too many claims of the next entry died.
func (c *chain) dying(s *state) bool {
	n := s.died + 1
	if !c.rules.GivenBack {
		n = s.claims
	}
	return s.leaseSeq == s.n+1 && n >= c.world.Claims && s.owner != nobody
}

// failStep fails the task, or does what a signal asks that came before.
func (c *chain) failStep(t *state) {
	if t.deaths < c.world.Claims {
		t.bad |= healthy
	}
	kind, obeyed := uint8(failed), uint8(0)
	if c.rules.ObeySame && t.heard() != 0 {
		obeyed = t.heard()
		kind = obeying[obeyed]
	}
	if kinds[kind].status.Ended() {
		c.giveUp(t, c.rules.CloseCall)
		c.takeIn(t, t.asRead())
	}
	if obeyed == 0 || c.rules.StopTakesMail {
		t.taken = t.mail
	}
	c.commit(t, kind, obeyed)
}
