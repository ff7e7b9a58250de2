package main

import (
	"github.com/adjourn/adjourn/model/internal/search"
)

// Two waits. The first answer is only stored (autoResume: false); the second
// drives on. Clocks differ: whoever asks which came last must not ask them.

type heldState struct {
	at    [2]uint8 // answerers: not yet, has read, has to look, has to send, done
	alone [2]bool  // as each read before it wrote: its own wait was the only one left
	open  [2]bool
	when  [2]uint8 // the clock each wrote
	// first is who was done before the other began: 1 or 2, 0 if they overlapped.
	first      uint8
	sent, gone bool
	crash      uint8
	ahead      uint8 // how often a clock may be ahead
}

// How sweep and answerers tell whether the session is to be driven on.
const (
	byClocks = iota
	byAny    // any answer that drives on is enough
	bySeen   // by what the held answer saw before it was written
)

type held struct{ by, crash uint8 }

func heldModels() []search.Model {
	return []search.Model{
		held{bySeen, 2}.space("H1 all rules: one answer held, one that drives on, clocks ahead, 2 crashes", nil),
		held{byClocks, 1}.space("H10 the last answer is that with the latest time", breaks("held", search.Stuck)),
		held{byAny, 1}.space("H11 any answer that is not held drives on", breaks("held")),
	}
}

func (c held) drives(s *heldState) bool {
	switch c.by {
	case byClocks:
		return s.when[1] > s.when[0]
	case byAny:
		return true
	}
	return !s.alone[0]
}

func (c held) space(name string, breaks []string) *search.Space[heldState] {
	return &search.Space[heldState]{
		Name: name, Breaks: breaks, Properties: []string{"held"},
		First: heldState{open: [2]bool{true, true}, crash: c.crash, ahead: 1},
		Broken: func(s *heldState) uint32 {
			if (s.sent || s.gone) && s.first == 2 {
				return 1
			}
			return 0
		},
		// Only if the held answer came first does anybody owe the session anything.
		Rest: func(s *heldState) bool { return s.gone || s.open[0] || s.open[1] || s.first != 1 },
		Next: c.next,
	}
}

func (c held) next(s *heldState, emit func(heldState, search.Move)) {
	for i := range s.at {
		c.answer(*s, i, emit)
	}
	t := *s
	if !s.open[0] && !s.open[1] && !s.sent && !s.gone && c.drives(s) {
		t.sent = true
		emit(t, search.Move{Who: "sweep", What: "sends resume"})
	}
	if s.sent {
		t.sent, t.gone = false, true
		emit(t, search.Move{Who: "worker", What: "commits resumed"})
	}
}

func (c held) answer(t heldState, i int, emit func(heldState, search.Move)) {
	const (
		notYet = iota
		hasRead
		looks
		sends
		done
	)
	s, who := t, [...]string{"who holds", "who drives on"}[i]
	at := s.at[i]
	switch at {
	case notYet:
		t.at[i] = hasRead
		if !s.open[1-i] {
			t.alone[i] = true
			t.first = uint8(2 - i) // the other had answered when this one began
		}
		emit(t, search.Move{Who: who, What: "reads the open waits", Fault: true})
	case hasRead:
		t.open[i], t.at[i], t.when[i] = false, looks, 1
		if !s.open[1-i] {
			t.when[i] = 2
		}
		if s.ahead > 0 {
			u := t
			u.ahead--
			u.when[i] += 5
			emit(u, search.Move{Who: who, What: "answers, its clock ahead", Fault: true})
		}
		emit(t, search.Move{Who: who, What: "answers"})
	case looks:
		t.at[i] = done
		if i == 1 && !s.open[0] && (c.by != bySeen || !s.alone[0]) {
			t.at[i] = sends
		}
		emit(t, search.Move{Who: who, What: "looks"})
	case sends:
		t.at[i], t.sent = done, true
		emit(t, search.Move{Who: who, What: "sends resume"})
	}
	if (at == looks || at == sends) && s.crash > 0 {
		s.crash--
		s.at[i] = done
		emit(s, search.Move{Who: who, What: "dies", Fault: true})
	}
}
