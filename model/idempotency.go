package main

import (
	"github.com/adjourn/adjourn/model/internal/search"
)

// One request, "interrupt", under one Idempotency-Key: sent up to three times, two
// at once, while three tasks of the session follow each other.

type keyState struct {
	task   uint8
	ended  bool
	record uint8 // of the key: 0 none, else 1 + the task it acted on
	at     [2]uint8
	saw    [2]bool  // the record was there when it read
	target [2]uint8 // the task it read
	acted  [4]uint8 // tasks that were interrupted by this one request
	idle   bool     // it was answered once: nothing to do
	tries  uint8
	crash  uint8
}

type keys struct {
	// inTransaction: the record is written with what the request does.
	inTransaction bool
	// idleToo: "nothing to do" is recorded like every success.
	idleToo bool
}

func keyModels() []search.Model {
	return []search.Model{
		keys{inTransaction: true, idleToo: true}.space("K1 all rules: one request three times, two at once, three tasks, 2 crashes", nil),
		keys{idleToo: true}.space("K10 the record is written afterwards", breaks("again")),
		keys{inTransaction: true}.space("K11 what had nothing to do is not recorded", breaks("later")),
	}
}

func (c keys) space(name string, breaks []string) *search.Space[keyState] {
	return &search.Space[keyState]{
		Name: name, Breaks: breaks, Properties: []string{"again", "later"}, First: keyState{task: 1, tries: 3, crash: 2},
		Broken: func(s *keyState) (b uint32) {
			n := uint8(0)
			for _, times := range s.acted {
				n += times
			}
			if n > 1 {
				b |= 1
			}
			if s.idle && n > 0 || s.record > 0 && n > 0 && s.acted[s.record-1] == 0 {
				b |= 2
			}
			return b
		},
		Rest: func(s *keyState) bool { return s.at == [2]uint8{} },
		Next: c.next,
	}
}

func (c keys) next(s *keyState, emit func(keyState, search.Move)) {
	if s.task < 3 {
		t := *s
		if s.ended {
			t.ended, t.task = false, s.task+1
			emit(t, search.Move{Who: "session", What: "begins the next task", X: t.task, Fault: true})
		} else {
			t.ended = true
			emit(t, search.Move{Who: "session", What: "ends its task", X: t.task, Fault: true})
		}
	}
	for i := range s.at {
		c.request(*s, i, emit)
	}
}

func (c keys) request(t keyState, i int, emit func(keyState, search.Move)) {
	const (
		notYet = iota
		reads
		acts
		records
	)
	s, who := t, [...]string{"request", "the same request"}[i]
	say := func(what string) { emit(t, search.Move{Who: who, What: what, X: t.task}) }
	over := func(t *keyState) { t.at[i], t.saw[i], t.target[i] = notYet, false, 0 }
	switch s.at[i] {
	case notYet:
		if s.tries > 0 {
			t.tries--
			t.at[i] = reads
			emit(t, search.Move{Who: who, What: "is sent", Fault: true})
		}
		return
	case reads:
		t.at[i], t.saw[i], t.target[i] = acts, s.record != 0, s.task
		say("reads")
	case acts:
		switch {
		case s.saw[i]:
			over(&t)
			say("gets the first answer")
		case s.target[i] != s.task, c.inTransaction && s.record != 0:
			t.at[i] = reads
			say("is refused and reads again")
		default:
			if !s.ended && t.acted[t.task] < 2 {
				t.acted[t.task]++
			}
			t.idle = s.idle || s.ended
			t.at[i] = records
			if c.inTransaction {
				if !s.ended || c.idleToo {
					t.record = 1 + s.task
				}
				over(&t)
			}
			say("acts")
		}
	case records:
		t.record = 1 + s.target[i]
		over(&t)
		say("writes its record")
	}
	if s.crash > 0 {
		s.crash--
		over(&s)
		emit(s, search.Move{Who: who, What: "dies", Fault: true})
	}
}
