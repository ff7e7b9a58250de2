package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/queue"
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
// run anywhere, at any time, any number of times at once.
func (r *Runtime) Sweep(ctx context.Context) (Swept, error) {
	var swept Swept
	var failed []error
	cursor, before := "", r.cfg.Now()
	for {
		page, err := r.cfg.Store.Find(ctx, store.FindParams{Kind: store.FindDue, Before: before, Limit: 200, Cursor: cursor})
		if err != nil {
			return swept, AsError(err)
		}
		for _, found := range page.Found {
			// One session that cannot be read must not hide the others.
			if err := r.sweepOne(ctx, found, &swept); err != nil {
				r.cfg.Log.ErrorContext(ctx, "sweep", "session", found.Key.String(), "error", err)
				failed = append(failed, err)
			}
			if ctx.Err() != nil {
				return swept, ctx.Err()
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return swept, errors.Join(failed...)
		}
	}
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
	if err != nil || head.Head == nil {
		return false, err
	}
	now := r.cfg.Now()
	if signOfLife(head.Head.Lease, now, r.cfg.Lease) {
		return false, nil
	}
	s, err := r.load(ctx, key)
	if err != nil || s == nil {
		return false, err
	}
	defer r.keep(s)
	if s.Status != session.StatusRunning {
		return false, nil
	}
	if due := head.Head.Due; due != nil && now.Before(*due) && due.Sub(now) <= maxBackoff {
		return false, nil // somebody else has just sent
	}
	quiet := s.Newest.At
	if s.Newest.Until != nil {
		quiet = *s.Newest.Until // put off: nothing is expected before
	}
	// A time far ahead was written by a clock that was wrong: it must not strand the session.
	recent := now.Sub(quiet) < r.cfg.SweepAfter && (s.Newest.Until != nil || quiet.Sub(now) <= maxBackoff)
	if recent || head.Head.Lease.Live(now, s.Version, s.Newest.GoesOn) {
		return false, nil
	}
	stamped := *head.Head
	stamped.Resent++
	stamped.Due = ptr(now.Add(backoff(r.cfg.SweepAfter, stamped.Resent)).UTC())
	if _, err := r.cfg.Store.Update(ctx, key, store.HeadItem(stamped, head.Rev)); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return false, nil // it moved, or another sweep was first
		}
		return false, err
	}
	return true, r.send(ctx, r.wakeAfter(s))
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
		waits, err := r.waits(ctx, found.Key)
		if err != nil {
			return err
		}
		// While another is open there is nothing to do, for as long as a person
		// thinks: the last answer brings a due of its own.
		record.Due = nil
		if countOpen(waits) == 0 {
			record.Due = ptr(now.Add(r.cfg.SweepAfter).UTC())
		}
		if _, err := r.cfg.Store.Update(ctx, found.Key, store.WaitItem(record, item.Rev)); err != nil {
			if errors.Is(err, store.ErrConflict) {
				return nil
			}
			return err
		}
		resumed, err := r.driveOn(ctx, found.Key)
		if resumed {
			swept.Resumed++
		}
		return err
	case session.WaitTaken, session.WaitClosed:
	}
	return nil
}

// driveOn sends the resume of a suspended session that waits for nothing any
// more, unless an answer was only to be stored.
func (r *Runtime) driveOn(ctx context.Context, key session.Key) (bool, error) {
	s, err := r.load(ctx, key)
	if err != nil || s == nil {
		return false, err
	}
	defer func() { r.keep(s) }()
	if ready, err := r.ready(ctx, s); err != nil || !ready {
		return false, err
	}
	return true, r.sendResume(ctx, s)
}

// ready reports whether a session is suspended, waits for nothing any more and
// was not told to stay so.
func (r *Runtime) ready(ctx context.Context, s *session.Session) (bool, error) {
	if s.Status != session.StatusSuspended {
		return false, nil
	}
	waits, err := r.waits(ctx, s.Key)
	if err != nil || countOpen(waits) > 0 {
		return false, err
	}
	return !held(waits), nil
}

// Unresumed returns the sessions that are suspended though every answer is in:
// whoever gave the last one is about to send for what follows, or died before.
// The sweep finds them too, once it is sure that nobody else will.
func (r *Runtime) Unresumed(ctx context.Context) ([]session.Key, error) {
	var keys []session.Key
	seen := map[session.Key]bool{}
	before := r.cfg.Now().Add(max(engine.AnsweredGrace, r.cfg.SweepAfter))
	for cursor := ""; ; {
		page, err := r.cfg.Store.Find(ctx, store.FindParams{Kind: store.FindDue, Before: before, Limit: 200, Cursor: cursor})
		if err != nil {
			return nil, AsError(err)
		}
		for _, found := range page.Found {
			w := found.Item.Wait
			if w == nil || w.State != session.WaitAnswered && w.State != session.WaitExpired || seen[found.Key] {
				continue
			}
			seen[found.Key] = true
			s, err := r.load(ctx, found.Key)
			if err != nil {
				return nil, AsError(err)
			}
			if s == nil {
				continue // deleted since
			}
			ready, err := r.ready(ctx, s)
			r.keep(s)
			if err != nil {
				return nil, AsError(err)
			}
			if ready {
				keys = append(keys, found.Key)
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return keys, nil
		}
	}
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
	_, err := r.driveOn(ctx, key)
	return err
}

// deadLetterDelay is how long the consumer of the dead letters waits before a
// step is tried afresh.
const deadLetterDelay = 30 * time.Second

// DeadLetter decides about a message that was received too often (design
// section 4.4). Neither an hour of a bad deployment nor a hiding duplicate may
// fail a healthy session: what counts is how many claims of the step died.
func (r *Runtime) DeadLetter(ctx context.Context, wake session.Wake) (Disposition, error) {
	key := wake.Key()
	s, err := r.load(ctx, key)
	if err != nil || s == nil {
		return Disposition{}, err
	}
	defer func() { r.keep(s) }()
	if s.Status != session.StatusRunning || wake.Seq <= s.Version {
		if s.Status != session.StatusSuspended || wake.Kind != session.WakeResume || wake.Seq <= s.Version {
			return Disposition{}, nil
		}
		return Disposition{}, r.resumeAfresh(ctx, s)
	}
	head, err := r.head(ctx, key)
	if err != nil {
		return Disposition{}, err
	}
	lease := head.Head.Lease
	if lease.Live(r.cfg.Now(), s.Version, s.Newest.GoesOn) {
		return Disposition{Keep: max(lease.Until.Sub(r.cfg.Now()), soonest)}, nil
	}
	// A claim that was given back did not die: a program without the agent gives
	// every one of them back, however long it is deployed.
	if lease.Seq != s.Next() || lease.N < r.cfg.MaxClaims || lease.Owner == "" {
		again := r.wakeAfter(s)
		again.Delay = max(again.Delay, deadLetterDelay)
		return Disposition{}, r.send(ctx, again)
	}
	return Disposition{}, r.giveUpTask(ctx, s, head)
}

// resumeAfresh sends once more for a resumption that did not get through, if
// nothing is open. That answers were only to be stored does not count: there was
// a message, so somebody has said go on.
func (r *Runtime) resumeAfresh(ctx context.Context, s *session.Session) error {
	waits, err := r.waits(ctx, s.Key)
	if err != nil || countOpen(waits) > 0 {
		return err
	}
	again := session.NewWake(s.Key, s.Next(), session.WakeResume)
	again.Delay = deadLetterDelay
	return r.send(ctx, again)
}

// giveUpTask fails a task whose step died again and again, with a reason a user can read.
func (r *Runtime) giveUpTask(ctx context.Context, s *session.Session, head store.Item) error {
	inv := r.invoke(session.NewWake(s.Key, 0, session.WakeStep))
	inv.session, inv.head = s, head
	var out engine.StepOutcome
	if err := inv.giveUpAll(ctx, &out); err != nil {
		return err
	}
	out.Failure = &session.Failure{
		Type: "step_died", Retryable: true,
		Message: "The worker died at this step again and again, so it was given up. Look at the program's logs for what ends it (memory, a crash in native code, a timeout).",
	}
	m := engine.Close(s, out, inv.stamp(false))
	err := inv.commit(ctx, m)
	if errors.Is(err, errLost) || errors.Is(err, errHeadMoved) {
		return nil // it lives after all
	}
	return err
}

// BuryDeadLetters works on what is in the dead letters' queue until it is empty.
// One that cannot be worked on is left for later and does not hide the others.
func (r *Runtime) BuryDeadLetters(ctx context.Context) error {
	var failed []error
	for {
		deliveries, err := r.cfg.DeadLetters.Receive(ctx, queue.ReceiveParams{Max: 10, Visibility: time.Minute})
		if err != nil || len(deliveries) == 0 {
			return errors.Join(append(failed, err)...)
		}
		for _, d := range deliveries {
			disposition, err := r.DeadLetter(ctx, d.Wake)
			switch {
			case err != nil:
				failed = append(failed, err)
				continue
			case disposition.Keep > 0:
				err = r.cfg.DeadLetters.Postpone(ctx, d, disposition.Keep)
			default:
				err = r.cfg.DeadLetters.Acknowledge(ctx, d)
			}
			if err != nil {
				return err
			}
		}
	}
}
