package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// watch renews the lease and looks for signals while a step works. It cancels
// the context it returns, with errSignalled or errSuperseded as its cause. A step
// that is over before the first look costs nothing but a timer. stop joins the
// watcher and leaves the newest HEAD in inv.head.
func (inv *invocation) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watcher{inv: inv, cancel: cancel, seq: inv.session.Next(), task: inv.session.Task, renewed: inv.cfg.Now()}
	// A read that never returns must not hold up the end of the step.
	w.ctx, w.stopReads = context.WithCancel(context.WithoutCancel(ctx))
	w.mu.Lock()
	w.timer = time.AfterFunc(inv.cfg.WatchEvery, w.look)
	w.mu.Unlock()
	inv.watching = w
	return ctx, func() {
		inv.watching = nil
		w.stop()
		cancel(nil)
	}
}

type watcher struct {
	inv       *invocation
	ctx       context.Context //nolint:containedctx // of the watcher's own reads, for as long as it lives
	stopReads context.CancelFunc
	cancel    context.CancelCauseFunc
	task      int64

	mu      sync.Mutex
	timer   *time.Timer
	looking sync.WaitGroup
	stopped bool
	seq     int64
	renewed time.Time
	seen    *store.Item
}

// moved tells the watcher that the step's lease is now for another entry.
func (w *watcher) moved(seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq, w.renewed = seq, w.inv.cfg.Now()
}

func (w *watcher) stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	w.stopReads()
	w.looking.Wait()
	if w.seen != nil && w.seen.Rev >= w.inv.head.Rev {
		lease := w.inv.head.Head.Lease // the step has moved it since the watcher read
		w.inv.head = *w.seen
		w.inv.head.Head.Lease = lease
	}
}

func (w *watcher) look() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	w.looking.Add(1)
	seq, renew := w.seq, w.inv.cfg.Now().Sub(w.renewed) >= w.inv.cfg.RenewEvery
	w.mu.Unlock()
	defer w.looking.Done()
	head, err := w.read(seq, renew)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.ctx.Err() != nil { // what a read says that was cut off counts for nothing
		return
	}
	switch {
	case errors.Is(err, store.ErrLeaseHeld):
		// Ours still, where the step has moved it on to its next entry meanwhile.
		if refused := (*store.LeaseError)(nil); !errors.As(err, &refused) || refused.Head.Head.Lease.Owner != w.inv.owner {
			w.cancel(errSuperseded)
			return
		}
	case errors.Is(err, store.ErrNotFound), err == nil && head.Head.Gone(w.inv.cfg.Now()): // it was deleted
		w.cancel(errSuperseded)
		return
	case err != nil:
		// The store does not answer just now: the step's own writes will find out.
	default:
		w.seen = &head
		if renew {
			w.renewed = w.inv.cfg.Now()
		}
		if head.Head.SignalFor(w.task) != nil || head.Head.Task == w.task && head.Head.Overdue(w.inv.cfg.Now()) {
			w.cancel(errSignalled)
			return
		}
	}
	w.timer.Reset(w.inv.cfg.WatchEvery)
}

func (w *watcher) read(seq int64, renew bool) (store.Item, error) {
	worker := w.inv.Worker
	if !renew {
		return worker.sessions.Head(w.ctx, w.inv.key)
	}
	now := worker.cfg.Now()
	return worker.cfg.Store.Claim(w.ctx, store.ClaimParams{
		Key: w.inv.key, Mode: store.ClaimRenew, Owner: w.inv.owner, Seq: seq, Now: now, Until: w.inv.lease.renewed(now, worker.cfg.Lease),
	})
}

// stopSignal returns the signal for a step that was cancelled.
func (inv *invocation) stopSignal(ctx context.Context) (*journal.Signal, error) {
	head, err := inv.sessions.Head(context.WithoutCancel(ctx), inv.key)
	if err != nil {
		return nil, err
	}
	inv.head = head
	return inv.signal(), nil
}
