package worker

import (
	"sync"
	"time"
)

// leaseEnd is what an invocation has asked for of its lease: its watcher and its
// tools renew it side by side, each for as long as it needs.
type leaseEnd struct {
	mu sync.Mutex
	// end is the latest time it was asked to last, longest the longest it was asked
	// to last from the time of asking.
	end     time.Time
	longest time.Duration
}

// renewed returns when a lease that is renewed now shall lapse, to last at least so
// long: renewing never shortens it. An end that lies further ahead than was ever
// asked for was written while this clock was ahead. Renewing must not carry it on:
// with its length reckoned from now it would count for as long as the clock was wrong.
func (l *leaseEnd) renewed(now time.Time, lasts time.Duration) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.Sub(now) > l.longest {
		l.end, l.longest = time.Time{}, 0
	}
	if end := now.Add(lasts); end.After(l.end) {
		l.end = end
	}
	l.longest = max(l.longest, lasts)
	return l.end
}

// claimed returns when a lease that is claimed now shall lapse, whatever was asked for before.
func (l *leaseEnd) claimed(now time.Time, lasts time.Duration) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.longest = now.Add(lasts), lasts
	return l.end
}
