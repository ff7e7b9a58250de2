package chain

import "github.com/adjourn/adjourn/model/internal/search"

// Where an answerer is.
const (
	answerNotYet = iota
	answerLooks  // its answer is stored, it has to look at the other waits
	answerSends
	answerDone
	answerSawOpen // it looked before it answered, and another wait was open
	answerSawLast
)

var answererNames = [answerers]string{"approver", "client", "deadline", "approver again"}

// answer lets everybody answer who may: each once for each suspension.
func (c *chain) answer(s *state, emit emitter) {
	for g := range s.answers {
		for i, at := range s.answers[g] {
			if c.world.Answers[i] {
				c.answerOne(*s, g, i, at, emit)
			}
		}
	}
}

// answerOne is one answerer's next action.
func (c *chain) answerOne(t state, g, i int, at uint8, emit emitter) {
	x := min(i, 1) // the wait it answers
	if i == repeats {
		x = 0
	}
	s, self, who := t, &t.answers[g][i], answererNames[i]
	wait := &t.waits[g][x]
	switch at {
	case answerNotYet:
		if i == repeats {
			if settled(*wait) && s.answers[g][answersApproval] != answerNotYet {
				*self = answerLooks // the first reply again, and what follows
				emit(t, search.Move{Who: who, What: "gets the first reply", X: uint8(g + 1), Fault: true})
			}
			return
		}
		if *wait != waitOpen || s.gone() {
			return
		}
		if !c.rules.LookAfter {
			*self = answerSawLast
			if s.waits[g][1-x] == waitOpen {
				*self = answerSawOpen
			}
			emit(t, search.Move{Who: who, What: "looks before it answers", X: uint8(g + 1), Fault: true})
			return
		}
		c.store(&t, g, i, x)
		*self = answerLooks
		emit(t, search.Move{Who: who, What: "answers wait of suspension", X: uint8(g + 1), Fault: true})
	case answerSawOpen, answerSawLast:
		*self = answerDone
		if *wait == waitOpen && !s.gone() {
			c.store(&t, g, i, x)
			if at == answerSawLast {
				*self = answerSends
			}
		}
		emit(t, search.Move{Who: who, What: "answers wait of suspension", X: uint8(g + 1)})
	case answerLooks:
		*self = answerDone
		if int(s.gen) == g+1 && !s.open() && s.suspended() {
			*self = answerSends
		}
		emit(t, search.Move{Who: who, What: "looks at the waits"})
	case answerSends:
		*self = answerDone
		if s.suspended() { // it reads which entry would leave the suspension, and sends
			t.send(resume, t.n+1, visible)
		}
		emit(t, search.Move{Who: who, What: "sends resume", X: t.n + 1})
	}
	if at != answerNotYet && at != answerDone && s.budget.Crashes > 0 {
		t = s
		t.spend(&t.budget.Crashes)
		t.answers[g][i] = answerDone
		emit(t, search.Move{Who: who, What: "dies", Fault: true})
	}
}

// store is the one conditional update of the wait.
func (c *chain) store(t *state, g, i, x int) {
	t.waits[g][x] = waitAnswered
	switch {
	case i == expires:
		t.waits[g][x] = waitExpired
	case x == 0 && g > 0 && c.world.DenyAgain:
		t.waits[g][x] = waitDenied
	}
	t.due |= 1 << x
}
