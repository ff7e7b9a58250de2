package main

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
			if c.world.answers[i] {
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
				emit(t, move{who: who, what: "gets the first reply", x: uint8(g + 1), fault: true})
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
			emit(t, move{who: who, what: "looks before it answers", x: uint8(g + 1), fault: true})
			return
		}
		c.store(&t, g, i, x)
		*self = answerLooks
		emit(t, move{who: who, what: "answers wait of suspension", x: uint8(g + 1), fault: true})
	case answerSawOpen, answerSawLast:
		*self = answerDone
		if *wait == waitOpen && !s.gone() {
			c.store(&t, g, i, x)
			if at == answerSawLast {
				*self = answerSends
			}
		}
		emit(t, move{who: who, what: "answers wait of suspension", x: uint8(g + 1)})
	case answerLooks:
		*self = answerDone
		if int(s.gen) == g+1 && !s.open() && s.suspended() {
			*self = answerSends
		}
		emit(t, move{who: who, what: "looks at the waits"})
	case answerSends:
		*self = answerDone
		if s.suspended() { // it reads which entry would leave the suspension, and sends
			t.send(resume, t.n+1, visible)
		}
		emit(t, move{who: who, what: "sends resume", x: t.n + 1})
	}
	if at != answerNotYet && at != answerDone && s.budget[crashes] > 0 {
		t = s
		t.spend(crashes)
		t.answers[g][i] = answerDone
		emit(t, move{who: who, what: "dies", fault: true})
	}
}

// store is the one conditional update of the wait.
func (c *chain) store(t *state, g, i, x int) {
	t.waits[g][x] = waitAnswered
	switch {
	case i == expires:
		t.waits[g][x] = waitExpired
	case x == 0 && g > 0 && c.world.denyAgain:
		t.waits[g][x] = waitDenied
	}
	t.due |= 1 << x
}
