package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// What can end an invocation early. None of them is a failure of the session.
var (
	// errLost: another writer wrote the entry first. That entry counts; the work of this worker
	// is discarded.
	errLost = errors.New("lost the race for the entry")
	// errSuperseded: another worker holds the lease now.
	errSuperseded = ledger.ErrSuperseded
	// errLedgerMoved: the ledger of a call that the entry gives up, or has the result of, was written
	// meanwhile; look again.
	errLedgerMoved = errors.New("the ledger of a call was written meanwhile")
	// errSignalled is the cause with which a step's context is cancelled.
	errSignalled = errors.New("a signal came")
)

// invocation is the work on one message: the claim, the session in its present state, and what
// this worker has written of it.
type invocation struct {
	*Worker

	key     session.Key
	wake    journal.Wake
	owner   string
	attempt session.Attempt
	session *session.Session
	// head is the newest revision of HEAD that is known: writes are conditioned on
	// it, and [stored.CheckHead] says when they must not be. Its lease is ours while claimed.
	head store.Item
	// mailSeen is how much mail had been put when the step last looked at it.
	mailSeen int64
	claimed  bool
	// moved says that the lease was moved on with the newest commit.
	moved bool
	// wonKeepingLease is the seq of the newest entry we wrote with KeepsLease; 0 when the
	// next wake is sent or not needed.
	wonKeepingLease int64
	steps           int
	// budget is what the next entry may still take of what its calls bring.
	budget sizeBudget
	// notRun are the ledgers of calls that the step says will not run.
	notRun []*ledger.Book
	// marked are the ledgers whose start marks were, or may have been, written with the step's
	// reply, by call.
	marked map[string]*ledger.Book
	// running counts the calls that run side by side.
	running atomic.Int32
	// joins says that a finish mark may be written with the step's entry, and owed is the one
	// that will be.
	joins bool
	owed  *finishMark
	// since is when the invocation began.
	since time.Time
	// began is when the step, or its last entry, began.
	began time.Time
	// stops says that the step is ended in place of its worker: the entry needs our lease. beside
	// returns the items that go with the entry of a verb, by the status it leads to.
	stops  bool
	beside func(session.Status) ([]store.Item, error)
	// watching is the watcher of the step under way.
	watching *watcher
	// lease is what was asked for of it.
	lease leaseEnd
}

func (w *Worker) invoke(wake journal.Wake) *invocation {
	id, now := w.cfg.NewID(), w.cfg.Now()
	return &invocation{
		Worker: w, key: wake.Key(), wake: wake, owner: w.cfg.Owner + "/" + id,
		attempt: journal.ForWake(id, wake), began: now, since: now,
	}
}

// claim takes or moves the lease. A refusal is no error: claimed stays false and head shows the lease.
func (inv *invocation) claim(ctx context.Context, mode store.ClaimMode, seq int64) error {
	head, err := inv.cfg.Store.Claim(ctx, inv.claimParams(mode, seq))
	if refused := (*store.LeaseError)(nil); errors.As(err, &refused) {
		inv.head, inv.claimed = refused.Head, false
		return nil
	}
	if err != nil {
		if inv.claimed = false; ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrOutOfTime) {
			inv.releaseUnknown(context.WithoutCancel(ctx), seq) // it may have been cut off behind its write
		}
		return fmt.Errorf("session %s: %s lease of entry %d: %w", inv.key, mode, seq, err)
	}
	inv.head, inv.claimed = head, true
	inv.attempt.N = head.Head.Lease.N
	return nil
}

// release gives back a lease that is not needed, so that no other worker waits for it.
func (inv *invocation) release(ctx context.Context) {
	if !inv.claimed {
		return
	}
	inv.claimed = false
	now := inv.cfg.Now()
	_, err := inv.cfg.Store.Claim(ctx, store.ClaimParams{
		Key: inv.key, Mode: store.ClaimRelease, Owner: inv.owner, Seq: inv.head.Head.Lease.Seq, Now: now, Until: now,
	})
	if err != nil {
		inv.cfg.Log.DebugContext(ctx, "release lease", "session", inv.key.String(), "error", err)
	}
}

func (inv *invocation) stamp(keepsLease bool) engine.Stamp {
	return engine.Stamp{Now: inv.cfg.Now(), By: "step", Attempt: inv.attempt, Token: inv.cfg.NewID(), KeepsLease: keepsLease}
}

// signal returns the signal for this task, if there is one: the task's own deadline is one too.
func (inv *invocation) signal() *journal.Signal {
	head, now := inv.head.Head, inv.cfg.Now()
	if head == nil {
		return nil
	}
	if head.Task == inv.session.Task && head.Overdue(now) {
		return new(head.AtDeadline(inv.cfg.NewID(), now))
	}
	return head.SignalFor(inv.session.Task)
}

// commit writes a move: the entry and what goes with it, once; then sends what
// has to follow. It outlives the cancellation of ctx, because the effect is done.
func (inv *invocation) commit(ctx context.Context, m engine.Move, extra ...store.Item) error {
	_, err := inv.write(ctx, m, nil, extra)
	return err
}

// write is commit with marks that follow it.
func (inv *invocation) write(ctx context.Context, m engine.Move, marks, extra []store.Item) (of marking, err error) {
	var committed store.Committed
	for {
		if err := stored.CheckHead(inv.session, &inv.head, m, inv.mailSeen); err != nil {
			return of, err
		}
		next := stored.Next{Claim: inv.nextClaim(m), Marks: marks}
		if inv.stops {
			next.LeaseOwner = inv.owner
		}
		tries := 0
		err := inv.sessions.Bounded(ctx, func(ctx context.Context) (err error) {
			tries++
			committed, err = inv.sessions.Write(ctx, inv.session, &inv.head, m, extra, next)
			return err
		})
		if err != nil || tries > 1 {
			of = perhapsMarked
		}
		inv.moved = committed.Head != nil
		var conflict *store.ConflictError
		if errors.As(err, &conflict) && conflict.Item != nil && conflict.Item.Head != nil && conflict.Item.Head.Key == inv.key {
			moved := conflict.Item.Rev != inv.head.Rev
			inv.head = *conflict.Item
			switch {
			case inv.stops && inv.head.Head.Lease.Owner != inv.owner:
				return of, errSuperseded
			case !moved:
				return of, fmt.Errorf("session %s: the store refuses HEAD as it is: %w", inv.key, store.ErrUnavailable)
			}
			continue // and look at what has moved it
		}
		switch {
		case conflict != nil && (closesLedger(extra, conflict.Item) || inv.owes(conflict.Item)):
			return of, errLedgerMoved
		case errors.Is(err, store.ErrConflict):
			return unmarked, errLost
		case err != nil:
			return of, err
		}
		break
	}
	if committed.Marked {
		of = marked
	}
	inv.wonKeepingLease = 0
	if m.Entry.KeepsLease {
		inv.wonKeepingLease = m.Entry.Seq
	}
	if stored.Sent(m, committed) {
		return of, nil
	}
	// This write is separate from the entry's and has its own time limit: if it fails, the entry
	// is still committed.
	return of, inv.sessions.BoundedBy(ctx, stored.ErrNotSent, func(ctx context.Context) error { return inv.sessions.Send(ctx, *m.Wake) })
}

// nextClaim is the move of the lease that follows an entry after which this
// invocation goes on.
func (inv *invocation) nextClaim(m engine.Move) *store.ClaimParams {
	if !m.Entry.KeepsLease {
		return nil
	}
	p := inv.claimParams(store.ClaimMove, m.Entry.Seq+1)
	return &p
}

// claimParams are those of a fresh claim: the lease lasts as long as any other,
// however long it was renewed for before.
func (inv *invocation) claimParams(mode store.ClaimMode, seq int64) store.ClaimParams {
	now := inv.cfg.Now()
	return store.ClaimParams{Key: inv.key, Mode: mode, Owner: inv.owner, Seq: seq, Now: now, Until: inv.lease.claimed(now, inv.cfg.Lease)}
}

// ledger returns the book of one call.
func (inv *invocation) ledger(call string) *ledger.Book {
	if book := inv.marked[call]; book != nil {
		return book
	}
	return inv.ledgers.Book(inv.key, call, inv)
}

// AttemptID names this work in the ledgers it writes.
func (inv *invocation) AttemptID() string { return inv.attempt.ID }

// RenewLease renews the lease for the time of a write.
func (inv *invocation) RenewLease(ctx context.Context) error { return inv.renewFor(ctx, 0) }
