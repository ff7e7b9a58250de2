package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// maxBackoff bounds the time between two messages that are sent again for a session that does not
// move. It is five minutes, which is five sweeps: at most that long after an outage the last
// session is sent for, and during the outage each session adds twelve messages an hour to the
// queue, each of which costs a claim when it is received.
const maxBackoff = 5 * time.Minute

// lookAt does what one item is due for, and counts it.
func (w *Sweep) lookAt(ctx context.Context, found store.Found, swept *Result) error {
	switch found.Item.Kind {
	case store.KindHead:
		if head := found.Item.Head; head != nil && !head.Gone(w.cfg.Now()) && head.Status == session.StatusRunning && leaseRecent(head.Lease, w.cfg.Now(), w.cfg.Lease) {
			return nil // as of most that are found: each running session is due all the while
		}
		return w.head(ctx, found.Key, swept)
	case store.KindWait:
		return w.wait(ctx, found, swept)
	case store.KindNotice:
		return w.notice(ctx, found.Key, found.Item.ID)
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

// head does what HEAD is due for: a running session may have lost its message, a suspended
// one that a caller has just resumed may have lost its resumption.
func (w *Sweep) head(ctx context.Context, key session.Key, swept *Result) error {
	// Read HEAD first: if the session moves after that, the stamp is refused. If HEAD were read
	// later, an ended session would get a due time that is never removed.
	head, err := w.cfg.Sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil {
		return err
	}
	if due := head.Head.Due; due == nil || !journal.Come(*due, w.cfg.Now(), journal.MaxAhead) {
		return nil // another process has just sent, or it is put off
	}
	switch {
	case head.Head.Deleted, head.Head.Removing: // who deleted it has not finished
		swept.Removed++
		return w.cfg.Sessions.Remove(ctx, key)
	case head.Head.Expired(w.cfg.Now()):
		swept.Removed++
		return w.cfg.Expire(ctx, key)
	}
	if head.Head.Overdue(w.cfg.Now()) {
		cancelled, err := w.cfg.Cancel(ctx, key, head.Head.Task)
		if cancelled {
			swept.Cancelled++
		}
		return err
	}
	switch head.Head.Status {
	case session.StatusRunning:
		sent, err := w.resend(ctx, head)
		if sent {
			swept.Resent++
		}
		return err
	case session.StatusSuspended:
		return w.resumeDue(ctx, head, swept)
	case session.StatusInterrupted, session.StatusCompleted, session.StatusFailed, session.StatusCancelled: // due when they expire
	}
	return nil
}

// resumeDue sends the resumption of a suspended session that waits for nothing any more. While a
// wait is open, HEAD need not be looked at again: the last answer sets a due time of its own.
func (w *Sweep) resumeDue(ctx context.Context, head store.Item, swept *Result) error {
	waits, err := w.cfg.Sessions.WaitStates(ctx, head.Head.Key, head.Head.WaitsAt)
	if err != nil {
		return err
	}
	if !stored.MayResume(waits) {
		later := *head.Head
		later.LookAt(nil)
		_, err := w.stampHead(ctx, later, head.Rev)
		return err
	}
	return w.sendResume(ctx, head, nil, swept)
}

// resumeAnswered does what an answered wait is due for. All answered waits of the
// suspension are looked after at once, for each of them would find the same: their
// due is taken away, and where the session waits for nothing any more HEAD is due in
// its place, so that of one session one message is sent however many answers it had.
func (w *Sweep) resumeAnswered(ctx context.Context, key session.Key, found store.Item, swept *Result) error {
	// HEAD is read first, and the message is for the entry after HEAD's: see
	// [stored.Sessions.CheckResume].
	head, err := w.cfg.Sessions.Item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil {
		return err
	}
	waits := []store.Item{found}
	if seq, _ := stored.WaitNumbers(found.ID); seq == head.Head.WaitsAt {
		if waits, err = w.cfg.Sessions.WaitsAt(ctx, key, seq); err != nil {
			return err
		}
	}
	undue := w.clearDue(waits)
	if len(undue) == 0 {
		return nil // the look at another of these waits has just done it
	}
	if stored.LeavingSeq(*head.Head) > 0 && stored.MayResume(stored.WaitRecords(waits)) {
		return w.sendResume(ctx, head, undue, swept)
	}
	// If nothing is to be sent, nothing is done until the next answer: the last answer sets a
	// due time of its own, and so does a caller who resumes the waits after an interruption.
	_, err = w.writeIfUnchanged(ctx, key, undue)
	return err
}

// clearDue returns the answered waits that are due without their due.
func (w *Sweep) clearDue(waits []store.Item) []store.Item {
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
func (w *Sweep) sendResume(ctx context.Context, head store.Item, items []store.Item, swept *Result) error {
	if halted, err := w.halted(ctx, *head.Head); err != nil || halted {
		return err
	}
	stamped := w.stampResend(*head.Head, head.Head.StatusSeq)
	moved, err := w.writeIfUnchanged(ctx, stamped.Key, append(items, store.HeadItem(stamped, head.Rev)))
	if err != nil || moved {
		return err
	}
	swept.Resumed++
	return w.cfg.Sessions.Send(ctx, journal.NewWake(stamped.Key, stored.LeavingSeq(stamped), journal.WakeResume))
}

// stampResend returns HEAD of a session whose newest entry is so and that is sent for now:
// it is due again after a time that doubles, unless it has moved since the last time.
func (w *Sweep) stampResend(head journal.Head, newest int64) journal.Head {
	if newest != head.ResentAfter {
		head.Resent, head.ResentAfter = 0, newest
	}
	head.Resent++
	head.LookAt(new(w.cfg.Now().Add(backoff(w.cfg.After, head.Resent)).UTC()))
	return head
}

// resend sends for a running session that has no live lease and no recent entry.
// A conditional stamp on HEAD with exponential back-off keeps a backlog from being
// multiplied; a session that has moved since the last time begins anew.
func (w *Sweep) resend(ctx context.Context, head store.Item) (bool, error) {
	now := w.cfg.Now()
	if leaseRecent(head.Head.Lease, now, w.cfg.Lease) {
		return false, nil
	}
	newest, err := w.cfg.Sessions.Newest(ctx, *head.Head)
	if err != nil || newest.Status != session.StatusRunning || head.Head.Lease.Live(now, newest.Seq, newest.KeepsLease) {
		return false, err
	}
	at, until := newest.At, newest.Until
	if head.Head.SignalFor(newest.Task) != nil {
		until = nil // carried out now, whatever the delay
	}
	if journal.PutOff(at, until, now) > 0 {
		return false, w.putOff(ctx, head, at, until)
	}
	if quiet := at; !stored.NoMessage(at, until) { // what sends for it has a moment
		if until != nil {
			quiet = *until
		}
		if !journal.Come(quiet.Add(w.cfg.After), now, w.cfg.After) {
			return false, nil
		}
	}
	if halted, err := w.halted(ctx, *head.Head); err != nil || halted {
		return false, err
	}
	stamped := w.stampResend(*head.Head, newest.Seq)
	if moved, err := w.stampHead(ctx, stamped, head.Rev); err != nil || moved {
		return false, err
	}
	return true, w.cfg.Sessions.Send(ctx, journal.NewWake(head.Head.Key, newest.Seq+1, journal.WakeStep))
}

// putOff makes a session whose retry has still to wait due when something should
// have happened, instead of in every sweep till then.
func (w *Sweep) putOff(ctx context.Context, head store.Item, at time.Time, until *time.Time) error {
	now := w.cfg.Now()
	due := w.cfg.Sessions.DueAfter(at, until, now)
	if due.Sub(now) <= w.cfg.After && !stored.NoMessage(at, until) {
		return nil // soon over
	}
	later := *head.Head
	later.LookAt(&due)
	_, err := w.stampHead(ctx, later, head.Rev)
	return err
}

// stampHead writes HEAD unless it has moved: by its session, or another sweep.
func (w *Sweep) stampHead(ctx context.Context, head journal.Head, rev int64) (moved bool, err error) {
	return w.writeIfUnchanged(ctx, head.Key, []store.Item{store.HeadItem(head, rev)})
}

// writeIfUnchanged writes items at once unless one has moved: by its session, or another sweep.
func (w *Sweep) writeIfUnchanged(ctx context.Context, key session.Key, items []store.Item) (moved bool, err error) {
	err = w.cfg.Sessions.Update(ctx, key, items)
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

// wait reminds of a wait, escalates it or lets it expire, when its time has come, or sends the resumption
// that an answer should have sent.
func (w *Sweep) wait(ctx context.Context, found store.Found, swept *Result) error {
	item, err := w.cfg.Sessions.Item(ctx, found.Key, store.KindWait, found.Item.ID)
	if err != nil || item.Wait == nil {
		return err
	}
	record, now := *item.Wait, w.cfg.Now()
	if record.Due == nil {
		return nil
	}
	switch record.State {
	case session.WaitOpen:
		// What is to be done follows from the deadline and the acts: a newer program may set an
		// earlier due time. The deadline itself may be any time ahead.
		did, _, err := w.cfg.Sessions.Pass(ctx, found.Key, item)
		switch {
		case errors.Is(err, store.ErrConflict): // an answer, an act or another sweep came first, and counts
			return nil
		case err != nil:
			return err
		}
		swept.count(did)
		return nil
	case session.WaitAnswered, session.WaitExpired:
		if !journal.Come(*record.Due, now, journal.MaxAhead) {
			return nil
		}
		return w.resumeAnswered(ctx, found.Key, item, swept)
	case session.WaitTaken, session.WaitClosed:
	}
	return nil
}

// Head does what HEAD of a session is due for.
func (w *Sweep) Head(ctx context.Context, key session.Key) error {
	return w.head(ctx, key, new(Result))
}
