package runtime

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// SweepResult counts what a sweep did.
type SweepResult struct {
	// Resent messages of running sessions without a live lease and without a recent entry.
	Resent int
	// Resumed suspended sessions whose resumption never came.
	Resumed int
	// Expired waits.
	Expired int
}

// maxBackoff bounds the time between two messages that are sent again for a session that does not
// move. It is five minutes, which is five sweeps: at most that long after an outage the last
// session is sent for, and during the outage each session adds twelve messages an hour to the
// queue, each of which costs a claim when it is received.
const maxBackoff = 5 * time.Minute

// Sweep repairs the effects of a crash (docs/design/chain.md). It reads each hit of the due index
// again consistently before it acts. It may run anywhere, at any time, any number of times at
// once. Of a session it reads only the last entries, however long the session is, and it spends
// at most a share of the time on one: a session that needs more is looked at again after all
// others. SweepAtOnce of them are looked at in parallel.
func (r *Runtime) Sweep(ctx context.Context) (SweepResult, error) {
	s := sweepRun{r: r, done: make(chan any)}
	defer s.join()
	for found, err := range r.due(ctx, r.cfg.Now()) {
		if err != nil {
			s.join()
			return s.swept, AsError(err)
		}
		s.begin(ctx, found)
		if ctx.Err() != nil || s.panicked != nil {
			break
		}
	}
	s.join()
	for _, found := range s.slow {
		if ctx.Err() != nil {
			break
		}
		swept, _, err := r.sweepWithin(ctx, r.share(ctx, 4*r.cfg.LookTimeout, 2), found)
		s.swept.add(swept)
		if err != nil {
			s.fail(ctx, found, err)
		}
	}
	return s.swept, errors.Join(append(s.failed, ctx.Err())...)
}

// sweepRun is one sweep under way.
type sweepRun struct {
	r *Runtime
	// looking is how many items are being looked at; each ends with nil, or with
	// what it panicked with, on done. The first panic goes on when all have ended.
	looking  int
	done     chan any
	panicked any

	mu     sync.Mutex
	swept  SweepResult
	failed []error
	slow   []store.Found
}

// begin looks at an item beside the others, and returns when one more may begin.
func (s *sweepRun) begin(ctx context.Context, found store.Found) {
	go func() {
		defer func() { s.done <- recover() }()
		s.sweepItem(ctx, found)
	}()
	if s.looking++; s.looking == s.r.cfg.SweepAtOnce {
		s.end()
	}
}

// end waits for one of the looks under way.
func (s *sweepRun) end() {
	panicked := <-s.done
	s.looking--
	if s.panicked == nil {
		s.panicked = panicked
	}
}

// join waits for all of them.
func (s *sweepRun) join() {
	for s.looking > 0 {
		s.end()
	}
	if panicked := s.panicked; panicked != nil {
		s.panicked = nil
		panic(panicked)
	}
}

// sweepItem does what an item is due for, in its share of the time.
func (s *sweepRun) sweepItem(ctx context.Context, found store.Found) {
	swept, late, err := s.r.sweepWithin(ctx, s.r.share(ctx, s.r.cfg.LookTimeout, 8), found)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept.add(swept)
	switch { // one session that cannot be read must not hide the others
	case ctx.Err() != nil:
	case late:
		s.slow = append(s.slow, store.Found{Key: found.Key, Item: store.Item{Kind: found.Item.Kind, ID: found.Item.ID}})
	case err != nil:
		s.fail(ctx, found, err)
	}
}

func (s *sweepRun) fail(ctx context.Context, found store.Found, err error) {
	if errors.Is(err, journal.ErrNeeds) { // nothing is wrong: a newer program takes care of it
		s.r.cfg.Log.WarnContext(ctx, "sweep leaves it", "session", found.Key.String(), "error", err)
		return
	}
	s.r.cfg.Log.ErrorContext(ctx, "sweep", "session", found.Key.String(), "error", err)
	s.failed = append(s.failed, err)
}

func (s *SweepResult) add(more SweepResult) {
	s.Resent += more.Resent
	s.Resumed += more.Resumed
	s.Expired += more.Expired
}

// due yields what is due by a time, and then what is due so far ahead of now that it
// counts as due ([journal.Come]).
func (r *Runtime) due(ctx context.Context, by time.Time) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for _, p := range []store.FindParams{
			{Kind: store.FindDue, Before: by, Limit: 200},
			{Kind: store.FindAhead, After: r.cfg.Now().Add(journal.MaxAhead + journal.Skew), Limit: 200},
		} {
			for more := true; more; more = p.Cursor != "" {
				page, err := r.cfg.Store.Find(ctx, p)
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
func (r *Runtime) share(ctx context.Context, most time.Duration, part int64) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	left := deadline.Sub(r.cfg.Now()) / time.Duration(part)
	return max(min(most, left), r.cfg.LookTimeout/10)
}

// sweepWithin reports whether it failed because its time was over.
func (r *Runtime) sweepWithin(ctx context.Context, share time.Duration, found store.Found) (swept SweepResult, late bool, err error) {
	one, cancel := context.WithTimeoutCause(ctx, share, stored.ErrNoAnswer)
	defer cancel()
	err = r.sweepOne(one, found, &swept)
	return swept, err != nil && one.Err() != nil, err
}

func (r *Runtime) sweepOne(ctx context.Context, found store.Found, swept *SweepResult) error {
	switch found.Item.Kind {
	case store.KindHead:
		if head := found.Item.Head; head != nil && head.Status == session.StatusRunning && leaseRecent(head.Lease, r.cfg.Now(), r.cfg.Lease) {
			return nil // as of most that are found: each running session is due all the while
		}
		return r.sweepHead(ctx, found.Key, swept)
	case store.KindWait:
		return r.sweepWait(ctx, found, swept)
	case store.KindRun, store.KindTool, store.KindMail, store.KindAudit, store.KindIdempotency, store.KindTenantRecord: // never due
	}
	return nil
}

// leaseRecent reports whether a lease was taken so recently that the journal need not be read:
// whether or not the lease is closed, a worker was active, and the next sweep looks again. This
// does not apply to a lease that lasts longer than usual.
func leaseRecent(lease journal.Lease, now time.Time, lasts time.Duration) bool {
	return !lease.Lapsed(now) && lease.Until.Sub(now) <= lasts
}

// sweepHead does what HEAD is due for: a running session may have lost its message, a suspended
// one that a caller has just resumed may have lost its resumption.
func (r *Runtime) sweepHead(ctx context.Context, key session.Key, swept *SweepResult) error {
	// Read HEAD first: if the session moves after that, the stamp is refused. If HEAD were read
	// later, an ended session would get a due time that is never removed.
	head, err := r.sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil || head.Head.Deleted {
		return err
	}
	if due := head.Head.Due; due == nil || !journal.Come(*due, r.cfg.Now(), journal.MaxAhead) {
		return nil // another process has just sent, or it is put off
	}
	switch head.Head.Status {
	case session.StatusRunning:
		sent, err := r.resend(ctx, head)
		if sent {
			swept.Resent++
		}
		return err
	case session.StatusSuspended:
		return r.resumeDue(ctx, head, swept)
	case session.StatusInterrupted, session.StatusCompleted, session.StatusFailed, session.StatusCancelled: // never due
	}
	return nil
}

// resumeDue sends the resumption of a suspended session that waits for nothing any more. While a
// wait is open, HEAD need not be looked at again: the last answer sets a due time of its own.
func (r *Runtime) resumeDue(ctx context.Context, head store.Item, swept *SweepResult) error {
	waits, err := r.sessions.WaitStates(ctx, head.Head.Key, head.Head.WaitsAt)
	if err != nil {
		return err
	}
	if !stored.MayResume(waits) {
		later := *head.Head
		later.Due = nil
		_, err := r.stampHead(ctx, later, head.Rev)
		return err
	}
	return r.sendResume(ctx, head, nil, swept)
}

// resumeAnswered does what an answered wait is due for. All answered waits of the
// suspension are looked after at once, for each of them would find the same: their
// due is taken away, and where the session waits for nothing any more HEAD is due in
// its place, so that of one session one message is sent however many answers it had.
func (r *Runtime) resumeAnswered(ctx context.Context, key session.Key, found store.Item, swept *SweepResult) error {
	// HEAD is read first, and the message is for the entry after HEAD's: see [stored.Sessions.CheckResume].
	head, err := r.sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil {
		return err
	}
	waits := []store.Item{found}
	if seq, _ := stored.WaitNumbers(found.ID); seq == head.Head.WaitsAt {
		if waits, err = r.sessions.WaitsAt(ctx, key, seq); err != nil {
			return err
		}
	}
	undue := r.clearDue(waits)
	if len(undue) == 0 {
		return nil // the look at another of these waits has just done it
	}
	if stored.LeavingSeq(*head.Head) > 0 && stored.MayResume(stored.WaitRecords(waits)) {
		return r.sendResume(ctx, head, undue, swept)
	}
	// If nothing is to be sent, nothing is done until the next answer: the last answer sets a
	// due time of its own, and so does a caller who resumes the waits after an interruption.
	_, err = r.writeIfUnchanged(ctx, key, undue)
	return err
}

// clearDue returns the answered waits that are due without their due.
func (r *Runtime) clearDue(waits []store.Item) []store.Item {
	var items []store.Item
	for _, item := range waits {
		record := *item.Wait
		if record.Due != nil && (record.State == session.WaitAnswered || record.State == session.WaitExpired) {
			record.Due = nil
			items = append(items, store.WaitItem(record, item.Rev))
		}
	}
	return items
}

// sendResume sends the resumption of a session that waits for nothing any more, and
// makes HEAD due for the next time, in one write with items of its waits.
func (r *Runtime) sendResume(ctx context.Context, head store.Item, items []store.Item, swept *SweepResult) error {
	stamped := r.stampResend(*head.Head, head.Head.StatusSeq)
	moved, err := r.writeIfUnchanged(ctx, stamped.Key, append(items, store.HeadItem(stamped, head.Rev)))
	if err != nil || moved {
		return err
	}
	swept.Resumed++
	return r.sessions.Send(ctx, journal.NewWake(stamped.Key, stored.LeavingSeq(stamped), journal.WakeResume))
}

// stampResend returns HEAD of a session whose newest entry is so and that is sent for now:
// it is due again after a time that doubles, unless it has moved since the last time.
func (r *Runtime) stampResend(head journal.Head, newest int64) journal.Head {
	if newest != head.ResentAfter {
		head.Resent, head.ResentAfter = 0, newest
	}
	head.Resent++
	head.Due = new(r.cfg.Now().Add(backoff(r.cfg.SweepAfter, head.Resent)).UTC())
	return head
}

// resend sends for a running session that has no live lease and no recent entry.
// A conditional stamp on HEAD with exponential back-off keeps a backlog from being
// multiplied; a session that has moved since the last time begins anew.
func (r *Runtime) resend(ctx context.Context, head store.Item) (bool, error) {
	now := r.cfg.Now()
	if leaseRecent(head.Head.Lease, now, r.cfg.Lease) {
		return false, nil
	}
	newest, err := r.sessions.Newest(ctx, *head.Head)
	if err != nil || newest.Status != session.StatusRunning || head.Head.Lease.Live(now, newest.Seq, newest.KeepsLease) {
		return false, err
	}
	at, until := newest.At, newest.Until
	if signal := head.Head.Signal; signal != nil && signal.Task == newest.Task {
		until = nil // carried out now, whatever the delay
	}
	if journal.PutOff(at, until, now) > 0 {
		return false, r.putOff(ctx, head, at, until)
	}
	if quiet := at; !stored.NoMessage(at, until) { // what sends for it has a moment
		if until != nil {
			quiet = *until
		}
		if !journal.Come(quiet.Add(r.cfg.SweepAfter), now, r.cfg.SweepAfter) {
			return false, nil
		}
	}
	stamped := r.stampResend(*head.Head, newest.Seq)
	if moved, err := r.stampHead(ctx, stamped, head.Rev); err != nil || moved {
		return false, err
	}
	return true, r.sessions.Send(ctx, journal.NewWake(head.Head.Key, newest.Seq+1, journal.WakeStep))
}

// putOff makes a session whose retry has still to wait due when something should
// have happened, instead of in every sweep till then.
func (r *Runtime) putOff(ctx context.Context, head store.Item, at time.Time, until *time.Time) error {
	now := r.cfg.Now()
	due := r.sessions.DueAfter(at, until, now)
	if due.Sub(now) <= r.cfg.SweepAfter && !stored.NoMessage(at, until) {
		return nil // soon over
	}
	later := *head.Head
	later.Due = &due
	_, err := r.stampHead(ctx, later, head.Rev)
	return err
}

// stampHead writes HEAD unless it has moved: by its session, or another sweep.
func (r *Runtime) stampHead(ctx context.Context, head journal.Head, rev int64) (moved bool, err error) {
	return r.writeIfUnchanged(ctx, head.Key, []store.Item{store.HeadItem(head, rev)})
}

// writeIfUnchanged writes items at once unless one has moved: by its session, or another sweep.
func (r *Runtime) writeIfUnchanged(ctx context.Context, key session.Key, items []store.Item) (moved bool, err error) {
	err = r.sessions.Update(ctx, key, items)
	if errors.Is(err, store.ErrConflict) {
		return true, nil
	}
	return false, err
}

func backoff(base time.Duration, tries int) time.Duration {
	d := base
	for range min(tries, 12) {
		d *= 2
	}
	return min(d, maxBackoff)
}

// sweepWait expires a wait whose deadline has passed, or sends the resumption
// that an answer should have sent.
func (r *Runtime) sweepWait(ctx context.Context, found store.Found, swept *SweepResult) error {
	item, err := r.sessions.Item(ctx, found.Key, store.KindWait, found.Item.ID)
	if err != nil || item.Wait == nil {
		return err
	}
	record, now := *item.Wait, r.cfg.Now()
	if record.Due == nil {
		return nil
	}
	switch record.State {
	case session.WaitOpen:
		// Only its deadline expires a wait: a newer program may set an earlier due time, for
		// example for a reminder. The deadline itself may be any time ahead.
		if d := record.Wait.Deadline; d == nil || now.Before(d.At) {
			return nil
		}
		if err := r.sessions.Expire(ctx, found.Key, item); err != nil {
			if errors.Is(err, store.ErrConflict) {
				return nil // an answer came first, and counts
			}
			return err
		}
		swept.Expired++
		return nil
	case session.WaitAnswered, session.WaitExpired:
		if !journal.Come(*record.Due, now, journal.MaxAhead) {
			return nil
		}
		return r.resumeAnswered(ctx, found.Key, item, swept)
	case session.WaitTaken, session.WaitClosed:
	}
	return nil
}
