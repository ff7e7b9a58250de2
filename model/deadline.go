package main

import (
	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// A wait with a deadline, which two persons extend at once while a third answers and two sweeps look
// for what is due. Time passes between any two actions.

type deadlineState struct {
	now      uint8 // 0 before the first deadline, 1 after it, 2 and 3 after the later ones
	deadline uint8 // in the wait's record: it has passed when now has come to it
	due      uint8 // when the sweep finds the wait; 0 never
	state    session.WaitState
	rev      uint8
	at       [5]uint8
	saw      [5]uint8 // the revision each read
	until    [5]uint8 // the deadline each read
	accepted uint8    // the latest deadline that somebody was told of
	ends     uint8    // how often the wait was ended with success
	early    bool     // it expired before the deadline somebody was told of
	resumed  bool
}

type deadlines struct {
	// oneRevision: each write is conditioned on the revision that its writer read.
	oneRevision bool
	// dueToo: who moves the deadline moves the due time in the same write.
	dueToo bool
	// reads: the sweep reads the record it was led to, and goes by its deadline.
	reads bool
}

func deadlineModels() []search.Model {
	return []search.Model{
		deadlines{oneRevision: true, dueToo: true, reads: true}.space("W1 all rules: two extend, one answers, two sweeps", nil),
		deadlines{dueToo: true, reads: true}.space("W10 an extension is not conditioned on the revision", breaks("early", "ends")),
		deadlines{oneRevision: true, reads: true}.space("W11 the due time does not move with the deadline", breaks(search.Stuck)),
		deadlines{oneRevision: true, dueToo: true}.space("W12 the sweep goes by the due time it found", breaks("early")),
	}
}

func (c deadlines) space(name string, breaks []string) *search.Space[deadlineState] {
	return &search.Space[deadlineState]{
		Name: name, Breaks: breaks, Properties: []string{"early", "ends"},
		First: deadlineState{deadline: 1, due: 1, state: session.WaitOpen},
		Broken: func(s *deadlineState) (b uint32) {
			if s.early {
				b |= 1
			}
			if s.ends > 1 {
				b |= 2
			}
			return b
		},
		Rest: func(s *deadlineState) bool { return s.resumed },
		Next: c.next,
	}
}

func (c deadlines) next(s *deadlineState, emit func(deadlineState, search.Move)) {
	for i := range s.at {
		switch {
		case i < 2:
			c.extend(*s, i, emit)
		case i == 2:
			c.answer(*s, emit)
		default:
			c.sweep(*s, i, emit)
		}
	}
	if t := *s; s.now < 3 {
		t.now++
		emit(t, search.Move{Who: "the clock", What: "goes on"})
	}
	if t := *s; s.state != session.WaitOpen && !s.resumed {
		t.resumed = true
		emit(t, search.Move{Who: "worker", What: "commits resumed"})
	}
}

// moved reports whether the record is another one than actor i read.
func (c deadlines) moved(s *deadlineState, i int) bool { return c.oneRevision && s.rev != s.saw[i] }

func (c deadlines) read(s *deadlineState, i int) {
	s.at[i], s.saw[i], s.until[i] = 1, s.rev, s.deadline
}

// extend moves the deadline by one, from what was read.
func (c deadlines) extend(s deadlineState, i int, emit func(deadlineState, search.Move)) {
	t, who := s, [...]string{"Ann", "Ben"}[i]
	switch s.at[i] {
	case 0:
		if s.state != session.WaitOpen || s.now >= s.deadline {
			return // refused
		}
		c.read(&t, i)
		emit(t, search.Move{Who: who, What: "reads the wait", Fault: true})
	case 1:
		t.at[i] = 2
		switch {
		case c.moved(&s, i):
			t.at[i] = 0
			emit(t, search.Move{Who: who, What: "reads again"})
		default:
			t.state, t.deadline, t.rev = session.WaitOpen, s.until[i]+1, s.rev+1
			if t.accepted = max(s.accepted, t.deadline); c.dueToo {
				t.due = t.deadline
			}
			emit(t, search.Move{Who: who, What: "extends"})
		}
	}
}

func (c deadlines) answer(s deadlineState, emit func(deadlineState, search.Move)) {
	const i = 2
	t := s
	switch s.at[i] {
	case 0:
		if s.state != session.WaitOpen || s.now >= s.deadline {
			return // too late
		}
		c.read(&t, i)
		emit(t, search.Move{Who: "Cem", What: "reads the wait", Fault: true})
	case 1:
		t.at[i] = 2
		if c.moved(&s, i) {
			t.at[i] = 0
			emit(t, search.Move{Who: "Cem", What: "reads again"})
			return
		}
		t.state, t.rev, t.due = session.WaitAnswered, s.rev+1, 0
		t.ends++
		emit(t, search.Move{Who: "Cem", What: "answers"})
	}
}

func (c deadlines) sweep(s deadlineState, i int, emit func(deadlineState, search.Move)) {
	t, who := s, [...]string{"sweep", "another sweep"}[i-3]
	switch s.at[i] {
	case 0:
		if s.state != session.WaitOpen || s.due == 0 || s.now < s.due {
			return
		}
		if c.read(&t, i); !c.reads {
			t.until[i] = s.due
		}
		t.at[i] = 2
		emit(t, search.Move{Who: who, What: "finds what is due"})
	case 2: // reads the record, or not
		if c.reads {
			c.read(&t, i)
		} else {
			t.saw[i] = s.rev
		}
		if t.at[i] = 3; s.now < t.until[i] || s.state != session.WaitOpen {
			t.at[i] = 0
			if t.due = 0; c.dueToo && s.state == session.WaitOpen { // else it is found in every sweep
				t.due = s.deadline
			}
		}
		emit(t, search.Move{Who: who, What: "looks"})
	case 3:
		t.at[i] = 0
		if c.moved(&s, i) {
			emit(t, search.Move{Who: who, What: "lost"})
			return
		}
		t.early = s.now < s.accepted
		t.state, t.rev, t.due = session.WaitExpired, s.rev+1, 0
		t.ends++
		emit(t, search.Move{Who: who, What: "expires the wait"})
	}
}
