// Package sweep repairs the effects of a crash.
//
// It finds what is due (sweep.go), and does what each item is due for (item.go): it sends again what
// was lost, and expires waits (docs/design/chain.md).
package sweep

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Config is what a sweep needs; all of it is required.
type Config struct {
	Sessions *stored.Sessions
	// Halts say for which sessions nothing is sent.
	Halts *halts.Halts
	Store store.Store
	Now   func() time.Time
	// Lease is how long a claim lasts.
	Lease time.Duration
	// After is how long a running session may have no recent entry and no live lease.
	After time.Duration
	// LookTimeout bounds the time at one item.
	LookTimeout time.Duration
	// AtOnce is how many items are looked at side by side.
	AtOnce int
	// Expire deletes a session that has ended for longer than it is kept.
	Expire func(context.Context, session.Key) error
	// Cancel cancels a task that has taken longer than it may, and says whether it was there to be.
	Cancel func(ctx context.Context, key session.Key, task int64) (bool, error)
	Log    *slog.Logger
}

// Sweep finds and repairs what a crash has left. Its methods are safe for concurrent use.
type Sweep struct{ cfg Config }

// New returns a sweep of these sessions.
func New(cfg Config) *Sweep { return &Sweep{cfg: cfg} }

// FindError says that what is due could not be read: what comes after was not looked at.
type FindError struct{ Cause error }

// Error returns the message of the cause.
func (e *FindError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *FindError) Unwrap() error { return e.Cause }

// Result counts what a sweep did.
type Result struct {
	// Resent messages of running sessions without a live lease and without a recent entry.
	Resent int
	// Resumed suspended sessions whose resumption never came.
	Resumed int
	// Expired waits, Escalated ones, and Reminded ones.
	Expired, Escalated, Reminded int
	// Cancelled tasks, whose time was over.
	Cancelled int
	// Removed sessions: whose time was over, or which were deleted by who could not finish it.
	Removed int
}

// Sweep repairs the effects of a crash (docs/design/chain.md). It reads each hit of the due index
// again consistently before it acts. It may run anywhere, at any time, any number of times at
// once. Of a session it reads only the last entries, however long the session is, and it spends
// at most a share of the time on one: a session that needs more is looked at again after all
// others. Notices come when all sessions have been looked at: however many are due, or however slow
// what sends them is, no session waits for that. SweepAtOnce of them are looked at in parallel.
func (w *Sweep) Sweep(ctx context.Context) (Result, error) {
	s := run{of: w, done: make(chan any)}
	defer s.join()
	for found, err := range w.due(ctx, w.cfg.Now()) {
		if err != nil {
			s.join()
			return s.swept, &FindError{Cause: err}
		}
		if found.Item.Kind == store.KindNotice {
			s.notices = append(s.notices, unread(found))
			continue
		}
		s.begin(ctx, found)
		if ctx.Err() != nil || s.panicked != nil {
			break
		}
	}
	s.join()
	for _, found := range s.notices {
		if ctx.Err() != nil || s.panicked != nil {
			break
		}
		s.begin(ctx, found)
	}
	s.join()
	for _, found := range s.slow {
		if ctx.Err() != nil {
			break
		}
		swept, _, err := w.within(ctx, w.share(ctx, 4*w.cfg.LookTimeout, 2), found)
		s.swept.add(swept)
		if err != nil {
			s.fail(ctx, found, err)
		}
	}
	return s.swept, errors.Join(append(s.failed, ctx.Err())...)
}

// run is one sweep under way.
type run struct {
	of *Sweep
	// looking is how many items are being looked at; each ends with nil, or with
	// what it panicked with, on done. The first panic goes on when all have ended.
	looking  int
	done     chan any
	panicked any

	mu     sync.Mutex
	swept  Result
	failed []error
	slow   []store.Found
	// notices that are due.
	notices []store.Found
}

// unread is what was found without its record.
func unread(found store.Found) store.Found {
	return store.Found{Key: found.Key, Item: store.Item{Kind: found.Item.Kind, ID: found.Item.ID}}
}

// begin looks at an item beside the others, and returns when one more may begin.
func (s *run) begin(ctx context.Context, found store.Found) {
	go func() {
		defer func() { s.done <- recover() }()
		s.item(ctx, found)
	}()
	if s.looking++; s.looking == s.of.cfg.AtOnce {
		s.end()
	}
}

// end waits for one of the looks under way.
func (s *run) end() {
	panicked := <-s.done
	s.looking--
	if s.panicked == nil {
		s.panicked = panicked
	}
}

// join waits for all of them.
func (s *run) join() {
	for s.looking > 0 {
		s.end()
	}
	if panicked := s.panicked; panicked != nil {
		s.panicked = nil
		panic(panicked)
	}
}

// item does what an item is due for, in its share of the time.
func (s *run) item(ctx context.Context, found store.Found) {
	swept, late, err := s.of.within(ctx, s.of.share(ctx, s.of.cfg.LookTimeout, 8), found)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept.add(swept)
	switch { // one session that cannot be read must not hide the others
	case ctx.Err() != nil:
	case late:
		s.slow = append(s.slow, unread(found))
	case err != nil:
		s.fail(ctx, found, err)
	}
}

func (s *run) fail(ctx context.Context, found store.Found, err error) {
	if errors.Is(err, journal.ErrNeeds) { // nothing is wrong: a newer program takes care of it
		s.of.cfg.Log.WarnContext(ctx, "sweep leaves it", "session", found.Key.String(), "error", err)
		return
	}
	s.of.cfg.Log.ErrorContext(ctx, "sweep", "session", found.Key.String(), "error", err)
	s.failed = append(s.failed, err)
}

// count adds what was done to a wait.
func (s *Result) count(did session.AuditKind) {
	if did == session.AuditExpired {
		s.Expired++
	}
	if did == session.AuditEscalated {
		s.Escalated++
	}
	if did == session.AuditReminded {
		s.Reminded++
	}
}

func (s *Result) add(more Result) {
	s.Resent += more.Resent
	s.Resumed += more.Resumed
	s.Expired += more.Expired
	s.Escalated += more.Escalated
	s.Reminded += more.Reminded
	s.Cancelled += more.Cancelled
	s.Removed += more.Removed
}

// due yields what is due by a time, and then what is due so far ahead of now that it
// counts as due ([journal.Come]).
func (w *Sweep) due(ctx context.Context, by time.Time) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for _, p := range []store.FindParams{
			{Kind: store.FindDue, Before: by, Limit: 200},
			{Kind: store.FindAhead, After: w.cfg.Now().Add(journal.MaxAhead + journal.Skew), Limit: 200},
		} {
			for more := true; more; more = p.Cursor != "" {
				page, err := w.cfg.Store.Find(ctx, p)
				if err != nil {
					yield(store.Found{}, err)
					return
				}
				for _, found := range page.Found {
					if !yield(found, nil) {
						return
					}
				}
				p.Cursor = page.Cursor
			}
		}
	}
}

// share is how long the sweep may be at one item: at most a part of the time it
// has left itself, so that there is time for the rest, however many items the
// store is silent about. A clock that is wrong must not leave it none.
func (w *Sweep) share(ctx context.Context, most time.Duration, part int64) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	left := deadline.Sub(w.cfg.Now()) / time.Duration(part)
	return max(min(most, left), w.cfg.LookTimeout/10)
}

// within does what an item is due for in a limited time. late says that it failed because the time
// was over.
func (w *Sweep) within(ctx context.Context, share time.Duration, found store.Found) (swept Result, late bool, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, share, stored.ErrNoAnswer)
	defer cancel()
	err = w.lookAt(limited, found, &swept)
	return swept, err != nil && limited.Err() != nil, err
}
