// Package drive takes messages from a queue for a worker.
//
// Drive works on one session until it rests, Work on all sessions, several at once.
package drive

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/runtime/internal/sweep"
	"github.com/adjourn/adjourn/pkg/runtime/internal/worker"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Config is what a driver needs; all of it is required but DeadLetters.
type Config struct {
	Sessions *stored.Sessions
	Worker   *worker.Worker
	Sweep    *sweep.Sweep
	// DeadLetters holds the messages that were received too often.
	DeadLetters queue.Queue
	Log         *slog.Logger
}

// Driver drives sessions. Its methods are safe for concurrent use.
type Driver struct{ cfg Config }

// New returns a driver.
func New(cfg Config) *Driver { return &Driver{cfg: cfg} }

// WorkParams say how to work on the messages of the queue.
type WorkParams struct {
	// Concurrency is how many sessions are worked on at once; 0 means 8.
	Concurrency int
	// Idle stops the work when nothing came for so long; 0 means never.
	Idle time.Duration
	// SweepEvery runs the sweep so often beside the work; 0 means never.
	SweepEvery time.Duration
}

const (
	// visibility is how long the embedded worker hides a message it works on. The lease decides
	// who works; the visibility only saves others a useless attempt.
	visibility = time.Minute
	// retryAfter is how long a message waits after its delivery failed.
	retryAfter = time.Second
	// driveWait is how long a session that is driven may be silent before it is looked at.
	driveWait = 500 * time.Millisecond
	// idleWait is how long one Receive waits.
	idleWait = 5 * time.Second
	// maxReceive is the most messages a Receive may ask for.
	maxReceive = 64
)

// receiver keeps one Receive waiting beside the work, so that the embedded queue
// can hand a wake over within the very commit that enqueues it.
type receiver struct {
	deliveries chan queue.Delivery
	failed     chan error
	stop       context.CancelFunc
	done       chan struct{}
}

// startReceiver begins to receive. A worker that stays receives again when a Receive has
// waited in vain for another process that holds the store: that one may go on.
func (dr *Driver) startReceiver(ctx context.Context, q queue.Queue, p queue.ReceiveParams, stays bool) *receiver {
	receiving, stop := context.WithCancel(ctx)
	in := &receiver{deliveries: make(chan queue.Delivery), failed: make(chan error, 1), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(in.done)
		for receiving.Err() == nil {
			deliveries, err := q.Receive(receiving, p)
			switch {
			case err == nil || receiving.Err() != nil:
			case stays && errors.Is(err, store.ErrLocked):
				dr.cfg.Log.WarnContext(ctx, "receive", "error", err)
			default:
				in.failed <- err
				return
			}
			for _, d := range deliveries {
				select {
				case in.deliveries <- d:
				case <-receiving.Done():
					// This process stops and does not work on it: another one may receive the message at once.
					if err := q.Postpone(context.WithoutCancel(ctx), d, 0); err != nil {
						dr.cfg.Log.WarnContext(ctx, "hand a message back", "session", d.Wake.Key().String(), "error", err)
					}
				}
			}
		}
	}()
	return in
}

// close stops receiving and returns the messages that no worker took.
func (in *receiver) close() {
	in.stop()
	<-in.done
}

// Drive works on one session until it rests: q delivers the wakes of that session
// only. It returns when the session is suspended, interrupted or ended, or with
// the cause of ctx. Of a session that was resumed after an entry, that entry is after, else 0:
// until another entry follows, the session looks as if it rested, also when another worker has
// taken the message that resumes it.
func (dr *Driver) Drive(ctx context.Context, key session.Key, q queue.Queue, after int64) error {
	for {
		if err := dr.driveUntilRest(ctx, key, q, after); err != nil {
			return err
		}
		// The session rests unless there is a message for it: a caller resumed it.
		deliveries, err := q.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: visibility})
		if err != nil {
			return err
		}
		if len(deliveries) == 0 {
			return nil
		}
		if err := dr.handle(ctx, q, deliveries[0]); err != nil {
			return err
		}
	}
}

func (dr *Driver) driveUntilRest(ctx context.Context, key session.Key, q queue.Queue, after int64) error {
	if resting, err := dr.resting(ctx, key, after); err != nil || resting {
		return err
	}
	in := dr.startReceiver(ctx, q, queue.ReceiveParams{Max: 1, Visibility: visibility, Wait: idleWait}, false)
	defer in.close()
	timer := time.NewTimer(driveWait)
	defer timer.Stop()
	for {
		silent := false
		select {
		case d := <-in.deliveries:
			if err := dr.handle(ctx, q, d); err != nil {
				return err
			}
		case err := <-in.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			// Another worker may have the session, a retry may be due later, a message may be
			// lost.
			if err := dr.sweepDriven(ctx, key, after); err != nil {
				return err
			}
			silent = true
		}
		if silent || !dr.cfg.Sessions.Running(key) { // else its wake is on its way
			if resting, err := dr.resting(ctx, key, after); err != nil || resting {
				return err
			}
		}
		timer.Reset(driveWait)
	}
}

// resting reports whether a session waits for an answer or has ended, and was not resumed after
// its newest entry.
func (dr *Driver) resting(ctx context.Context, key session.Key, after int64) (bool, error) {
	s, err := dr.cfg.Sessions.LoadExisting(ctx, key)
	if err != nil {
		return false, err
	}
	defer dr.cfg.Sessions.PutBack(s)
	if s.Version == after {
		return false, nil
	}
	if s.Status != session.StatusSuspended {
		return s.Status.Resting(), nil
	}
	ready, err := dr.cfg.Sessions.ReadyToResume(ctx, key, s.Status, stored.WaitsAtOf(s))
	return err == nil && !ready, err
}

// sweepDriven is the sweep for one session that is being driven and whose queue is empty. For a
// session that was resumed it sends again: a worker that died may have had the message.
func (dr *Driver) sweepDriven(ctx context.Context, key session.Key, after int64) error {
	if after > 0 {
		if err := dr.sendResumeAgain(ctx, key, after); err != nil {
			return err
		}
	}
	if err := dr.cfg.Sessions.ResumeIfReady(ctx, key); err != nil {
		return err
	}
	return dr.cfg.Sweep.Head(ctx, key)
}

// sendResumeAgain sends for the entry that leaves a suspension, if the session is still in it.
func (dr *Driver) sendResumeAgain(ctx context.Context, key session.Key, after int64) error {
	s, err := dr.cfg.Sessions.LoadExisting(ctx, key)
	if err != nil {
		return err
	}
	defer dr.cfg.Sessions.PutBack(s)
	if s.Version != after || s.Status != session.StatusSuspended && s.Status != session.StatusInterrupted {
		return nil
	}
	return dr.cfg.Sessions.Send(ctx, journal.NewWake(key, s.Next(), journal.WakeResume))
}

// handle delivers one message and then acknowledges or keeps it. An error of the
// delivery is returned only if it will not pass by itself.
func (dr *Driver) handle(ctx context.Context, q queue.Queue, d queue.Delivery) error {
	disposition, err := dr.cfg.Worker.Deliver(ctx, d.Named())
	after := context.WithoutCancel(ctx)
	switch {
	case err != nil:
		if postponeErr := q.Postpone(after, d, retryAfter); postponeErr != nil {
			err = errors.Join(err, postponeErr)
		}
		return err
	case disposition.Keep > 0:
		err = q.Postpone(after, d, disposition.KeepAfter(d.Receives))
	default:
		err = q.Acknowledge(after, d)
	}
	return err
}

// Work handles the messages of the queue, several sessions at once, until ctx ends or no message
// came for p.Idle. Without Idle it also continues when another process holds the store
// ([store.ErrLocked]), and logs that. If the work on a session fails, that is logged and the
// message is delivered again; other sessions are not affected. A session whose agent is not in
// this program belongs to another program: it is logged once.
func (dr *Driver) Work(ctx context.Context, q queue.Queue, p WorkParams) error {
	p.Concurrency = cmp.Or(p.Concurrency, 8)
	var others sync.Map // sessions of agents this program has not
	var wg sync.WaitGroup
	defer wg.Wait() // what is under way is brought to its end
	if p.SweepEvery > 0 {
		sweeping, stop := context.WithCancel(ctx)
		defer stop()
		wg.Go(func() { dr.sweepEvery(sweeping, p.SweepEvery) })
	}
	in := dr.startReceiver(ctx, q, queue.ReceiveParams{Max: min(p.Concurrency, maxReceive), Visibility: visibility, Wait: idleWait}, p.Idle == 0)
	defer in.close()
	var idle <-chan time.Time
	if p.Idle > 0 {
		timer := time.NewTicker(p.Idle)
		defer timer.Stop()
		idle = timer.C
	}
	busy := make(chan struct{}, p.Concurrency)
	worked := false
	for {
		select {
		case busy <- struct{}{}:
		case <-ctx.Done():
			return ended(ctx)
		}
		select {
		case d := <-in.deliveries:
			worked = true
			wg.Go(func() {
				defer func() { <-busy }()
				err := dr.handle(ctx, q, d)
				if err == nil || ctx.Err() != nil {
					return
				}
				told := false
				if refused := (*refusal.Error)(nil); errors.As(err, &refused) && refused.Code == wire.CodeUnknownAgent {
					_, told = others.LoadOrStore(d.Wake.Key(), true)
				}
				if !told {
					dr.cfg.Log.ErrorContext(ctx, "step", "session", d.Wake.Key().String(), "seq", d.Wake.Seq, "error", err)
				}
			})
			continue
		case err := <-in.failed:
			return err
		case <-ctx.Done():
			return ended(ctx)
		case <-idle:
		}
		<-busy
		if !worked && len(busy) == 0 {
			return nil
		}
		worked = len(busy) > 0
	}
}

func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return context.Cause(ctx)
}

func (dr *Driver) sweepEvery(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
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
