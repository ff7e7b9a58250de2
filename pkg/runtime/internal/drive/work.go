package drive

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
)

// WorkParams say how to work on the messages of the queue.
type WorkParams struct {
	// Concurrency is how many sessions are worked on at once; 0 means 8.
	Concurrency int
	// Idle stops the work when nothing came for so long; 0 means never.
	Idle time.Duration
	// SweepEvery runs the sweep so often beside the work; 0 means never.
	SweepEvery time.Duration
	// Done is asked each time the queue is found empty, nothing is under way here and no message is
	// about to come back that was put off for a moment; when it says so, the work ends, and a
	// message that has just come goes back to the queue. nil: it is not asked.
	Done func(context.Context) (bool, error)
}

const (
	// moment is for how long a message is put off at most that is waited for before the work ends.
	// It is a copy of one that was dealt with, as a rule, and whoever looks at the queue afterwards
	// should find it empty.
	moment = 300 * time.Millisecond
	// stay is how long the work lasts at least: a worker that died just before it may have put a
	// message off, for this time at least.
	stay = 20 * time.Millisecond
	// rounded is by how much a message may come late whose time is rounded up.
	rounded = time.Millisecond
)

// work is one call of Work.
type work struct {
	*Driver
	queue   queue.Queue
	p       WorkParams
	receive queue.ReceiveParams
	// busy has one for each message that is worked on. free has one after one was dealt with.
	busy, free chan struct{}
	// messages are for the workers that wait for one, of which idle has the number.
	messages chan queue.Delivery
	idle     atomic.Int64
	// putOff counts the messages that come back in a moment.
	putOff atomic.Int64
	// others are the sessions of agents this program has not.
	others sync.Map
	wg     sync.WaitGroup
	worked bool // since it was looked at last
}

// Work handles the messages of the queue, several sessions at once, until ctx ends, no message
// came for p.Idle, or p.Done says so. Without Idle it also continues when another process holds
// the store ([store.ErrLocked]), and logs that. If the work on a session fails, that is logged and
// the message is delivered again; other sessions are not affected. A session whose agent is not in
// this program belongs to another program: it is logged once.
func (dr *Driver) Work(ctx context.Context, q queue.Queue, p WorkParams) error {
	p.Concurrency = cmp.Or(p.Concurrency, 8)
	w := &work{
		Driver: dr, queue: q, p: p, busy: make(chan struct{}, p.Concurrency), free: make(chan struct{}, 1),
		messages: make(chan queue.Delivery), receive: queue.ReceiveParams{Max: min(p.Concurrency, maxReceive), Visibility: visibility, Wait: idleWait},
	}
	defer w.wg.Wait() // what is under way is brought to its end
	defer close(w.messages)
	if p.SweepEvery > 0 {
		sweeping, stop := context.WithCancel(ctx)
		defer stop()
		w.wg.Go(func() { dr.sweepEvery(sweeping, p.SweepEvery) })
	}
	in := dr.startReceiver(ctx, q, w.receive, p.Idle == 0)
	defer func() { _ = in.close() }()
	var idle <-chan time.Time
	if p.Idle > 0 {
		timer := time.NewTicker(p.Idle)
		defer timer.Stop()
		idle = timer.C
	}
	var free <-chan struct{} // nil if nobody asks
	if p.Done != nil {
		free = w.free
		w.comesBack(stay - rounded) // perhaps there is nothing to do
	}
	for {
		select {
		case w.busy <- struct{}{}:
		case <-ctx.Done():
			return ended(ctx)
		}
		select {
		case d := <-in.deliveries:
			w.begin(ctx, d)
			continue
		case err := <-in.failed:
			return err
		case <-ctx.Done():
			return ended(ctx)
		case <-free:
			<-w.busy
			done, err := w.done(ctx)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			// What the receiver has, and has not handed over yet, goes back to the queue, and is seen there.
			if err := in.close(); err != nil {
				return err
			}
			if more, err := w.beginWhatIsThere(ctx); err != nil || !more {
				return err
			}
			in = dr.startReceiver(ctx, q, w.receive, p.Idle == 0)
			continue
		case <-idle:
		}
		<-w.busy
		if !w.worked && len(w.busy) == 0 {
			return nil
		}
		w.worked = len(w.busy) > 0
	}
}

// begin works on a message for which busy has one. A worker that has nothing to do is cheaper
// than a new one, whose stack would have to grow for each message.
func (w *work) begin(ctx context.Context, d queue.Delivery) {
	w.worked = true
	select {
	case w.messages <- d:
		return
	default:
	}
	w.wg.Go(func() {
		for more := true; more; {
			w.workOn(ctx, d)
			if w.idle.Add(1) <= int64(w.p.Concurrency) {
				d, more = <-w.messages
			} else {
				more = false
			}
			w.idle.Add(-1)
		}
	})
}

// workOn deals with a message and makes room for another.
func (w *work) workOn(ctx context.Context, d queue.Delivery) {
	defer func() {
		<-w.busy
		w.look()
	}()
	putOff, err := w.handle(ctx, w.queue, d)
	if 0 < putOff && putOff <= moment {
		w.comesBack(putOff)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	told := false
	if refused := (*refusal.Error)(nil); errors.As(err, &refused) && refused.Code == codes.UnknownAgent {
		_, told = w.others.LoadOrStore(d.Wake.Key(), true)
	}
	if !told {
		w.cfg.Log.ErrorContext(ctx, "step", "session", d.Wake.Key().String(), "seq", d.Wake.Seq, "error", err)
	}
}

// look has it looked whether the work is done.
func (w *work) look() {
	select {
	case w.free <- struct{}{}:
	default: // it will be
	}
}

// comesBack keeps the work from its end until a message comes that was put off.
func (w *work) comesBack(after time.Duration) {
	w.putOff.Add(1)
	time.AfterFunc(after+rounded, func() {
		w.putOff.Add(-1)
		w.look()
	})
}

// done asks whether the work has come to its end, unless there is more of it. The receiver beside
// the work waits for messages, so this one looks whether any is there.
func (w *work) done(ctx context.Context) (bool, error) {
	if len(w.busy) > 0 || w.putOff.Load() > 0 {
		return false, nil
	}
	more, err := w.beginWhatIsThere(ctx)
	if err != nil || more {
		return false, err
	}
	done, err := w.p.Done(ctx)
	if err != nil && ctx.Err() != nil {
		return false, ended(ctx)
	}
	return done, err
}

// beginWhatIsThere begins with the messages that the queue has now, if there are any.
func (w *work) beginWhatIsThere(ctx context.Context) (bool, error) {
	look := w.receive
	look.Wait = 0
	deliveries, err := w.queue.Receive(ctx, look)
	if err != nil && ctx.Err() != nil {
		return false, ended(ctx)
	}
	for _, d := range deliveries {
		w.busy <- struct{}{}
		w.begin(ctx, d)
	}
	return len(deliveries) > 0, err
}

func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return context.Cause(ctx)
}

// firstSweep is how long the first sweep waits: what is on the queue goes before it, such as the
// answer for which a process was started.
const firstSweep = 20 * time.Millisecond

func (dr *Driver) sweepEvery(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	select {
	case <-time.After(firstSweep):
	case <-ctx.Done():
		return
	}
	for {
		if _, err := dr.cfg.Sweep.Sweep(ctx); err != nil && ctx.Err() == nil {
			dr.cfg.Log.ErrorContext(ctx, "sweep", "error", err)
		}
		if dr.cfg.DeadLetters != nil {
			if err := dr.cfg.Worker.HandleDeadLetters(ctx, dr.cfg.DeadLetters); err != nil && ctx.Err() == nil {
				dr.cfg.Log.ErrorContext(ctx, "dead letters", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
