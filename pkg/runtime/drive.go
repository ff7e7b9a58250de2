package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	// visibility is how long the embedded worker hides a message it works on; the
	// lease decides who works, this only keeps others from looking in vain.
	visibility = time.Minute
	// retryAfter is how long a message waits after its delivery failed.
	retryAfter = time.Second
	// driveWait is how long one look at the queue lasts while a session is driven.
	driveWait = 500 * time.Millisecond
	// idleWait is the same for a worker of all sessions.
	idleWait = 5 * time.Second
)

// Drive works on one session until it rests: q delivers the wakes of that session
// only. It returns when the session is suspended, interrupted or ended, or with
// the cause of ctx.
func (r *Runtime) Drive(ctx context.Context, key session.Key, q queue.Queue) error {
	for {
		deliveries, err := q.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: visibility})
		if err != nil {
			return AsError(err)
		}
		for _, d := range deliveries {
			if err := r.handle(ctx, q, d); err != nil {
				return err
			}
		}
		if len(deliveries) > 0 {
			continue
		}
		resting, err := r.resting(ctx, key)
		if err != nil || resting {
			return err
		}
		// Somebody else may be at it, or a retry is due later: look again.
		deliveries, err = q.Receive(ctx, queue.ReceiveParams{Max: 1, Visibility: visibility, Wait: driveWait})
		if err != nil {
			return AsError(err)
		}
		for _, d := range deliveries {
			if err := r.handle(ctx, q, d); err != nil {
				return err
			}
		}
		if len(deliveries) == 0 {
			if err := r.nudge(ctx, key); err != nil {
				return err
			}
		}
	}
}

// resting reports whether a session waits for somebody or has ended.
func (r *Runtime) resting(ctx context.Context, key session.Key) (bool, error) {
	s, err := r.need(ctx, key)
	if err != nil {
		return false, err
	}
	defer r.keep(s)
	if s.Status != session.StatusSuspended {
		return s.Status.Resting(), nil
	}
	ready, err := r.ready(ctx, s)
	if err != nil {
		return false, AsError(err)
	}
	return !ready, nil
}

// nudge is the sweep for one session that is being driven and whose queue is empty.
func (r *Runtime) nudge(ctx context.Context, key session.Key) error {
	if _, err := r.driveOn(ctx, key); err != nil {
		return AsError(err)
	}
	if _, err := r.resend(ctx, key); err != nil {
		return AsError(err)
	}
	return nil
}

// handle delivers one message and then acknowledges or keeps it. An error of the
// delivery is returned only if it will not pass by itself.
func (r *Runtime) handle(ctx context.Context, q queue.Queue, d queue.Delivery) error {
	disposition, err := r.Deliver(ctx, d.Wake)
	after := context.WithoutCancel(ctx)
	switch {
	case err != nil:
		if postponeErr := q.Postpone(after, d, retryAfter); postponeErr != nil {
			err = errors.Join(err, postponeErr)
		}
		return AsError(err)
	case disposition.Keep > 0:
		err = q.Postpone(after, d, disposition.Keep)
	default:
		err = q.Acknowledge(after, d)
	}
	if err != nil {
		return AsError(err)
	}
	return nil
}

// Work works on whatever the queue brings, several sessions at once, until ctx
// ends or nothing came for p.Idle. A session that fails to be worked on is logged
// and delivered again; it does not stop the others.
func (r *Runtime) Work(ctx context.Context, q queue.Queue, p WorkParams) error {
	defaultTo(&p.Concurrency, 8)
	var wg sync.WaitGroup
	defer wg.Wait() // what is under way is brought to its end
	if p.SweepEvery > 0 {
		sweeping, stop := context.WithCancel(ctx)
		defer stop()
		wg.Go(func() { r.sweepEvery(sweeping, p.SweepEvery) })
	}
	free := make(chan struct{}, p.Concurrency)
	lastWork := r.cfg.Now()
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return ended(ctx)
		}
		room := 1
		for room < p.Concurrency {
			select {
			case free <- struct{}{}:
				room++
				continue
			default:
			}
			break
		}
		wait := idleWait
		if p.Idle > 0 {
			wait = min(wait, p.Idle)
		}
		deliveries, err := q.Receive(ctx, queue.ReceiveParams{Max: room, Visibility: visibility, Wait: wait})
		for range room - len(deliveries) {
			<-free
		}
		if err != nil {
			if ctx.Err() != nil {
				return ended(ctx)
			}
			return AsError(err)
		}
		for _, d := range deliveries {
			wg.Go(func() {
				defer func() { <-free }()
				if err := r.handle(ctx, q, d); err != nil && ctx.Err() == nil {
					r.cfg.Log.ErrorContext(ctx, "step", "session", d.Wake.Key().String(), "seq", d.Wake.Seq, "error", err)
				}
			})
		}
		if len(deliveries) > 0 || len(free) > 0 {
			lastWork = r.cfg.Now()
			continue
		}
		if p.Idle > 0 && r.cfg.Now().Sub(lastWork) >= p.Idle {
			return nil
		}
	}
}

func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return context.Cause(ctx)
}

func (r *Runtime) sweepEvery(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if _, err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.ErrorContext(ctx, "sweep", "error", err)
		}
		if r.cfg.DeadLetters != nil {
			if err := r.BuryDeadLetters(ctx); err != nil && ctx.Err() == nil {
				r.cfg.Log.ErrorContext(ctx, "dead letters", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
