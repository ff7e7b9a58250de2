package journal

import (
	"time"
)

// Nothing is correct only because two clocks agree (docs/design/chain.md). A process that writes
// a future time uses its own clock: the end of a lease, when a retry may begin, when the sweep is
// to look, when a message is visible again. A process that reads the time compares it with
// another clock, or with the same one after it was set back. So each such time is written with a
// bound, a longest time ahead of its writer's clock, and counts as now if it is further ahead
// than that ([Come]).
//
//	a lease                                    as long as it was asked for ([Lease.For])
//	a retry                                    as long as its entry puts it off, MaxDelay at most
//	Due of HEAD and of waits that are answered MaxAhead
//	a message's delay and visibility           MaxAhead
//	whether an entry is young                  the grace it is given
//
// The deadline of an open wait has no bound: a person chooses it. Neither has the end of an
// idempotency record: if it is kept too long it refuses requests that are not sent any more, if
// it is removed too soon a request may act twice.
const (
	// MaxAhead is how far ahead of its writer's clock a message may be delayed and
	// what the sweep is to look at may be due: what is to happen later is looked at
	// on the way. It is what SQS delays at most.
	MaxAhead = 15 * time.Minute
	// MaxDelay is how long a retry may be put off.
	MaxDelay = 7 * 24 * time.Hour
	// Skew is how far two clocks may differ that are both kept right.
	Skew = time.Minute
)

// Come reports whether a time has come that was written as at most longest ahead.
// Further ahead than that, and than two right clocks differ, it counts as now: the
// clock that wrote it was ahead, or this one was set back.
func Come(at, now time.Time, longest time.Duration) bool {
	return !now.Before(at) || at.Sub(now)-Skew > longest
}

// PutOff reports how long the retry that an entry puts off has still to wait; 0
// when its time has come, or until is nil. at is when the entry was written.
func PutOff(at time.Time, until *time.Time, now time.Time) time.Duration {
	if until == nil || Come(*until, now, until.Sub(at)) {
		return 0
	}
	return until.Sub(now)
}
