package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Swept counts what a sweep did.
type Swept struct {
	// Resent wakes of running sessions without a sign of life.
	Resent int
	// Resumed suspended sessions whose resumption never came.
	Resumed int
	// Expired waits.
	Expired int
}

// maxBackoff bounds the time between two re-sends for one session.
const maxBackoff = time.Hour

// Sweep repairs what a crash left behind (design section 4.3): each hit of the due
// index is looked at again by a consistent read before anything is done. It may
// run anywhere, at any time, any number of times at once. Of no session more is read
// than its last entries, however long it is, and none takes more than its share of
// the time: those that want more are looked at again when all others have been.
func (r *Runtime) Sweep(ctx context.Context) (Swept, error) {
	var swept Swept
	var failed []error
	fail := func(found store.Found, err error) {
		r.cfg.Log.ErrorContext(ctx, "sweep", "session", found.Key.String(), "error", err)
		failed = append(failed, err)
	}
	var slow []store.Found
	cursor, before := "", r.cfg.Now()
	for {
		page, err := r.cfg.Store.Find(ctx, store.FindParams{Kind: store.FindDue, Before: before, Limit: 200, Cursor: cursor})
		if err != nil {
			return swept, AsError(err)
		}
		for _, found := range page.Found {
			// One session that cannot be read must not hide the others.
			late, err := r.sweepWithin(ctx, r.share(ctx, r.cfg.LookTimeout, 8), found, &swept)
			switch {
			case ctx.Err() != nil:
				return swept, errors.Join(append(failed, ctx.Err())...)
			case late:
				slow = append(slow, store.Found{Key: found.Key, Item: store.Item{Kind: found.Item.Kind, ID: found.Item.ID}})
			case err != nil:
				fail(found, err)
			}
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	for _, found := range slow {
		_, err := r.sweepWithin(ctx, r.share(ctx, 4*r.cfg.LookTimeout, 2), found, &swept)
		if err != nil {
			fail(found, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return swept, errors.Join(append(failed, ctx.Err())...)
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
func (r *Runtime) sweepWithin(ctx context.Context, share time.Duration, found store.Found, swept *Swept) (late bool, err error) {
	one, cancel := context.WithTimeoutCause(ctx, share, errNoAnswer)
	defer cancel()
	err = r.sweepOne(one, found, swept)
	return err != nil && one.Err() != nil, err
}

func (r *Runtime) sweepOne(ctx context.Context, found store.Found, swept *Swept) error {
	switch found.Item.Kind {
	case store.KindHead:
		if head := found.Item.Head; head != nil && signOfLife(head.Lease, r.cfg.Now(), r.cfg.Lease) {
			return nil // as of most that are found: each running session is due all the while
		}
		sent, err := r.resend(ctx, found.Key)
		if sent {
			swept.Resent++
		}
		return err
	case store.KindWait:
		return r.sweepWait(ctx, found, swept)
	case store.KindRun, store.KindTool, store.KindMail, store.KindAudit, store.KindIdempotency: // never due
	}
	return nil
}

// signOfLife reports whether a lease was taken so recently that its journal need
// not be read: closed or not, somebody was at work, and the next sweep looks
// again. One that lasts longer than most says nothing of the kind.
func signOfLife(lease session.Lease, now time.Time, lasts time.Duration) bool {
	return lease.Owner != "" && now.Before(lease.Until) && lease.Until.Sub(now) <= lasts
}

// resend sends for a running session that has no live lease and no recent entry.
// A conditional stamp on HEAD with exponential back-off keeps a backlog from being multiplied.
func (r *Runtime) resend(ctx context.Context, key session.Key) (bool, error) {
	// HEAD first: a session that moves after that refuses the stamp. With a newer
	// HEAD an ended session would get one, which nobody takes away.
	head, err := r.item(ctx, key, store.KindHead, "")
	if err != nil || head.Head == nil || head.Head.Deleted || head.Head.Status != session.StatusRunning {
		return false, err
	}
	now := r.cfg.Now()
	if signOfLife(head.Head.Lease, now, r.cfg.Lease) {
		return false, nil
	}
	if due := head.Head.Due; due != nil && now.Before(*due) && due.Sub(now) <= maxBackoff {
		return false, nil // somebody else has just sent, or it is put off
	}
	newest, err := r.newest(ctx, *head.Head)
	if err != nil || newest.Status != session.StatusRunning {
		return false, err
	}
	quiet := newest.At
	if newest.Until != nil {
		quiet = *newest.Until // put off: nothing is expected before
	}
	if head.Head.Lease.Live(now, newest.Seq, newest.GoesOn) {
		return false, nil
	}
	// A time far ahead was written by a clock that was wrong: it must not strand the session.
	if now.Sub(quiet) < r.cfg.SweepAfter && (newest.Until != nil || quiet.Sub(now) <= maxBackoff) {
		return false, r.putOff(ctx, head, newest.Until)
	}
	stamped := *head.Head
	stamped.Resent++
	stamped.Due = ptr(now.Add(backoff(r.cfg.SweepAfter, stamped.Resent)).UTC())
	if moved, err := r.stampHead(ctx, stamped, head.Rev); err != nil || moved {
		return false, err
	}
	return true, r.send(ctx, r.stepAfter(key, newest.Seq, newest.Until))
}

// putOff makes a session that does nothing until a time due after that, instead of
// in every sweep till then.
func (r *Runtime) putOff(ctx context.Context, head store.Item, until *time.Time) error {
	now := r.cfg.Now()
	if until == nil || until.Sub(now) <= r.cfg.SweepAfter || head.Head.Signal != nil {
		return nil // soon over; or somebody wants it to stop, which does not wait
	}
	later := *head.Head
	at := until.Add(r.cfg.SweepAfter)
	if last := now.Add(maxBackoff); at.After(last) {
		at = last
	}
	later.Due = ptr(at.UTC())
	_, err := r.stampHead(ctx, later, head.Rev)
	return err
}

// stampHead writes HEAD unless it has moved: by its session, or another sweep.
func (r *Runtime) stampHead(ctx context.Context, head session.Head, rev int64) (moved bool, err error) {
	_, err = r.cfg.Store.Update(ctx, head.Key, store.HeadItem(head, rev))
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
func (r *Runtime) sweepWait(ctx context.Context, found store.Found, swept *Swept) error {
	item, err := r.item(ctx, found.Key, store.KindWait, found.Item.ID)
	if err != nil || item.Wait == nil {
		return err
	}
	record, now := *item.Wait, r.cfg.Now()
	if record.Due == nil || now.Before(*record.Due) {
		return nil
	}
	switch record.State {
	case session.WaitOpen:
		if err := r.expire(ctx, found.Key, item); err != nil {
			if errors.Is(err, store.ErrConflict) {
				return nil // an answer came first, and counts
			}
			return err
		}
		swept.Expired++
		return nil
	case session.WaitAnswered, session.WaitExpired:
		on, err := r.onward(ctx, found.Key)
		if err != nil {
			return err
		}
		// Where nothing is to be sent there is nothing to do for as long as people
		// think: the last answer brings a due of its own.
		record.Due = nil
		if on.ready {
			record.Due = ptr(now.Add(r.cfg.SweepAfter).UTC())
		}
		if _, err := r.cfg.Store.Update(ctx, found.Key, store.WaitItem(record, item.Rev)); err != nil {
			if errors.Is(err, store.ErrConflict) {
				return nil
			}
			return err
		}
		if !on.ready {
			return nil
		}
		swept.Resumed++
		return r.send(ctx, session.NewWake(found.Key, on.next, session.WakeResume))
	case session.WaitTaken, session.WaitClosed:
	}
	return nil
}

// expire ends a wait at its deadline. It is recorded as an expiry, never as a
// person's answer; what it means was declared when the wait was opened. A
// conflict is an answer that came first, and counts.
func (r *Runtime) expire(ctx context.Context, key session.Key, item store.Item) error {
	record := *item.Wait
	if record.State != session.WaitOpen || record.Wait.Deadline == nil {
		return nil
	}
	w, now := record.Wait, r.cfg.Now().UTC()
	answer := session.Answer{
		Wait: w.ID, Kind: session.AnswerExpiry, ToolCallID: w.Call, Outcome: w.Deadline.Outcome,
		Who: "deadline", From: "sweep", When: now,
	}
	if w.Deadline.Outcome == session.ExpireDefault {
		answer.Result = w.Deadline.Value
	}
	if w.Question != nil {
		answer.QuestionID = w.Question.ID
	}
	record.State, record.Answer = session.WaitExpired, &answer
	record.Due = ptr(now.Add(engine.AnsweredGrace))
	if _, err := r.cfg.Store.Update(ctx, key, store.WaitItem(record, item.Rev)); err != nil {
		return err
	}
	return r.driveOn(ctx, key)
}
