package chain

import (
	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// What a worker read, in worker.flags.
const (
	readKeepsLease = 1 << iota
	readYoung
	readEarly
	readOpen
	readSignal
)

// receive gives a message to an idle worker. Where claim and read are not apart
// they are one action with the decision.
func (c *chain) receive(t state, i, j int, emit emitter) {
	m := &t.queue[j]
	m.at, m.by = flying, uint8(i)
	if c.world.MaxReceives > 0 {
		m.received++
	}
	if c.world.Count > 0 && t.received <= c.world.Count {
		t.received++
		if t.received > c.world.Count {
			t.bad |= storm
		}
	}
	w := &t.workers[i]
	*w = worker{at: arrived, k: m.k, kind: m.kind, copy: m.copy}
	if c.world.Apart {
		emit(t, search.Move{Who: workerNames[i], What: "receives " + string(wakes[m.kind]), X: m.k})
		return
	}
	c.readSession(&t, w)
	if c.asks(&t, w) {
		c.claimFor(&t, i)
	}
	c.decided(t, i, emit, "receives "+string(wakes[m.kind])+": ")
}

// arrive: claim and read side by side, so in either order; a resume reads first.
func (c *chain) arrive(s state, i int, emit emitter) {
	t := s
	if s.workers[i].kind == step {
		c.claimFor(&t, i)
		t.workers[i].at = hasClaimed
		emit(t, search.Move{Who: workerNames[i], What: "claims", X: t.workers[i].k})
		t = s
	}
	w := &t.workers[i]
	c.readSession(&t, w)
	if !c.asks(&t, w) {
		c.decided(t, i, emit, "reads: ")
		return
	}
	w.at = hasRead
	emit(t, search.Move{Who: workerNames[i], What: "reads", X: w.n})
}

func (c *chain) readAfterClaim(t state, i int, emit emitter) {
	c.readSession(&t, &t.workers[i])
	c.decided(t, i, emit, "reads: ")
}

func (c *chain) claimAfterRead(t state, i int, emit emitter) {
	c.claimFor(&t, i)
	c.decided(t, i, emit, "claims: ")
}

// readSession notes what the newest entry and the waits tell.
func (c *chain) readSession(s *state, w *worker) {
	w.n, w.read, w.by, w.byCopy, w.waits = s.n, s.kind, s.by, s.byCopy, s.asRead()
	w.call, w.phase, w.readIn = s.call, s.phase, s.task
	w.flags = 0
	for _, f := range [...]struct {
		is   bool
		flag uint8
	}{{s.keepsLease, readKeepsLease}, {s.young, readYoung}, {s.early, readEarly}, {s.suspended() && s.open(), readOpen}} {
		if f.is {
			w.flags |= f.flag
		}
	}
}

// asks reports whether a worker that has read claims at all: a step for an entry
// that can exist; a resume once nothing speaks against it, because a lease taken for nothing holds
// up the message that follows the last answer.
func (c *chain) asks(s *state, w *worker) bool {
	if w.read == deleted {
		return false
	}
	if w.kind == step {
		return w.k <= w.n+1
	}
	switch c.rowFor(s, w) {
	case engine.Acknowledge, engine.Keep, engine.TooEarly:
		return false
	case engine.ComeBack, engine.SendNext, engine.Resume, engine.Work:
	}
	return true
}

// claimFor claims the entry of the worker's message and notes what HEAD holds then.
func (c *chain) claimFor(s *state, i int) {
	w := &s.workers[i]
	w.claimed = c.claim(s, store.ClaimTake, uint8(i), w.k)
	w.headSignal, w.headMail, w.mail, w.headTask = s.signal, s.mail, s.mail, s.signalTask
	w.refused, w.refusedTime = 0, 0
	if !w.claimed {
		w.refused, w.refusedTime = s.leaseSeq, s.lease
		return
	}
	if s.budget.ClocksAhead > 0 {
		s.spend(&s.budget.ClocksAhead)
		s.lease = ahead
	}
	if !c.rules.KeepSignal {
		s.signal = 0
	}
}

// rowFor is what the table says of what a worker knows.
func (c *chain) rowFor(s *state, w *worker) engine.Action {
	f := seen{
		n: w.n, kind: w.read, by: w.by, byCopy: w.byCopy, keepsLease: w.flags&readKeepsLease != 0, young: w.flags&readYoung != 0, early: w.flags&readEarly != 0,
		open: w.flags&readOpen != 0, claimed: w.claimed, signal: w.headSignal != 0 && w.headTask == w.readIn,
	}
	if w.refused != 0 {
		time := w.refusedTime
		if s.leaseSeq == w.refused && s.lease == lapsed {
			time = lapsed // since the refusal
		}
		f.lease = c.leaseOf(gone, w.refused, 0, time)
	}
	return c.row(message{kind: w.kind, k: w.k, copy: w.copy}, f)
}

// row is the program's decision, unless a configuration switches its row off.
func (c *chain) row(m message, f seen) engine.Action {
	action := c.decide(m, f)
	r, status := &c.rules, kinds[f.kind].status
	stands := !f.claimed && c.stands(f.lease, f.n, f.keepsLease)
	switch {
	case f.kind == deleted || m.k > f.n+1:
	case status.Ended():
		if !r.EndedRow && m.k == f.n+1 {
			return engine.Work
		}
		if !r.EndedRow {
			return engine.SendNext
		}
	case !r.StaleStep && m.kind == step && status.Resting():
		if m.k <= f.n {
			return engine.SendNext
		}
		return engine.Work
	case !r.OpenWait && m.kind == resume && f.open, !r.StayInterrupted && m.kind == resume && status == session.StatusInterrupted:
		return engine.Resume
	case !r.KeepOld && action == engine.Keep && m.k <= f.n:
		return engine.Acknowledge
	case !r.OtherMessage && action == engine.Acknowledge && !status.Resting() && m.k <= f.n && !stands:
		return engine.SendNext
	case !r.SendAgain && (action == engine.SendNext || action == engine.ComeBack):
		return engine.Acknowledge
	case !r.Grace && action == engine.ComeBack:
		return engine.SendNext
	case !r.KeepNext && action == engine.Keep && m.k == f.n+1:
		return engine.Acknowledge
	}
	return action
}

// held reports whether a worker does not begin its next step because of a halt.
func (c *chain) held(s *state, w *worker) bool {
	switch {
	case !s.halted || w.signal != 0 && c.rules.HaltObeys:
		return false
	case c.rules.HaltHolds:
		return true
	}
	s.bad |= heldUp
	return false
}

// decided carries out what the table says.
func (c *chain) decided(t state, i int, emit emitter, how string) {
	w := &t.workers[i]
	action := c.rowFor(&t, w)
	if c.rules.ClaimToWork && !w.claimed && (action == engine.Work || action == engine.Resume) {
		action = engine.Keep // the lease in the way has lapsed since: the message claims anew
	}
	j := t.held(i)
	label := search.Move{Who: workerNames[i], What: how + string(action), X: w.k}
	away := func(place uint8) { // the message goes, and with it the invocation
		if w.claimed && action != engine.Keep {
			c.claim(&t, store.ClaimRelease, uint8(i), w.k)
		}
		switch {
		case j < 0: // it is visible again already
		case place == nowhere:
			t.queue[j] = message{}
		default:
			t.queue[j].at, t.queue[j].by = place, nobody
		}
		t.retire(i)
		emit(t, label)
	}
	switch action {
	case engine.Acknowledge:
		away(nowhere)
	case engine.Keep:
		away(keptFor)
	case engine.ComeBack:
		away(comesBack)
	case engine.TooEarly:
		away(putOff)
	case engine.SendNext:
		if w.claimed {
			c.claim(&t, store.ClaimRelease, uint8(i), w.k)
		}
		*w = worker{at: sendNext, n: w.n, copy: 1}
		emit(t, label)
	case engine.Work, engine.Resume:
		if !w.claimed {
			t.bad |= unclaimed
		}
		if w.headTask == w.readIn {
			w.signal = w.headSignal
		}
		if c.held(&t, w) {
			label.What = how + "is halted"
			action = engine.Acknowledge
			away(nowhere)
			return
		}
		w.at = work
		if action == engine.Resume {
			w.at = commitResumed
		}
		w.claimed, w.refused, w.refusedTime, w.read, w.by, w.byCopy, w.flags, w.headTask, w.readIn = false, 0, 0, 0, 0, 0, 0, 0, 0
		emit(t, label)
	}
}
