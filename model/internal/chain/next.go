package chain

import (
	"fmt"

	"github.com/adjourn/adjourn/model/internal/rules"
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// Budget says how often each fault may strike, and how often the planner may choose what it may.
type Budget struct {
	PlainSteps  uint8 // a step without calls with effects
	EffectSteps uint8 // a step with one
	Delays      uint8 // the model call is put off
	Failures    uint8 // the task fails
	Renewals    uint8 // the watcher renews the lease in a step
	Halts       uint8 // everything is halted, and let go on
	Retention   uint8 // a session that has ended is kept no longer

	// Faults.
	Crashes        uint8 // a worker, an answerer or a verb dies
	Freezes        uint8 // a worker is stopped for longer than its lease
	Duplicates     uint8 // the queue delivers twice
	LostVisibility uint8 // a message becomes visible while it is worked on
	Haste          uint8 // time passes while somebody is about to act
	LostAnswers    uint8 // a mark is written, its answer lost, the retry refused
	LostReplies    uint8 // with Marks, a reply is written or not, and the worker gets no answer
	ClocksAhead    uint8 // a worker takes the lease by a clock far ahead
	Throttles      uint8 // a delivery is counted that no worker saw
	Misfits        uint8 // a worker whose program lacks the agent gives the lease back
	Copies         uint8 // the sweep sends for a session whose message waits in a long queue
}

// World is how much of everything there is in a configuration.
type World struct {
	Budget      Budget
	Suspensions uint8
	Answers     Answers
	Verbs       []uint8
	// DenyAgain: what was approved the first time is denied the second.
	DenyAgain bool
	// Apart: claim and read of the session are two actions, in either order.
	Apart bool
	// Grace: whether the newest entry is young is looked at.
	Grace bool
	// SeveralSteps: an invocation may do the next step too.
	SeveralSteps bool
	// OneWrite: the store moves the lease in the transaction of the entry.
	OneWrite bool
	// Marks: with OneWrite, the store writes the start mark of a call in the transaction of its
	// reply, and the finish mark in that of the entry with its result.
	Marks bool
	// Finishes: a call may be one of a finish tool.
	Finishes bool
	// Policy of tools with effects.
	Policy session.UnknownPolicy
	// MaxReceives of the queue and Claims that may die; 0 without dead letters.
	MaxReceives, Claims uint8
	// Economy: how often the planner is asked for one entry is counted.
	Economy bool
	// HaltStays: a halt is not lifted.
	HaltStays bool
	// Count: deliveries are counted, and more than this are too many.
	Count uint8
}

// Who answers: one for each wait of a suspension, the deadline of the second
// wait, and the first one again after its answer was lost.
const (
	answersApproval = iota
	answersResult
	expires
	repeats
)

// Answers says who answers: the approver, the client, the deadline, the approver again.
type Answers [answerers]bool

type chain struct {
	world   World
	rules   rules.Rules
	scratch session.Session
}

type emitter func(state, search.Move)

// first is a session that was just started, its message on the way.
func (c *chain) first() state {
	s := state{n: 1, kind: started, head: 1, task: 1, owner: nobody, budget: c.world.Budget, young: c.world.Grace}
	for i := range s.queue {
		s.queue[i] = message{}
	}
	s.send(step, 2, visible)
	c.canon(&s)
	return s
}

// spend lets a fault strike.
func (s *state) spend(fault *uint8) {
	*fault--
	s.faulty = true
}

var workerNames = [...]string{"worker 0", "worker 1"}

// next makes every move that can be made now.
func (c *chain) next(s *state, out func(state, search.Move)) {
	emit := func(t state, l search.Move) { c.canon(&t); out(t, l) }
	for i := range s.workers {
		if s.workers[i].at != idle {
			c.act(*s, i, emit)
			c.crash(*s, i, emit)
			continue
		}
		if i > 0 && s.workers[0].at == idle {
			continue // one idle worker is like the other
		}
		for j, m := range s.queue {
			if m.at == visible && (c.world.MaxReceives == 0 || m.received < c.world.MaxReceives) && (j == 0 || m != s.queue[j-1]) {
				c.receive(*s, i, j, emit)
			}
		}
	}
	c.time(s, emit)
	c.operate(s, emit)
	c.moveQueue(s, emit)
	c.sweep(s, emit)
	c.answer(s, emit)
	for i, v := range c.world.Verbs {
		c.request(*s, i, v, emit)
	}
}

// crash ends a worker: its message becomes visible again.
func (c *chain) crash(t state, i int, emit emitter) {
	if t.budget.Crashes == 0 {
		return
	}
	t.spend(&t.budget.Crashes)
	t.deaths++
	if j := t.held(i); j >= 0 {
		t.queue[j].at, t.queue[j].by = visible, nobody
	}
	t.retire(i)
	emit(t, search.Move{Who: workerNames[i], What: "crashes", Fault: true})
}

// time: leases run out, entries grow old, delays end.
func (c *chain) time(s *state, emit emitter) {
	if s.lease == live {
		w := s.owner
		busy := w >= aVerb || w < workers && s.workers[w].at != idle && s.workers[w].at != sendNext && s.workers[w].at != acknowledge
		if !busy || s.budget.Freezes > 0 {
			t := *s
			t.lease = lapsed
			if busy {
				t.spend(&t.budget.Freezes)
				t.deaths++
			}
			if busy && w < workers {
				t.workers[w].lapsed = c.atLeastOnce()
				if j := t.held(int(w)); j >= 0 { // nobody renews its message either
					t.queue[j].at, t.queue[j].by = visible, nobody
				}
			}
			emit(t, search.Move{Who: "time", What: "a lease runs out", X: s.leaseSeq, Fault: busy})
		}
	}
	if s.young {
		busy := c.aboutToAct(s)
		if !busy || s.budget.Haste > 0 {
			t := *s
			t.young = false
			if busy {
				t.spend(&t.budget.Haste)
			}
			emit(t, search.Move{Who: "time", What: "the newest entry grows old", X: s.n, Fault: busy})
		}
	}
	if s.early {
		t := *s
		t.early = false
		emit(t, search.Move{Who: "time", What: "the delay is over", X: s.n})
	}
	if s.budget.Retention > 0 && s.status().Ended() && !s.gone() && !s.expired {
		t := *s
		t.budget.Retention--
		t.expired = true
		emit(t, search.Move{Who: "time", What: "it is kept no longer", X: s.n, Fault: true})
	}
}

// operate: somebody halts everything, and lets it go on.
func (c *chain) operate(s *state, emit emitter) {
	t := *s
	switch {
	case s.halted && c.world.HaltStays:
	case s.halted:
		t.halted = false
		emit(t, search.Move{Who: "operator", What: "lets all go on", X: s.n})
	case s.budget.Halts > 0 && !s.gone():
		t.budget.Halts--
		t.halted = true
		emit(t, search.Move{Who: "operator", What: "halts everything", X: s.n, Fault: true})
	}
}

// aboutToAct reports whether somebody will do something within the grace.
func (c *chain) aboutToAct(s *state) bool {
	for _, m := range s.queue {
		if m.at == visible && m.k == s.n+1 && s.budget.Copies == 0 { // else the queue is long
			return true
		}
	}
	for _, w := range s.workers {
		if w.at != idle {
			return true
		}
	}
	for _, g := range s.answers {
		for _, at := range g {
			if at != answerNotYet && at != answerDone {
				return true
			}
		}
	}
	for _, v := range s.verbs {
		if v.at != verbNotYet && v.at != verbDone {
			return true
		}
	}
	return false
}

// moveQueue: what was hidden becomes visible, and what may go wrong with a queue.
func (c *chain) moveQueue(s *state, emit emitter) {
	for j, m := range s.queue {
		if m.at == nowhere || j > 0 && m == s.queue[j-1] {
			continue
		}
		show := func(what string, fault bool) state {
			t := *s
			t.queue[j].at, t.queue[j].by = visible, nobody
			if !fault {
				emit(t, search.Move{Who: "queue", What: what, X: m.k})
			}
			return t
		}
		switch m.at {
		case keptFor:
			if !c.working(s) {
				show("shows what was kept", false)
			}
		case comesBack:
			if !s.young || !s.isFor(m) {
				show("shows what comes back", false)
			}
		case putOff:
			if !s.early {
				show("shows what was put off", false)
			}
		case flying:
			if s.budget.LostVisibility > 0 {
				t := show("", true)
				t.spend(&t.budget.LostVisibility)
				emit(t, search.Move{Who: "queue", What: "shows what is worked on", X: m.k, Fault: true})
			}
		case visible:
			c.deliverBadly(s, j, emit)
		case dead:
			c.deadLetter(*s, j, emit)
		}
		if (m.at == visible || m.at == flying) && s.budget.Duplicates > 0 {
			for i := range s.queue {
				if s.queue[i].at == nowhere {
					t := *s
					t.spend(&t.budget.Duplicates)
					t.queue[i] = message{kind: m.kind, k: m.k, copy: m.copy, received: m.received, at: visible, by: nobody}
					emit(t, search.Move{Who: "queue", What: "duplicates", X: m.k, Fault: true})
					break
				}
			}
		}
	}
}

// deliverBadly: a delivery that reaches nobody counts as one.
func (c *chain) deliverBadly(s *state, j int, emit emitter) {
	m := s.queue[j]
	switch {
	case c.world.MaxReceives == 0:
	case m.received >= c.world.MaxReceives:
		t := *s
		t.queue[j].at = dead
		emit(t, search.Move{Who: "queue", What: "gives up on", X: m.k})
	case s.budget.Throttles > 0:
		t := *s
		t.spend(&t.budget.Throttles)
		t.queue[j].received++
		emit(t, search.Move{Who: "queue", What: "throttles", X: m.k, Fault: true})
	}
}

// show writes a state for people.
func (c *chain) show(s *state) string { return fmt.Sprint(s) }
