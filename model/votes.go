package main

import (
	"math/bits"

	"github.com/adjourn/adjourn/model/internal/search"
	"github.com/adjourn/adjourn/pkg/session"
)

// A wait that two persons of three must approve. One of them votes at two doors
// at once, one denies, and the deadline passes.

type voteState struct {
	yes, no uint8 // who voted, as bits, in the wait's record
	twice   uint8 // votes that count although their person had voted
	state   session.WaitState
	at      [4]uint8
	rev     uint8
	seen    [4]uint8 // the revision each read
	due     bool
	sent    bool
	resumed bool
	crash   uint8
}

type votes struct {
	// person: a vote counts only if its person has not voted.
	person bool
	// oneUpdate: a vote is conditioned on the revision, and the one that decides is the answer.
	oneUpdate bool
	crash     uint8
}

func voteModels() []search.Model {
	return []search.Model{
		votes{person: true, oneUpdate: true, crash: 2}.space("V1 all rules: two of three, one person twice, one denies, expiry, 2 crashes", nil),
		votes{person: true, crash: 1}.space("V10 the decision is a write after the vote", breaks("overrule")),
		votes{oneUpdate: true}.space("V11 persons are not compared", breaks("alone")),
	}
}

// persons behind the four requests: the first and the last are one.
var persons = [4]uint8{0, 1, 2, 0}

func (s *voteState) decide() {
	if s.no != 0 || bits.OnesCount8(s.yes)+int(s.twice) >= 2 {
		s.state, s.due = session.WaitAnswered, true
	}
}

func (s *voteState) decided() bool { return s.no != 0 || bits.OnesCount8(s.yes) >= 2 }

func (c votes) space(name string, breaks []string) *search.Space[voteState] {
	return &search.Space[voteState]{
		Name: name, Breaks: breaks, Properties: []string{"alone", "overrule"}, First: voteState{state: session.WaitOpen, crash: c.crash},
		Broken: func(s *voteState) (b uint32) {
			if s.state == session.WaitAnswered && !s.decided() {
				b |= 1
			}
			if s.state == session.WaitExpired && s.decided() {
				b |= 2
			}
			return b
		},
		Rest: func(s *voteState) bool { return s.resumed || s.state == session.WaitOpen && !s.decided() },
		Next: c.next,
	}
}

func (c votes) next(s *voteState, emit func(voteState, search.Move)) {
	for i := range s.at {
		c.vote(*s, i, emit)
	}
	t := *s
	switch {
	case s.state == session.WaitOpen:
		t.state, t.due = session.WaitExpired, true
		emit(t, search.Move{Who: "sweep", What: "expires the wait", Fault: true})
	case s.due && !s.sent && !s.resumed:
		t.sent = true
		emit(t, search.Move{Who: "sweep", What: "sends resume"})
	}
	if s.sent {
		t = *s
		t.sent, t.due, t.resumed = false, false, true
		emit(t, search.Move{Who: "worker", What: "commits resumed"})
	}
}

func (c votes) vote(t voteState, i int, emit func(voteState, search.Move)) {
	const (
		notYet = iota
		hasRead
		looks
		sends
		done
	)
	s, who, bit := t, [...]string{"Ann", "Ben", "Cem", "Ann elsewhere"}[i], uint8(1)<<persons[i]
	say := func(what string) { emit(t, search.Move{Who: who, What: what}) }
	at := s.at[i]
	switch at {
	case notYet:
		t.at[i], t.seen[i] = hasRead, s.rev
		emit(t, search.Move{Who: who, What: "reads the wait", Fault: true})
	case hasRead:
		t.at[i] = done
		switch {
		case s.state != session.WaitOpen:
			say("is refused")
		case c.oneUpdate && s.rev != s.seen[i]:
			t.at[i] = notYet
			say("reads again")
		case c.person && (s.yes|s.no)&bit != 0:
			say("has voted")
		default:
			c.count(&t, i, bit)
			t.at[i] = looks
			say("votes")
		}
	case looks:
		if s.state == session.WaitOpen && !c.oneUpdate {
			t.decide()
		}
		t.at[i] = done
		if t.state != session.WaitOpen {
			t.at[i] = sends
		}
		say("looks")
	case sends:
		t.at[i], t.sent = done, true
		say("sends resume")
	}
	if (at == looks || at == sends) && s.crash > 0 {
		s.crash--
		s.at[i] = done
		emit(s, search.Move{Who: who, What: "dies", Fault: true})
	}
}

func (c votes) count(t *voteState, i int, bit uint8) {
	switch {
	case i == 2:
		t.no |= bit
	case t.yes&bit != 0:
		t.twice++
	default:
		t.yes |= bit
	}
	t.rev++
	if c.oneUpdate {
		t.decide()
	}
}
