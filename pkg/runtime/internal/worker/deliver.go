package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Disposition says what to do with a message that was delivered.
type Disposition struct {
	// Keep the message and look again after this time; 0 means acknowledge it.
	Keep time.Duration
	// Lease is how long leases last, if the message is kept because another worker has the
	// session; 0 if it is kept for another reason.
	Lease time.Duration
}

// KeepAfter is how long to keep a message that has been received so many times, this one
// included; 0 means acknowledge it. While another worker has the session, a returning message
// waits the length of a lease, then twice as long each time: a queue allows a message few
// receives, and during a long step a message that came back at each renewal of the lease would be
// a dead letter in minutes. If that worker dies meanwhile, the sweep sends for the session.
func (d Disposition) KeepAfter(receives int) time.Duration {
	if d.Lease == 0 || receives < 2 {
		return d.Keep
	}
	wait := d.Lease
	for range min(receives-2, 16) {
		wait *= 2
	}
	return max(d.Keep, min(wait, journal.MaxAhead))
}

// minKeep is the shortest time a message is kept, so that no worker polls without pause.
const minKeep = 20 * time.Millisecond

// ErrOutOfTime is the cause with which a worker's context ends when the worker is about to be
// ended by force. A step that is cut off by it keeps its lease until the lease lapses and so
// counts among the claims that died: a step that never fits into its worker's time fails in the
// end and is not tried for ever.
var ErrOutOfTime = fmt.Errorf("the worker's time is over: %w", context.DeadlineExceeded)

// Deliver works on one message: it decides by the table in docs/design/chain.md,
// does the step if there is one to do, commits, sends what follows. An error
// means that the message must be delivered again; nothing was half-written. The
// end of ctx cuts a step off, and the lease is given back, unless its cause is
// [ErrOutOfTime].
func (w *Worker) Deliver(ctx context.Context, wake journal.Wake) (Disposition, error) {
	if err := readable(wake); err != nil {
		return Disposition{}, err
	}
	if err := wake.Key().Validate(); err != nil {
		return Disposition{}, nil //nolint:nilerr // a message that points nowhere: there is nothing to work on, now or later
	}
	inv := w.invoke(wake)
	defer func() { w.sessions.PutBack(inv.session) }()
	decided := false
	defer func() {
		// This also holds for a panic: no work was begun, so no worker need wait for the lease.
		// But a step that is cut off at each try has to count.
		if !decided && !errors.Is(context.Cause(ctx), ErrOutOfTime) {
			inv.release(context.WithoutCancel(ctx))
		}
	}()
	action, err := inv.decide(ctx)
	if err != nil {
		return Disposition{}, err
	}
	decided = true
	switch action {
	case engine.Work:
		return inv.work(ctx)
	case engine.Resume:
		return inv.resume(ctx)
	case engine.SendNext:
		inv.release(ctx)
		return Disposition{}, w.sessions.Send(ctx, w.sessions.WakeAfter(inv.session))
	case engine.ComeBack:
		inv.release(ctx)
		return Disposition{Keep: max(inv.session.Newest.At.Add(w.cfg.Grace).Sub(w.cfg.Now()), minKeep)}, nil
	case engine.Keep:
		return inv.keepForLease(), nil
	case engine.TooEarly:
		inv.release(ctx)
		n := inv.session.Newest
		left := journal.PutOff(n.At, n.Until, w.cfg.Now())
		if left > journal.MaxAhead {
			return Disposition{}, nil // HEAD is due then, and the sweep sends
		}
		return Disposition{Keep: max(left, minKeep)}, nil
	case engine.Acknowledge:
		inv.release(ctx)
	}
	return Disposition{}, nil
}

// keepForLease keeps a message until the lease of the session's worker ends. If that lease has
// ended since the claim was refused, the message is not delayed.
func (inv *invocation) keepForLease() Disposition {
	left := inv.head.Head.Lease.Until.Sub(inv.cfg.Now())
	if left <= 0 {
		return Disposition{Keep: minKeep}
	}
	return Disposition{Keep: max(left, minKeep), Lease: inv.cfg.Lease}
}

// readable refuses a message of a newer program: what it asks for is not known here.
func readable(wake journal.Wake) error {
	if wake.V > journal.WakeVersion {
		return fmt.Errorf("wake for session %s: version %d is newer than this program reads (%d)", wake.Key(), wake.V, journal.WakeVersion)
	}
	return nil
}

// decide reads what is known about the message and asks the engine. For a step
// the claim and the query of the tail run side by side; a resume claims only
// once it is known that nothing is waited for, because a lease taken for nothing
// would hold up the last answer's own message.
func (inv *invocation) decide(ctx context.Context) (engine.Action, error) {
	if inv.wake.Kind == journal.WakeResume {
		return inv.decideResume(ctx)
	}
	cached := inv.sessions.Take(inv.key)
	if cached == nil && inv.wake.Again {
		return inv.decideAgain(ctx)
	}
	if cached == nil || inv.wake.Seq > cached.Next() {
		// It is not known yet whether the entry asked for can exist, and a claim for one that
		// cannot exist would block those that can.
		return inv.decideCold(ctx, cached)
	}
	var claimErr error
	claimed := make(chan struct{})
	go func() {
		defer close(claimed)
		claimErr = inv.claim(ctx, store.ClaimTake, inv.wake.Seq)
	}()
	defer func() { <-claimed }() // where reading panics
	s, err := inv.sessions.CatchUp(ctx, inv.key, cached)
	inv.session = s
	<-claimed
	if err != nil && !errors.Is(claimErr, store.ErrNotFound) {
		return "", errors.Join(err, claimErr)
	}
	return inv.afterClaim(claimErr, 0)
}

// afterClaim says what to do after a claim that returned err, where open waits are open.
// A session that is not found was deleted, though its entries may still be cached here:
// nothing more may be done for it.
func (inv *invocation) afterClaim(err error, open int) (engine.Action, error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		inv.session = nil
		inv.sessions.Release(inv.key)
		return engine.Acknowledge, nil
	case err != nil:
		return "", err
	}
	return inv.claimedAction(open), nil
}

// decideCold reads the session before it claims.
func (inv *invocation) decideCold(ctx context.Context, cached *session.Session) (engine.Action, error) {
	s, err := inv.sessions.CatchUp(ctx, inv.key, cached)
	if err != nil {
		return "", err
	}
	inv.session = s
	if inv.session == nil || inv.wake.Seq > inv.session.Next() {
		return engine.Acknowledge, nil
	}
	return inv.afterClaim(inv.claim(ctx, store.ClaimTake, inv.wake.Seq), 0)
}

// decideAgain is decideCold for a message that was received before. An earlier worker may have
// died of the session's size, and only claims count such deaths. So if there is a step for the
// message, the step is claimed before the session is read.
func (inv *invocation) decideAgain(ctx context.Context) (engine.Action, error) {
	wanted, err := inv.hasStep(ctx)
	if wanted && err == nil {
		err = inv.claim(ctx, store.ClaimTake, inv.wake.Seq)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !wanted:
		return inv.decideCold(ctx, nil)
	case err != nil || !inv.claimed:
		inv.sessions.Release(inv.key)
		return engine.Keep, err
	}
	inv.session, err = inv.sessions.CatchUp(ctx, inv.key, nil)
	if err != nil {
		return "", err
	}
	return inv.claimedAction(0), nil
}

// hasStep says by the newest entry, which takes little room, whether there is a step for
// the message. A step that is put off is none: nothing may hide a signal from it.
func (inv *invocation) hasStep(ctx context.Context) (bool, error) {
	head, err := inv.sessions.Head(ctx, inv.key)
	if err != nil {
		return false, err
	}
	newest, err := inv.sessions.Newest(ctx, *head.Head)
	return newest.Status == session.StatusRunning && newest.Seq+1 == inv.wake.Seq &&
		journal.PutOff(newest.At, newest.Until, inv.cfg.Now()) <= 0, err
}

func (inv *invocation) decideResume(ctx context.Context) (engine.Action, error) {
	s, err := inv.sessions.Load(ctx, inv.key)
	if err != nil {
		return "", err
	}
	inv.session = s
	open := 0
	if s != nil && s.Status == session.StatusSuspended {
		waits, err := inv.sessions.WaitStates(ctx, inv.key, stored.WaitsAtOf(s))
		if err != nil {
			return "", err
		}
		open = stored.CountOpen(waits)
	}
	switch action := engine.Dispatch(inv.facts(open)); action {
	case engine.Resume, engine.Work, engine.SendNext, engine.ComeBack, engine.TooEarly: // by what the claim shows
	case engine.Acknowledge, engine.Keep:
		return action, nil
	}
	return inv.afterClaim(inv.claim(ctx, store.ClaimTake, inv.wake.Seq), open)
}

// claimedAction decides once a claim was asked for. Refused, there is no work, also
// if the lease in the way has lapsed since: the message comes back and claims anew.
func (inv *invocation) claimedAction(open int) engine.Action {
	action := engine.Dispatch(inv.facts(open))
	if !inv.claimed && (action == engine.Work || action == engine.Resume) {
		return engine.Keep
	}
	return action
}

func (inv *invocation) facts(open int) engine.Facts {
	f := engine.Facts{
		Now: inv.cfg.Now(), Wake: inv.wake, Session: inv.session, Claimed: inv.claimed, WaitsOpen: open, Grace: inv.cfg.Grace,
	}
	if inv.head.Head != nil {
		f.Lease = inv.head.Head.Lease
		f.Signalled = inv.session != nil && inv.signal() != nil
	}
	return f
}

// resume takes the answers in, leaves the suspension and goes on with the step in
// the same invocation. Answered waits are taken and open ones closed in the same
// transaction, each as this worker saw it.
func (inv *invocation) resume(ctx context.Context) (Disposition, error) {
	w := inv.Worker
	if halted, err := inv.halted(ctx); err != nil || halted {
		return inv.finish(ctx, err)
	}
	waits, err := w.sessions.WaitsAt(ctx, inv.key, stored.WaitsAtOf(inv.session))
	if err == nil {
		err = errors.Join(stored.CheckNewest(inv.session, inv.head.Head), stored.CheckWaits(inv.session, waits))
	}
	if err != nil {
		return inv.finish(ctx, err)
	}
	answers, taken := stored.TakeWaits(inv.session, waits, inv.session.Next(), w.cfg.StepBytes)
	m := engine.Resumed(inv.session, answers, nil, nil, inv.stamp(true))
	if err := inv.commit(ctx, m, taken...); err != nil {
		if errors.Is(err, errLost) {
			// Something changed under us: the message is decided on afresh.
			inv.release(ctx)
			return Disposition{Keep: minKeep}, nil
		}
		return inv.finish(ctx, err)
	}
	if err := inv.moveLease(ctx); err != nil {
		return inv.finish(ctx, err)
	}
	return inv.work(ctx)
}

// moveLease moves our lease on to the next entry, because this invocation goes on.
func (inv *invocation) moveLease(ctx context.Context) error {
	if !inv.moved {
		if err := inv.claim(context.WithoutCancel(ctx), store.ClaimMove, inv.session.Next()); err != nil {
			return err
		}
	}
	inv.moved = false
	if !inv.claimed {
		return errSuperseded
	}
	inv.attempt.N = inv.head.Head.Lease.N
	if inv.watching != nil {
		inv.watching.moved(inv.session.Next())
	}
	return nil
}

// work does steps until the invocation is over, or a halt comes between two of them.
func (inv *invocation) work(ctx context.Context) (Disposition, error) {
	if err := stored.CheckNewest(inv.session, inv.head.Head); err != nil {
		return inv.finish(ctx, err)
	}
	for {
		if halted, err := inv.halted(ctx); err != nil || halted {
			return inv.finish(ctx, err)
		}
		more, err := inv.step(ctx)
		if err != nil || !more {
			return inv.finish(ctx, err)
		}
		if err := inv.moveLease(ctx); err != nil {
			return inv.finish(ctx, err)
		}
	}
}

// finish decides from the end of an invocation what happens to its message. To lose a race is a
// normal outcome: the message is acknowledged. But a worker that wrote the entry and has lost the
// lease sends the next message first.
func (inv *invocation) finish(ctx context.Context, err error) (Disposition, error) {
	switch {
	case err == nil:
		return Disposition{}, nil
	case errors.Is(err, errLost), errors.Is(err, errSuperseded):
		if inv.wonKeepingLease == 0 {
			return Disposition{}, nil
		}
		return Disposition{}, inv.sessions.Send(context.WithoutCancel(ctx), journal.NewWake(inv.key, inv.wonKeepingLease+1, journal.WakeStep))
	case errors.Is(err, store.ErrNotFound): // it was deleted: nothing is done for it any more
		return Disposition{}, nil
	case errors.Is(context.Cause(ctx), ErrOutOfTime):
		return Disposition{}, err
	case errors.Is(err, errLedgerMoved): // what the step would have said was not true: decided on afresh
		inv.release(context.WithoutCancel(ctx))
		return Disposition{Keep: minKeep}, nil
	default:
		inv.release(context.WithoutCancel(ctx))
		return Disposition{}, err
	}
}
