package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/drive"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/sweep"
	"github.com/adjourn/adjourn/pkg/runtime/internal/worker"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Disposition says what to do with a message that was delivered.
type Disposition struct {
	// Keep the message and look again after this time; 0 means acknowledge it.
	Keep time.Duration
	// lease is how long leases last, if the message is kept because another worker has the
	// session; 0 if it is kept for another reason.
	lease time.Duration
}

// disposition is what the caller of the worker reads of its disposition.
func disposition(d worker.Disposition) Disposition {
	return Disposition{Keep: d.Keep, lease: d.Lease}
}

// KeepAfter is how long to keep a message that has been received so many times, this one
// included; 0 means acknowledge it. While another worker has the session, a returning message
// waits the length of a lease, then twice as long each time: a queue allows a message few
// receives.
func (d Disposition) KeepAfter(receives int) time.Duration {
	return worker.Disposition{Keep: d.Keep, Lease: d.lease}.KeepAfter(receives)
}

// ErrOutOfTime is the cause with which a worker's context ends when the worker is about to be
// ended by force. A step that is cut off by it keeps its lease until the lease lapses and so
// counts among the claims that died: a step that never fits into its worker's time fails in the
// end and is not tried for ever.
var ErrOutOfTime = worker.ErrOutOfTime

// Deliver works on one message: it decides by the table in docs/design/chain.md,
// does the step if there is one to do, commits, sends what follows. An error
// means that the message must be delivered again; nothing was half-written. The
// end of ctx cuts a step off, and the lease is given back, unless its cause is
// [ErrOutOfTime].
func (r *Runtime) Deliver(ctx context.Context, wake journal.Wake) (Disposition, error) {
	d, err := r.worker.Deliver(ctx, wake)
	if errors.As(err, new(*refusal.Error)) {
		err = AsError(err)
	}
	return disposition(d), err
}

// DeadLetter decides about a message that was received too often
// (docs/design/chain.md). Neither an hour of a bad deployment nor a repeated message
// may fail a healthy session: what counts is how many claims of the step died.
func (r *Runtime) DeadLetter(ctx context.Context, wake journal.Wake) (Disposition, error) {
	d, err := r.worker.DeadLetter(ctx, wake)
	return disposition(d), err
}

// HandleDeadLetters works on what is in the dead letters' queue until it is empty.
// One that cannot be worked on is left for later and does not hide the others; one
// that a newer program sent is left for a program that reads it, and is no failure.
func (r *Runtime) HandleDeadLetters(ctx context.Context) error {
	return r.worker.HandleDeadLetters(ctx, r.cfg.DeadLetters)
}

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

// Drive works on one session until it rests: q delivers the wakes of that session
// only. It returns when the session is suspended, interrupted or ended, or with
// the cause of ctx.
func (r *Runtime) Drive(ctx context.Context, key session.Key, q queue.Queue) error {
	return r.DriveAfter(ctx, key, q, 0)
}

// DriveAfter is Drive for a session that was resumed after an entry ([Resumed.After]). Until
// another entry follows, the session looks as if it rested, also when another worker has taken
// the message that resumes it.
func (r *Runtime) DriveAfter(ctx context.Context, key session.Key, q queue.Queue, after int64) error {
	if err := r.driver.Drive(ctx, key, q, after); err != nil {
		return AsError(err)
	}
	return nil
}

// Work handles the messages of the queue, several sessions at once, until ctx ends, no message
// came for p.Idle, or p.Done says so. Without Idle it also continues when another process holds
// the store ([store.ErrLocked]), and logs that. If the work on a session fails, that is logged and
// the message is delivered again; other sessions are not affected. A session whose agent is not in
// this program belongs to another program: it is logged once.
func (r *Runtime) Work(ctx context.Context, q queue.Queue, p WorkParams) error {
	err := r.driver.Work(ctx, q, drive.WorkParams(p))
	if err == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return AsError(err)
}

// SweepResult counts what a sweep did.
type SweepResult struct {
	// Resent messages of running sessions without a live lease and without a recent entry.
	Resent int
	// Resumed suspended sessions whose resumption never came.
	Resumed int
	// Expired waits, Escalated ones, and Reminded ones.
	Expired, Escalated, Reminded int
	// Cancelled tasks, whose time was over.
	Cancelled int
	// Removed sessions: whose time was over, or which were deleted by who could not finish it.
	Removed int
}

// Sweep repairs the effects of a crash (docs/design/chain.md). It reads each hit of the due index
// again consistently before it acts. It may run anywhere, at any time, any number of times at
// once. Of a session it reads only the last entries, however long the session is, and it spends
// at most a share of the time on one: a session that needs more is looked at again after all
// others. SweepAtOnce of them are looked at in parallel.
func (r *Runtime) Sweep(ctx context.Context) (SweepResult, error) {
	swept, err := r.sweep.Sweep(ctx)
	if errors.As(err, new(*sweep.FindError)) {
		err = AsError(err)
	}
	return SweepResult(swept), err
}

// Unresumed returns the sessions that are suspended though every wait has its answer: the caller
// of the last answer is about to send the message or died before, or the sweep has sent it and no
// worker has received it.
func (r *Runtime) Unresumed(ctx context.Context) ([]session.Key, error) {
	return asResult(r.sweep.Unresumed(ctx))
}
