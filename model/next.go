package main

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
)

// Budgets: how often each fault may strike, and how often the planner may choose what it may.
const (
	plainSteps     = iota // a step without calls with effects
	effectSteps           // a step with one
	delays                // the model call is put off
	failures              // the task fails
	renewals              // the watcher renews the lease in a step
	crashes               // a worker, an answerer or a verb dies
	freezes               // a worker is stopped for longer than its lease
	duplicates            // the queue delivers twice
	lostVisibility        // a message becomes visible while it is worked on
	haste                 // time passes while somebody is about to act
	lostAnswers           // a mark is written, its answer lost, the retry refused
	clocksAhead           // a worker takes the lease by a clock far ahead
	throttles             // a delivery is counted that no worker saw
	misfits               // a worker whose program lacks the agent gives the lease back
	copies                // the sweep sends for a session whose message waits in a long queue
	budgets
)

// world is how much of everything there is in a configuration.
type world struct {
	budget      [budgets]uint8
	suspensions uint8
	answers     [answerers]bool
	verbs       []uint8
	// denyAgain: what was approved the first time is denied the second.
	denyAgain bool
	// apart: claim and read of the session are two actions, in either order.
	apart bool
	// grace: whether the newest entry is young is looked at.
	grace bool
	// severalSteps: an invocation may do the next step too.
	severalSteps bool
	// oneWrite: the store moves the lease in the transaction of the entry.
	oneWrite bool
	// finishes: a call may be one of a finish tool.
	finishes bool
	// policy of tools with effects.
	policy session.UnknownPolicy
	// MaxReceives of the queue and Claims that may die; 0 without dead letters.
	MaxReceives, Claims uint8
	// economy: how often the planner is asked for one entry is counted.
	economy bool
	// count: deliveries are counted, and more than this are too many.
	count uint8
}

// Who answers: one for each wait of a suspension, the deadline of the second
// wait, and the first one again after its answer was lost.
const (
	answersApproval = iota
	answersResult
	expires
	repeats
)

type chain struct {
	world   world
	rules   rules
	scratch session.Session
}

type emitter func(state, move)

// first is a session that was just started, its message on the way.
func (c *chain) first() state {
	s := state{n: 1, kind: started, head: 1, task: 1, owner: nobody, budget: c.world.budget, young: c.world.grace}
	for i := range s.queue {
		s.queue[i] = message{}
	}
	s.send(step, 2, visible)
	c.canon(&s)
	return s
}

// spend takes one of a budget that holds faults.
func (s *state) spend(b int) {
	s.budget[b]--
	if b >= crashes {
		s.faulty = true
	}
}

var workerNames = [...]string{"worker 0", "worker 1"}

// next makes every move that can be made now.
func (c *chain) next(s *state, out func(state, move)) {
	emit := func(t state, l move) { c.canon(&t); out(t, l) }
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
	c.moveQueue(s, emit)
	c.sweep(s, emit)
	c.answer(s, emit)
	for i, v := range c.world.verbs {
		c.request(*s, i, v, emit)
	}
}

// crash ends a worker: its message becomes visible again.
func (c *chain) crash(t state, i int, emit emitter) {
	if t.budget[crashes] == 0 {
		return
	}
	t.spend(crashes)
	t.deaths++
	if j := t.held(i); j >= 0 {
		t.queue[j].at, t.queue[j].by = visible, nobody
	}
	t.retire(i)
	emit(t, move{who: workerNames[i], what: "crashes", fault: true})
}

// time: leases run out, entries grow old, delays end.
func (c *chain) time(s *state, emit emitter) {
	if s.lease == live {
		w := s.owner
		busy := w < workers && s.workers[w].at != idle && s.workers[w].at != sendNext && s.workers[w].at != acknowledge
		if !busy || s.budget[freezes] > 0 {
			t := *s
			t.lease = lapsed
			if busy {
				t.spend(freezes)
				t.deaths++
				t.workers[w].lapsed = c.atLeastOnce()
				if j := t.held(int(w)); j >= 0 { // nobody renews its message either
					t.queue[j].at, t.queue[j].by = visible, nobody
				}
			}
			emit(t, move{who: "time", what: "a lease runs out", x: s.leaseSeq, fault: busy})
		}
	}
	if s.young {
		busy := c.aboutToAct(s)
		if !busy || s.budget[haste] > 0 {
			t := *s
			t.young = false
			if busy {
				t.spend(haste)
			}
			emit(t, move{who: "time", what: "the newest entry grows old", x: s.n, fault: busy})
		}
	}
	if s.early {
		t := *s
		t.early = false
		emit(t, move{who: "time", what: "the delay is over", x: s.n})
	}
}

// aboutToAct reports whether somebody will do something within the grace.
func (c *chain) aboutToAct(s *state) bool {
	for _, m := range s.queue {
		if m.at == visible && m.k == s.n+1 && s.budget[copies] == 0 { // else the queue is long
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
				emit(t, move{who: "queue", what: what, x: m.k})
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
			if s.budget[lostVisibility] > 0 {
				t := show("", true)
				t.spend(lostVisibility)
				emit(t, move{who: "queue", what: "shows what is worked on", x: m.k, fault: true})
			}
		case visible:
			c.deliverBadly(s, j, emit)
		case dead:
			c.deadLetter(*s, j, emit)
		}
		if (m.at == visible || m.at == flying) && s.budget[duplicates] > 0 {
			for i := range s.queue {
				if s.queue[i].at == nowhere {
					t := *s
					t.spend(duplicates)
					t.queue[i] = message{kind: m.kind, k: m.k, copy: m.copy, received: m.received, at: visible, by: nobody}
					emit(t, move{who: "queue", what: "duplicates", x: m.k, fault: true})
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
		emit(t, move{who: "queue", what: "gives up on", x: m.k})
	case s.budget[throttles] > 0:
		t := *s
		t.spend(throttles)
		t.queue[j].received++
		emit(t, move{who: "queue", what: "throttles", x: m.k, fault: true})
	}
}

// show writes a state for people.
func (c *chain) show(s *state) string { return fmt.Sprint(s) }
