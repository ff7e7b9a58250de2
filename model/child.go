package main

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// A child ends in its own last transaction, with which it answers its parent's
// wait, while the parent is interrupted, continued, taken back or deleted.

// Where a child is.
const (
	unborn = iota
	atWork
	stopped // interrupted with its parent
	over
)

type famState struct {
	parent session.Kind // suspended, interrupted, resumed or deleted
	task   uint8        // 1, and 2 after going back
	wait   [2]session.WaitState
	due    [2]bool
	child  [2]uint8             // by task
	at     [2]uint8             // its worker
	saw    [2]session.WaitState // the parent's wait as that read it
	mail   uint8                // notices that became mail
	old    uint8                // of those, of a child left behind
	// Requests: interrupt, continue, going back, delete.
	stop, proceed uint8
	back, remove  bool
	message       bool
	crash         uint8
}

type family struct {
	// forward: continue goes on to the children, and the sweep repeats that and the end of a deleted parent's.
	forward bool
	// newChild: what is asked anew gets a child of its own.
	newChild bool
	// sameTask: a notice names the parent's task; of another task it is dropped.
	sameTask bool
	// closedToo: a child ends although its parent's wait is closed.
	closedToo bool
	// lookAgain: interrupt looks at the parent again after it reached the child.
	lookAgain bool
	crash     uint8
}

func familyModels() []search.Model {
	all := family{forward: true, newChild: true, sameTask: true, closedToo: true, lookAgain: true, crash: 2}
	without := func(off func(*family)) family { c := all; off(&c); return c }
	return []search.Model{
		all.space("F1 all rules: a child's end; its parent interrupted, continued, taken back, deleted; 2 crashes", nil),
		without(func(c *family) { c.lookAgain = false }).space("F2 interrupt does not look again, the sweep repeats what continue forwards", nil),
		without(func(c *family) { c.forward, c.lookAgain = false, false }).space("F10 continue does not reach the children", breaks(search.Stuck)),
		without(func(c *family) { c.newChild = false }).space("F11 what is asked anew keeps its child", breaks(search.Stuck)),
		without(func(c *family) { c.sameTask = false }).space("F12 a notice of a child left behind becomes mail", breaks("old")),
		without(func(c *family) { c.closedToo = false }).space("F13 a child cannot end when its parent's wait is closed", breaks(search.Stuck)),
	}
}

func (s *famState) suspended() bool { return s.parent == session.KindSuspended }

// open reports whether the parent waits for a child now.
func (s *famState) open() bool { return s.wait[s.task-1] == session.WaitOpen }

// kid is the child that the parent's current wait is for.
func (c family) kid(s *famState) int {
	if !c.newChild {
		return 0
	}
	return int(s.task) - 1
}

// Where a request is that goes on to the child.
const (
	famNotYet = iota
	famForwards
	famLooks
	famDone
)

func (c family) space(name string, breaks []string) *search.Space[famState] {
	first := famState{parent: session.KindSuspended, task: 1, crash: c.crash}
	first.wait[0], first.due[0] = session.WaitOpen, true
	return &search.Space[famState]{
		Name: name, Breaks: breaks, Properties: []string{"old"}, First: first,
		Broken: func(s *famState) uint32 { return uint32(min(s.old, 1)) },
		Rest: func(s *famState) bool {
			halfDone := func(at uint8) bool { return at == famForwards || at == famLooks }
			if halfDone(s.stop) || halfDone(s.proceed) {
				return false
			}
			if s.parent == session.KindDeleted && (s.child[0] == atWork || s.child[1] == atWork) {
				return false // it still has to end
			}
			return !s.suspended()
		},
		Next: c.next,
	}
}

func (c family) next(s *famState, emit func(famState, search.Move)) {
	k := c.kid(s)
	if s.suspended() && s.open() && s.child[k] == unborn {
		t := *s
		t.child[k] = atWork
		emit(t, search.Move{Who: "parent or sweep", What: "dispatches the child", X: uint8(k)})
	}
	for j := range s.child {
		c.work(*s, j, emit)
	}
	c.sweep(s, emit)
	if s.message {
		t := *s
		t.message = false
		if s.suspended() && !s.open() {
			t.parent = session.KindResumed
		}
		emit(t, search.Move{Who: "parent", What: "receives resume"})
	}
	c.interrupt(*s, k, emit)
	c.goOn(*s, k, emit)
	if !s.back && s.task == 1 && s.parent != session.KindResumed && s.parent != session.KindDeleted {
		t := *s
		t.back, t.task, t.parent = true, 2, session.KindSuspended
		if t.wait[0] == session.WaitOpen {
			t.wait[0] = session.WaitClosed
		}
		t.due[0] = false
		t.wait[1], t.due[1] = session.WaitOpen, true
		emit(t, search.Move{Who: "going back", What: "asks anew", Fault: true})
	}
	if !s.remove && s.parent != session.KindDeleted {
		t := *s
		t.remove, t.parent = true, session.KindDeleted
		for j := range t.wait {
			if t.wait[j] == session.WaitOpen {
				t.wait[j] = session.WaitClosed
			}
		}
		emit(t, search.Move{Who: "delete", What: "closes what waits", Fault: true})
	}
}

// work is the child's worker: it reads its parent's wait, and ends in one transaction with it.
func (c family) work(t famState, j int, emit func(famState, search.Move)) {
	const (
		idles = iota
		hasRead
		looks
		sends
	)
	const parentGone session.WaitState = "gone" // read instead of a wait
	s, who := t, [...]string{"child", "child asked anew"}[j]
	say := func(what string) { emit(t, search.Move{Who: who, What: what}) }
	now := s.wait[j]
	if s.parent == session.KindDeleted {
		now = parentGone
	}
	switch at := s.at[j]; {
	case at == idles && s.child[j] == atWork:
		t.at[j], t.saw[j] = hasRead, now
		say("reads its parent's wait")
	case at == hasRead && s.child[j] == atWork:
		t.at[j], t.saw[j] = idles, ""
		switch {
		case s.saw[j] != now:
			say("ends, is refused, reads again")
		case now == session.WaitOpen:
			t.child[j], t.at[j], t.wait[j], t.due[j] = over, looks, session.WaitAnswered, true
			say("ends and answers")
		case !c.closedToo:
			return
		default:
			t.child[j] = over
			current := j+1 == int(s.task)
			if s.parent != session.KindDeleted && (current || !c.sameTask) {
				t.mail++
				if !current {
					t.old++
				}
			}
			say("ends without an answer")
		}
	case at == looks:
		t.at[j] = idles
		if s.suspended() && !s.open() {
			t.at[j] = sends
		}
		say("looks at its parent's waits")
	case at == sends:
		t.at[j], t.message = idles, true
		say("sends resume")
	}
	if s.at[j] != idles && s.crash > 0 {
		s.crash--
		s.at[j], s.saw[j] = idles, ""
		emit(s, search.Move{Who: who, What: "crashes", Fault: true})
	}
}

func (c family) sweep(s *famState, emit func(famState, search.Move)) {
	k := c.kid(s)
	t := *s
	if s.suspended() && !s.open() && s.due[s.task-1] && !s.message {
		t.message = true
		emit(t, search.Move{Who: "sweep", What: "sends resume"})
	}
	if !c.forward {
		return
	}
	if s.suspended() && s.open() && s.child[k] == stopped {
		t = *s
		t.child[k] = atWork
		emit(t, search.Move{Who: "sweep", What: "continues the child of a suspended parent"})
	}
	for j := range s.child {
		if s.parent == session.KindDeleted && s.child[j] == stopped {
			t = *s
			t.child[j] = over
			emit(t, search.Move{Who: "sweep", What: "ends the child of a deleted parent"})
		}
	}
}

func (c family) interrupt(t famState, k int, emit func(famState, search.Move)) {
	s := t
	switch s.stop {
	case famNotYet:
		if s.suspended() {
			t.parent, t.stop = session.KindInterrupted, famForwards
			emit(t, search.Move{Who: "interrupt", What: "stops the parent", Fault: true})
		}
		return
	case famForwards:
		t.stop = famDone
		if s.child[k] == atWork {
			t.child[k], t.at[k], t.saw[k] = stopped, 0, ""
			if c.lookAgain {
				t.stop = famLooks
			}
		}
		emit(t, search.Move{Who: "interrupt", What: "reaches the child"})
	case famLooks:
		t.stop = famDone
		if s.suspended() && s.child[k] == stopped {
			t.child[k] = atWork
		}
		emit(t, search.Move{Who: "interrupt", What: "looks at the parent again"})
	case famDone:
		return
	}
	if s.crash > 0 {
		s.crash--
		s.stop = famDone
		emit(s, search.Move{Who: "interrupt", What: "dies", Fault: true})
	}
}

func (c family) goOn(t famState, k int, emit func(famState, search.Move)) {
	s := t
	switch {
	case s.proceed == famNotYet && s.parent == session.KindInterrupted:
		t.proceed, t.parent = famForwards, session.KindSuspended
		if !s.open() {
			t.parent = session.KindResumed
		}
		emit(t, search.Move{Who: "continue", What: "continues the parent", Fault: true})
	case s.proceed == famForwards:
		t.proceed = famDone
		if c.forward && s.child[k] == stopped && s.suspended() {
			t.child[k] = atWork
		}
		emit(t, search.Move{Who: "continue", What: "reaches the child"})
		if s.crash > 0 {
			s.crash--
			s.proceed = famDone
			emit(s, search.Move{Who: "continue", What: "dies", Fault: true})
		}
	}
}
