// Package drive takes messages from a queue for a worker.
//
// Drive works on one session until it rests, Work on all sessions, several at once.
package drive

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
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
	Halts    *halts.Halts
	// DeadLetters holds the messages that were received too often.
	DeadLetters queue.Queue
	Log         *slog.Logger
}

// Driver drives sessions. Its methods are safe for concurrent use.
type Driver struct{ cfg Config }

// New returns a driver.
func New(cfg Config) *Driver { return &Driver{cfg: cfg} }

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

// close stops receiving and returns the messages that no worker took. The error is one with which the
// receiver had failed. It may be called again.
func (in *receiver) close() error {
	in.stop()
	<-in.done
	select {
	case err := <-in.failed:
		return err
	default:
		return nil
	}
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
		if _, err := dr.handle(ctx, q, deliveries[0]); err != nil {
			return err
		}
	}
}

func (dr *Driver) driveUntilRest(ctx context.Context, key session.Key, q queue.Queue, after int64) error {
	watch := dr.cfg.Sessions.Watch(key, stored.EntriesThatStop)
	defer watch.Stop()
	if resting, err := dr.resting(ctx, key, after); err != nil || resting {
		return err
	}
	in := dr.startReceiver(ctx, q, queue.ReceiveParams{Max: 1, Visibility: visibility, Wait: idleWait}, false)
	defer func() { _ = in.close() }() // it rests: what else it would say is of no use
	timer := time.NewTimer(driveWait)
	defer timer.Stop()
	for {
		silent := false
		select {
		case d := <-in.deliveries:
			if _, err := dr.handle(ctx, q, d); err != nil {
				return err
			}
			select {
			case <-watch.Told(): // of what was written here
			default:
			}
		case <-watch.Told():
			if resting, err := dr.resting(ctx, key, after); err != nil || resting {
				return err
			}
			continue // others may write all the time: the session is as silent as before
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
// session that was resumed it sends again: a worker that died may have had the message. For one that
// a halt holds it does not: whoever lifts the halt sends.
func (dr *Driver) sweepDriven(ctx context.Context, key session.Key, after int64) error {
	head, err := dr.cfg.Sessions.Head(ctx, key)
	if err != nil {
		return err
	}
	switch halted, err := dr.cfg.Halts.Hold(ctx, key, head.Head.Agent); {
	case err != nil:
		return err
	case halted:
		return dr.cfg.Sweep.Head(ctx, key) // its deadline comes all the same
	}
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

// handle delivers one message and then acknowledges it or puts it off for a time. An error of the
// delivery is returned only if it will not pass by itself.
func (dr *Driver) handle(ctx context.Context, q queue.Queue, d queue.Delivery) (putOff time.Duration, err error) {
	disposition, err := dr.cfg.Worker.Deliver(ctx, d.Named())
	after := context.WithoutCancel(ctx)
	switch {
	case err != nil:
		if postponeErr := q.Postpone(after, d, retryAfter); postponeErr != nil {
			err = errors.Join(err, postponeErr)
		}
		return retryAfter, err
	case disposition.Keep > 0:
		putOff = disposition.KeepAfter(d.Receives)
		err = q.Postpone(after, d, putOff)
	default:
		err = q.Acknowledge(after, d)
	}
	return putOff, err
}
