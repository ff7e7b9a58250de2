package engine

import (
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Action says what to do about a message (docs/design/chain.md).
type Action string

// The actions.
const (
	// Acknowledge: there is nothing to do for this message.
	Acknowledge Action = "acknowledge"
	// Keep the message until the lease that is in the way ends.
	Keep Action = "keep"
	// ComeBack after a short grace: the first delivery may still be sending.
	ComeBack Action = "come_back"
	// SendNext: the first delivery died before sending: send n+1, acknowledge.
	SendNext Action = "send_next"
	// TooEarly: the retry this message asks for is put off until later.
	TooEarly Action = "too_early"
	// Resume: commit resumed and go on as a step in the same invocation.
	Resume Action = "resume"
	// Work: do the step, commit, send the next, acknowledge.
	Work Action = "work"
)

// Facts are what is known about a message when it is decided on. They are read
// after the message arrived.
type Facts struct {
	Now  time.Time
	Wake journal.Wake
	// Session is nil when there is none.
	Session *session.Session
	// Claimed says that the claim of Wake.Seq was granted to us.
	Claimed bool
	// Lease is the present lease if it was not.
	Lease journal.Lease
	// Signalled says that HEAD holds a signal for the session's task.
	Signalled bool
	// WaitsOpen counts the waits that are open by a consistent read; it is looked
	// at for resume messages to a suspended session only.
	WaitsOpen int
	// Grace is how long an entry counts as young.
	Grace time.Duration
}

// Dispatch reads the table in docs/design/chain.md, row by row. A Work or Resume
// without Claimed asks for a claim first.
func Dispatch(f Facts) Action {
	s := f.Session
	if s == nil || s.Version == 0 || s.Status.Ended() {
		return Acknowledge
	}
	n, k := s.Version, f.Wake.Seq
	if k > n+1 {
		return Acknowledge
	}
	resume := f.Wake.Kind == journal.WakeResume
	switch {
	case s.Status == session.StatusInterrupted:
		return Acknowledge // whatever the message: only the verb leaves it
	case !resume && s.Status == session.StatusSuspended:
		return Acknowledge
	}
	live := !f.Claimed && f.Lease.Live(f.Now, n, s.Newest.KeepsLease)
	if k <= n {
		return dispatchOld(f, live)
	}
	if resume && s.Status == session.StatusSuspended && f.WaitsOpen > 0 {
		return Acknowledge
	}
	if live {
		return Keep
	}
	switch {
	case resume && s.Status != session.StatusRunning:
		return Resume
	case !f.Signalled && journal.PutOff(s.Newest.At, s.Newest.Until, f.Now) > 0:
		return TooEarly // a signal is carried out now, whatever the delay
	}
	return Work
}

// dispatchOld is about a message whose entry exists already.
func dispatchOld(f Facts, live bool) Action {
	s := f.Session
	switch {
	case s.Status != session.StatusRunning:
		return Acknowledge
	case live:
		return Keep
	case !journal.AnswersWake(s.Newest.Attempt, f.Wake):
		return Acknowledge
	case !journal.Come(s.Newest.At.Add(f.Grace), f.Now, f.Grace) && !f.Lease.Dead():
		return ComeBack // its writer may still be sending, unless it is dead
	}
	return SendNext
}
