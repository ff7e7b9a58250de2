package chain

import (
	"cmp"
	"slices"
)

// canon gives states that can no longer be told apart one form: what cannot
// matter any more is forgotten, what is interchangeable is put in order.
func (c *chain) canon(s *state) {
	if !s.running() {
		s.by, s.byCopy = 0, 0
	}
	if s.gone() {
		s.due, s.headDue, s.halted, s.expired = 0, false, false, false
	}
	c.forgetLease(s)
	c.forgetMessages(s)
	for i := range s.workers {
		c.forget(s, &s.workers[i])
	}
	for g := range s.answers {
		for i, at := range s.answers[g] {
			over := int(s.gen) > g+1 || s.status().Ended() || s.gone()
			if at == answerLooks && over {
				s.answers[g][i] = answerDone
			}
		}
	}
	if s.status().Ended() {
		s.due, s.headDue, s.accepted = 0, false, 0
	}
	s.sort()
	if s.workers[1].value() < s.workers[0].value() {
		s.swap()
		s.sort()
	}
}

// forgetLease drops a lease that an entry has closed, unless its owner may still
// ask for it: whoever claims the next entry gets it, whatever this one was.
func (c *chain) forgetLease(s *state) {
	if !c.rules.ClosedByEntry || !c.rules.NeverBack || s.keepsLease || s.leaseSeq > s.n {
		return
	}
	if s.owner < workers {
		if at := s.workers[s.owner].at; at != sendNext && at != acknowledge {
			return
		}
	}
	s.owner, s.leaseSeq, s.claims, s.died, s.lease = nobody, 0, 0, 0, lapsed
}

// forgetMessages: one message for an entry that exists, and was written for another one, is like any other.
func (c *chain) forgetMessages(s *state) {
	for i := range s.queue {
		m := &s.queue[i]
		if m.at == nowhere || m.k > s.n || s.running() && (s.isFor(*m) || !c.rules.ByName && m.k == s.by) {
			continue
		}
		m.k, m.copy = 1, 0
		if c.rules.StaleStep && c.rules.OpenWait && c.rules.StayInterrupted && !c.world.Economy {
			m.kind = step
		}
	}
}

// forget drops what a worker will not look at again.
func (c *chain) forget(s *state, w *worker) {
	switch w.at {
	case idle:
		return
	case acknowledge:
		*w = worker{at: acknowledge, k: w.k, kind: w.kind}
		if c.rules.CommitFirst {
			w.k, w.kind = 0, 0
		}
		return
	case sendNext:
		*w = worker{at: sendNext, n: w.n, copy: w.copy}
		return
	case arrived, hasClaimed, hasRead:
		return
	case markStarted, askLease, markAgain, renewLease, runTool, markFinished:
		w.waits, w.signal = 0, 0
		if !c.world.Finishes { // stepped follows, which is not conditioned on HEAD
			w.headSignal, w.headMail = 0, 0
		}
		return
	case commitAgain, giveFree:
		w.waits, w.headSignal, w.headMail = 0, 0, 0 // read anew before they are used
		return
	case commitResumed:
	case commitStepped: // not conditioned on HEAD
		w.waits, w.signal, w.headSignal, w.headMail = 0, 0, 0, 0
	default:
		w.waits = 0
	}
	if w.n != s.n && !s.removed && !toRun(w.phase) && w.at != closeCall {
		// It can only lose.
		if w.won && c.rules.WinnerSends {
			*w = worker{at: sendNext, n: w.n, copy: 1}
		} else {
			*w = worker{at: acknowledge}
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// value orders workers.
func (w *worker) value() uint64 {
	v := uint64(w.at)
	for _, x := range [...]uint8{w.k, w.n, w.signal, w.mail, w.headSignal, w.headMail, w.call, w.phase, w.result} {
		v = v<<5 | uint64(x&31)
	}
	v = v<<5 | uint64(w.copy)<<4 | uint64(w.kind)<<2 | b2u(w.won)<<1 | b2u(w.lapsed)
	return v<<2 | b2u(w.perhaps)<<1 | b2u(w.wrote)
}

func (m message) value() uint64 {
	if m.at == nowhere {
		return 1 << 63
	}
	return uint64(m.at)<<32 | uint64(m.copy)<<40 | uint64(m.k)<<24 | uint64(m.kind)<<16 | uint64(m.received)<<8 | uint64(m.by)
}

func (s *state) sort() {
	slices.SortFunc(s.queue[:], func(a, b message) int { return cmp.Compare(a.value(), b.value()) })
}

// swap gives the workers each other's names.
func (s *state) swap() {
	other := func(x *uint8, first uint8) {
		if *x >= first && *x < first+workers {
			*x = 2*first + 1 - *x
		}
	}
	s.workers[0], s.workers[1] = s.workers[1], s.workers[0]
	other(&s.owner, 0)
	for i := range s.queue {
		if s.queue[i].at == flying {
			other(&s.queue[i].by, 0)
		}
	}
	for i := range s.ledger {
		other(&s.ledger[i], ledgerStarted)
	}
	for i := range s.workers {
		other(&s.workers[i].saw, ledgerStarted)
	}
}
