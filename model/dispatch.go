package main

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// A parent starts two children and waits for both: the order of dispatch and commit,
// the children's last transactions, who sends for the parent, a cancel of the parent.

// Where the parent is.
const (
	planning = iota
	waitsFor
	parentResumed
	stoppedShort // cancelled
)

type dispatchState struct {
	parent   uint8
	at       uint8 // its worker
	message  bool
	calls    [2]session.WaitState
	children [2]uint8 // unborn, atWork, over
	kid      [2]uint8 // their workers
	kidSent  [2]bool
	resume   bool
	crash    uint8
	cancel   bool
}

type dispatch struct {
	// after: children are dispatched after the entry that waits for them.
	after bool
	// sweepChildren: the sweep dispatches children whose parent died before it could.
	sweepChildren bool
	// sweepAnswers: and drives a parent on whose waits are all answered.
	sweepAnswers bool
	// closedToo: a child ends although its parent's wait is closed.
	closedToo bool
	crash     uint8
	cancel    bool
}

func dispatchModels() []search.Model {
	all := dispatch{after: true, sweepChildren: true, sweepAnswers: true, closedToo: true, crash: 2, cancel: true}
	without := func(off func(*dispatch)) dispatch { c := all; off(&c); return c }
	return []search.Model{
		all.space("P1 all rules: two children, cancel of their parent, 2 crashes", nil),
		without(func(c *dispatch) { c.after = false }).space("P10 children are dispatched before the commit", breaks("orphan")),
		without(func(c *dispatch) { c.sweepChildren = false }).space("P11 the sweep does not dispatch", breaks(search.Stuck)),
		without(func(c *dispatch) { c.sweepAnswers = false }).space("P12 the sweep does not look for parents whose children have ended", breaks(search.Stuck)),
		without(func(c *dispatch) { c.closedToo = false }).space("P13 a child cannot end when its parent's wait is closed", breaks(search.Stuck)),
	}
}

// The parent's worker.
const (
	parentIdle = iota
	parentFirst
	parentSecond
	parentCommits
	parentDone
)

func (c dispatch) space(name string, breaks []string) *search.Space[dispatchState] {
	return &search.Space[dispatchState]{
		Name: name, Breaks: breaks, Properties: []string{"orphan", "unheard"},
		First: dispatchState{message: true, crash: c.crash, cancel: c.cancel},
		Broken: func(s *dispatchState) (b uint32) {
			for i, child := range s.children {
				if s.parent == planning && s.at == parentIdle && child != unborn {
					b |= 1
				}
				if child == over && s.calls[i] == session.WaitOpen {
					b |= 2
				}
			}
			return b
		},
		Rest: func(s *dispatchState) bool {
			for i, child := range s.children {
				if child == atWork || s.kidSent[i] {
					return false
				}
			}
			return s.parent == parentResumed || s.parent == stoppedShort
		},
		Next: c.next,
	}
}

func (s *dispatchState) answered() bool {
	return s.parent == waitsFor && s.calls == [2]session.WaitState{session.WaitAnswered, session.WaitAnswered}
}

func (c dispatch) next(s *dispatchState, emit func(dispatchState, search.Move)) {
	c.work(*s, emit)
	for i := range s.children {
		c.child(*s, i, emit)
		if c.sweepChildren && s.parent == waitsFor && s.calls[i] == session.WaitOpen && s.children[i] == unborn {
			t := *s
			t.start(i)
			emit(t, search.Move{Who: "sweep", What: "dispatches child", X: uint8(i)})
		}
	}
	if s.resume {
		t := *s
		t.resume = false
		if s.answered() {
			t.parent = parentResumed
		}
		emit(t, search.Move{Who: "parent", What: "receives resume"})
	}
	if c.sweepAnswers && !s.resume && s.answered() {
		t := *s
		t.resume = true
		emit(t, search.Move{Who: "sweep", What: "sends resume"})
	}
	if s.cancel && s.parent == waitsFor {
		t := *s
		t.cancel, t.parent = false, stoppedShort
		for i := range t.calls {
			if t.calls[i] == session.WaitOpen {
				t.calls[i] = session.WaitClosed
			}
		}
		emit(t, search.Move{Who: "cancel", What: "closes what waits", Fault: true})
	}
}

// start creates a child if it is absent.
func (s *dispatchState) start(i int) {
	if s.children[i] == unborn {
		s.children[i], s.kidSent[i] = atWork, true
	}
}

func (c dispatch) work(t dispatchState, emit func(dispatchState, search.Move)) {
	s := t
	say := func(what string) { emit(t, search.Move{Who: "parent", What: what}) }
	switch s.at {
	case parentIdle:
		switch {
		case !s.message:
		case s.parent == planning:
			t.at = parentCommits
			if !c.after {
				t.at = parentFirst
			}
			say("receives")
		default:
			t.message = false
			say("acknowledges, it does not run")
		}
		return
	case parentFirst, parentSecond:
		i := int(s.at - parentFirst)
		t.start(i)
		t.at++
		if t.at == parentCommits && c.after {
			t.at = parentDone
		}
		say("dispatches a child")
	case parentCommits:
		t.parent, t.calls, t.at = waitsFor, [2]session.WaitState{session.WaitOpen, session.WaitOpen}, parentDone
		if c.after {
			t.at = parentFirst
		}
		say("commits suspended")
	case parentDone:
		t.at, t.message = parentIdle, false
		say("acknowledges")
	}
	if s.crash > 0 {
		s.crash--
		s.at = parentIdle
		emit(s, search.Move{Who: "parent", What: "crashes", Fault: true})
	}
}

func (c dispatch) child(t dispatchState, i int, emit func(dispatchState, search.Move)) {
	const (
		idles = iota
		ends
		looks
		done
	)
	s, who := t, [...]string{"child 0", "child 1"}[i]
	say := func(what string) { emit(t, search.Move{Who: who, What: what}) }
	switch s.kid[i] {
	case idles:
		switch {
		case !s.kidSent[i]:
		case s.children[i] == atWork:
			t.kid[i] = ends
			say("receives")
		default:
			t.kidSent[i] = false
			say("acknowledges, it has ended")
		}
		return
	case ends:
		switch {
		case s.calls[i] == session.WaitOpen:
			t.kid[i], t.children[i], t.calls[i] = looks, over, session.WaitAnswered
			say("ends and answers")
		case c.closedToo:
			t.kid[i], t.children[i] = looks, over
			say("ends without an answer")
		default:
			t.kid[i] = idles
			say("cannot end, and is delivered again")
		}
	case looks:
		t.kid[i] = done
		t.resume = s.resume || s.answered()
		say("looks at its parent's waits")
	case done:
		t.kid[i], t.kidSent[i] = idles, false
		say("acknowledges")
	}
	if s.crash > 0 {
		s.crash--
		s.kid[i] = idles
		emit(s, search.Move{Who: who, What: "crashes", Fault: true})
	}
}
