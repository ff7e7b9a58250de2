package chain

import (
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// The program's words as small numbers, so that a state stays small. Whatever
// is decided or printed is the program's own word again.

// Kinds of entry. Some words stand here twice, because the model tells apart what the program reads from the rest of the entry.
const (
	none = iota
	started
	replied
	stepped
	suspended
	resuspended // by continue, over the waits that are open still
	resumed
	delayed
	interrupted
	cancelled
	completed
	failed
	aborted  // failed, for good
	restored // running
	reasked  // restored, suspended: what was asked is asked anew
	deleted
)

var kinds = [...]struct {
	word   session.Kind
	status session.Status
	note   string
}{
	started:     {session.KindStarted, session.StatusRunning, ""},
	replied:     {session.KindReplied, session.StatusRunning, ""},
	stepped:     {session.KindStepped, session.StatusRunning, ""},
	suspended:   {session.KindSuspended, session.StatusSuspended, ""},
	resuspended: {session.KindSuspended, session.StatusSuspended, " again"},
	resumed:     {session.KindResumed, session.StatusRunning, ""},
	delayed:     {session.KindDelayed, session.StatusRunning, ""},
	interrupted: {session.KindInterrupted, session.StatusInterrupted, ""},
	cancelled:   {session.KindCancelled, session.StatusCancelled, ""},
	completed:   {session.KindCompleted, session.StatusCompleted, ""},
	failed:      {session.KindFailed, session.StatusFailed, ""},
	aborted:     {session.KindFailed, session.StatusFailed, " for good"},
	restored:    {session.KindRestored, session.StatusRunning, ""},
	reasked:     {session.KindRestored, session.StatusSuspended, " asking anew"},
	deleted:     {session.KindDeleted, "", ""},
}

// kindsLeftOut are those the model has nothing of.
var kindsLeftOut = []session.Kind{session.KindForked}

// signals by strength.
var signals = [...]journal.SignalKind{"", journal.SignalInterrupt, journal.SignalCancel, journal.SignalAbort}

// obeying is the entry that obeys a signal.
var obeying = [...]uint8{none, interrupted, cancelled, aborted}

// stronger reports whether one signal replaces another.
func stronger(a, b uint8) bool { return signals[a].Strength() > signals[b].Strength() }

// ends reports whether a signal ends the task; the others only stop it.
func ends(signal uint8) bool { return kinds[obeying[signal]].status.Ended() }

// What became of a wait.
const (
	waitNone = iota
	waitOpen
	waitAnswered // an approval: yes
	waitExpired
	waitClosed
	waitDenied // answered: no
)

var waitStates = [...]session.WaitState{"", session.WaitOpen, session.WaitAnswered, session.WaitExpired, session.WaitClosed, session.WaitAnswered}

// settled reports whether a wait has an answer that was accepted, be it an expiry.
func settled(w uint8) bool {
	return waitStates[w] == session.WaitAnswered || waitStates[w] == session.WaitExpired
}

// Ledger of a call: nothing, started by worker 0 or 1 or by one that is no more, finished, closed,
// given free before it began: a mark that wants nothing to be there is not put then.
const (
	ledgerNone     = 0
	ledgerStarted  = 1 // and 2
	ledgerLeft     = 3
	ledgerFinished = 4
	ledgerClosed   = 5
	ledgerFree     = 6
)

var toolStates = [...]journal.ToolState{"", journal.ToolStarted, journal.ToolStarted, journal.ToolStarted, journal.ToolFinished, journal.ToolClosed, journal.ToolMemo}

// unrun reports whether a call has certainly not run.
func unrun(ledger uint8) bool {
	return startable(ledger) || toolStates[ledger] == journal.ToolClosed
}

// startable reports whether nobody has started, finished or closed a call.
func startable(ledger uint8) bool { return ledger == ledgerNone || ledger == ledgerFree }

// What history tells of a call.
const (
	saidNothing = iota
	saidNotRun
	saidDone
	saidUnknown
	// owed is what a worker has of a call that ran, while its ledger does not say so yet.
	owed
)

// told is what a ledger lets history say of a call that is given up.
func told(ledger uint8) uint8 {
	switch {
	case unrun(ledger):
		return saidNotRun
	case toolStates[ledger] == journal.ToolFinished:
		return saidDone
	}
	return saidUnknown
}

// Kinds of message.
const (
	step = iota
	resume
)

var wakes = [...]journal.WakeKind{journal.WakeStep, journal.WakeResume}

// Owners of a lease: the two workers, one that is no more, nobody, a verb.
const (
	gone   = 2
	nobody = 3
	aVerb  = 4 // and the next ones
)

var owners = [aVerb + verbsAtOnce]string{"worker 0", "worker 1", "a worker that is no more", "", "verb 0", "verb 1", "verb 2"}

// How a lease stands in time.
const (
	lapsed = iota
	live
	ahead // written by a clock far ahead of all others
)

// The one instant at which everything is decided. Time passes by moves: what
// lies ahead of the instant lies behind it after one.
var instant = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	leaseTime = 20 * time.Second
	grace     = 5 * time.Second
)

var untils = [...]time.Time{lapsed: instant.Add(-time.Second), live: instant.Add(leaseTime), ahead: instant.Add(300 * time.Hour)}

// key of the one session.
var key = session.Key{Tenant: "default", ID: "s"}

// leaseOf is a lease as the program keeps it.
func (c *chain) leaseOf(owner, seq, n, inTime uint8) journal.Lease {
	if owner == nobody {
		return journal.Lease{Seq: int64(seq), N: int64(n)}
	}
	l := journal.Lease{Owner: owners[owner], Seq: int64(seq), N: int64(n), Until: untils[inTime], For: leaseTime}
	if !c.rules.Bounded {
		l.For = 1000 * time.Hour
	}
	return l
}

func nobodyKnown(string) bool { return false }

// claim asks the program who gets the lease, and gives it.
func (c *chain) claim(s *state, mode store.ClaimMode, w, seq uint8) bool {
	p := store.ClaimParams{Key: key, Mode: mode, Owner: owners[w], Seq: int64(seq), Now: instant, Until: instant.Add(leaseTime)}
	was := c.leaseOf(s.owner, s.leaseSeq, s.claims, s.lease)
	was.Died = int64(s.died)
	is, granted := p.Grant(was, nobodyKnown)
	if mode == store.ClaimTake {
		switch {
		case !c.rules.ClosedByEntry && s.owner != nobody && s.lease != lapsed && s.owner != w:
			granted = false // only time ends a lease
		case !c.rules.NeverBack && s.lease == lapsed && s.leaseSeq > seq:
			is, granted = journal.Lease{Owner: owners[w], Seq: int64(seq), N: 1}, true
		}
	}
	if !granted {
		return false
	}
	s.owner, s.leaseSeq, s.lease = w, uint8(is.Seq), live
	if c.world.Claims > 0 {
		s.claims, s.died = uint8(is.N), uint8(is.Died)
	}
	if mode == store.ClaimRelease {
		s.owner, s.lease = nobody, lapsed
	}
	return true
}

// working reports whether the lease stands: somebody works, as far as anybody can know.
func (c *chain) working(s *state) bool {
	return c.stands(c.leaseOf(s.owner, s.leaseSeq, s.claims, s.lease), s.n, s.keepsLease)
}

func (c *chain) stands(l journal.Lease, n uint8, keepsLease bool) bool {
	if !c.rules.ClosedByEntry {
		l.Seq = int64(n) + 1
	}
	return l.Live(instant, int64(n), keepsLease)
}

// seen is what a worker read of the session and its lease.
type seen struct {
	n, kind, by       uint8
	byCopy            uint8
	keepsLease, young bool
	early             bool // delayed, and not due yet
	open              bool // a wait is open
	claimed           bool
	lease             journal.Lease // that stands in the way
	signal            bool
}

// name is what the queue calls a message.
func (c *chain) name(copied uint8) string {
	if !c.rules.ByName {
		return ""
	}
	return [...]string{"first", "again"}[copied]
}

// decide asks the program what to do about a message.
func (c *chain) decide(m message, f seen) engine.Action {
	k := kinds[f.kind]
	s := &c.scratch
	*s = session.Session{Key: key, Version: int64(f.n), Status: k.status, Task: 1}
	s.Newest = session.Newest{Kind: k.word, At: instant.Add(-time.Hour), KeepsLease: f.keepsLease, Attempt: session.Attempt{For: int64(f.by), Message: c.name(f.byCopy)}}
	if f.young {
		s.Newest.At = instant
	}
	if k.word == session.KindDelayed {
		until := instant
		if f.early {
			until = instant.Add(time.Minute)
		}
		s.Newest.Until = &until
	}
	wake := journal.NewWake(key, int64(m.k), wakes[m.kind])
	wake.Message = c.name(m.copy)
	facts := engine.Facts{
		Now: instant, Wake: wake, Session: s, Claimed: f.claimed, Lease: f.lease, Grace: grace,
	}
	if !c.rules.ClosedByEntry {
		facts.Lease.Seq = int64(f.n) + 1
	}
	if f.open {
		facts.WaitsOpen = 1
	}
	facts.Signalled = f.signal
	if f.kind == deleted {
		facts.Session = nil
	}
	return engine.Dispatch(facts)
}
