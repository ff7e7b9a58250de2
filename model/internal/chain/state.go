package chain

import (
	"fmt"
	"strings"

	"github.com/adjourn/adjourn/pkg/session"
)

const (
	workers     = 2
	messages    = 5 // a state with more is not followed further
	suspensions = 3
	calls       = 4
	answerers   = 4
	verbsAtOnce = 3
)

// Where a message is.
const (
	nowhere = iota
	visible
	flying  // received by a worker
	keptFor // hidden until the lease ends
	comesBack
	putOff // until the delay is over
	dead   // among the dead letters
)

var places = [...]string{"", "visible", "with", "kept", "comes back", "put off", "dead"}

type message struct {
	kind, k uint8
	// copy tells one that was sent again from the first.
	copy uint8
	// received counts deliveries, where there are dead letters.
	received uint8
	at, by   uint8
}

// worker is one invocation, with what it read and when it read it.
type worker struct {
	at      uint8 // its next action, see work.go
	k, kind uint8 // of its message
	copy    uint8
	n       uint8 // the newest entry it knows
	// signal and mail it acts on; headSignal and headMail are of the revision of HEAD its commits are conditioned on.
	signal, mail         uint8
	headSignal, headMail uint8
	waits                uint8 // as it read them
	call, phase, result  uint8
	won                  bool // it wrote entry n with keepsLease, and nobody was sent for
	lapsed               bool // its own clock says that its lease has run out
	perhaps              bool // its call may be marked as started by it
	wrote                bool // its reply was written, which it has not been told
	saw                  uint8
	// Between claim and read, where these are two actions.
	claimed          bool
	refused          uint8 // seq of the lease that was in the way, 0 if none
	refusedTime      uint8
	read             uint8 // kind of the entry it read
	by, byCopy       uint8
	flags            uint8
	headTask, readIn uint8
}

// verb is one request under way.
type verb struct {
	at, n, waits, signal uint8
	head, ledger, mail   uint8
	working              bool
	claimed              bool // the lease of a step that nobody works on
	putOff               bool // it read delayed
}

// state is everything there is. What history holds is reduced to what later moves
// and the properties need of it.
type state struct {
	// The newest entry: n, what it is, the message it was written for.
	n, kind, by       uint8
	byCopy            uint8
	keepsLease, young bool
	early             bool // delayed, and the delay is not over
	task              uint8
	phase             uint8 // of the current call, below
	gen               uint8 // suspensions so far; waits[gen-1] are the current ones
	call, made        uint8 // the current call, and how many there are
	removed           bool  // entries and ledgers are gone after delete
	remains           bool  // it is deleted, and what it has is not removed yet
	halted            bool  // a halt holds it
	expired           bool  // it has ended, and is kept no longer
	overdue           uint8 // a sweep found it expired: the entry it saw

	// HEAD: the entry that moved it last, lease, signal, mail.
	head                           uint8
	owner, leaseSeq, claims, lease uint8
	died                           uint8 // the lease's own count of the claims of leaseSeq that died
	signal, signalTask             uint8
	mail, taken                    uint8
	accepted                       uint8 // the strongest signal the task was sent and has not obeyed
	headDue                        bool

	waits [suspensions][2]uint8 // an approval, a client's result
	took  [suspensions]uint8
	due   uint8 // answered waits the sweep will find, as bits
	sweep uint8 // a sweep found the session interrupted: suspension and dues it saw

	ledger, effects, said [calls]uint8
	listed, left          uint8 // calls whose effects were shown to who went back; calls left behind

	queue   [messages]message
	workers [workers]worker
	answers [suspensions][answerers]uint8
	verbs   [verbsAtOnce]verb

	budget   Budget
	faulty   bool
	deaths   uint8
	asked    uint8 // how often the planner was asked for entry n+1
	received uint8
	bad      uint32
	over     bool // more messages than the model has room for
}

// Phases of the current call.
const (
	noCall   = iota
	waiting  // it waits for its approval
	approved // it may run
	ran      // an approved call has its result
	mayRun   // a call that needs no approval, its reply is committed
)

// toRun reports whether a call has no result and may run.
func toRun(phase uint8) bool { return phase == approved || phase == mayRun }

func (s *state) status() session.Status { return kinds[s.kind].status }

func (s *state) running() bool { return s.status() == session.StatusRunning }

func (s *state) suspended() bool { return s.status() == session.StatusSuspended }

func (s *state) interrupted() bool { return s.status() == session.StatusInterrupted }

func (s *state) gone() bool { return s.kind == deleted }

// heard is the signal that the current task has to obey.
func (s *state) heard() uint8 {
	if s.signalTask != s.task {
		return 0
	}
	return s.signal
}

// open reports whether a wait is open.
func (s *state) open() bool {
	return s.gen > 0 && (s.waits[s.gen-1][0] == waitOpen || s.waits[s.gen-1][1] == waitOpen)
}

// asRead is what a read of the current waits tells.
func (s *state) asRead() uint8 {
	if s.gen == 0 {
		return 0
	}
	return s.waits[s.gen-1][0] | s.waits[s.gen-1][1]<<4
}

// send puts a message into the queue. One waiting copy is as good as two:
// duplicates have a budget of their own.
func (s *state) send(kind, k, at uint8) { s.put(message{kind: kind, k: k, at: at, by: nobody}) }

// sendAgain is send for a message that may have been sent before: it is another one.
func (s *state) sendAgain(kind, k uint8) {
	s.put(message{kind: kind, k: k, at: visible, by: nobody, copy: 1})
}

func (s *state) put(sent message) {
	for _, m := range s.queue {
		if m == sent {
			return
		}
	}
	for i := range s.queue {
		if s.queue[i].at == nowhere {
			s.queue[i] = sent
			return
		}
	}
	s.over = true
}

// isFor reports whether the newest entry was written for a message.
func (s *state) isFor(m message) bool { return s.by == m.k && s.byCopy == m.copy }

// sent reports whether a message of that kind for the next entry is under way.
func (s *state) sent(kind uint8) bool {
	for _, m := range s.queue {
		if m.at != nowhere && m.at != dead && m.kind == kind && m.k == s.n+1 {
			return true
		}
	}
	return false
}

// held returns the message a worker has received, -1 if it has none any more.
func (s *state) held(w int) int {
	for i, m := range s.queue {
		if m.at == flying && m.by == uint8(w) {
			return i
		}
	}
	return -1
}

// retire ends an invocation: what it owned is owned by a worker that is no more.
func (s *state) retire(w int) {
	if s.owner == uint8(w) {
		s.owner = gone
	}
	for i, l := range s.ledger {
		if l == ledgerStarted+uint8(w) {
			s.ledger[i] = ledgerLeft
		}
	}
	s.workers[w] = worker{}
}

func (s *state) String() string {
	var b strings.Builder
	k := kinds[s.kind]
	fmt.Fprintf(&b, "%d %s%s", s.n, k.word, k.note)
	if s.keepsLease {
		b.WriteString(" keepsLease")
	}
	if s.owner != nobody {
		fmt.Fprintf(&b, " | lease %d of %s%s", s.leaseSeq, owners[s.owner], [...]string{" lapsed", "", " far ahead"}[s.lease])
	}
	if s.signal != 0 {
		fmt.Fprintf(&b, " | signal %s of task %d", signals[s.signal], s.signalTask)
	}
	for what, is := range map[string]bool{"halted": s.halted, "expired": s.expired, "not removed": s.remains} {
		if is {
			b.WriteString(" | " + what)
		}
	}
	if s.mail > 0 {
		fmt.Fprintf(&b, " | mail %d, taken in %d", s.mail, s.taken)
	}
	for g := range s.gen {
		fmt.Fprintf(&b, " | waits %d", g+1)
		for i, w := range s.waits[g] {
			word := string(waitStates[w])
			switch {
			case s.took[g]&(1<<i) != 0:
				word = string(session.WaitTaken)
			case w == waitDenied:
				word += " no"
			}
			fmt.Fprintf(&b, " %s", word)
		}
	}
	for i := range s.made {
		fmt.Fprintf(&b, " | call %d %s effects %d told %s", i+1, toolStates[s.ledger[i]], s.effects[i], [...]string{"nothing", "not run", "done", "unknown"}[s.said[i]])
	}
	for _, m := range s.queue {
		if m.at != nowhere {
			fmt.Fprintf(&b, " | %s %d %s", wakes[m.kind], m.k, places[m.at])
			if m.at == flying {
				fmt.Fprintf(&b, " %s", owners[m.by])
			}
		}
	}
	for i, w := range s.workers {
		if w.at != idle {
			fmt.Fprintf(&b, " | %s knows %d, next: %s", owners[i], w.n, actionNames[w.at])
			if w.signal != 0 {
				fmt.Fprintf(&b, ", heard %s", signals[w.signal])
			}
		}
	}
	return b.String()
}
