package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime/internal/worker"
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
	if missing := (*worker.AgentError)(nil); errors.As(err, &missing) {
		err = AsError(err)
	}
	return Disposition{Keep: d.Keep, lease: d.Lease}, err
}

// DeadLetter decides about a message that was received too often
// (docs/design/chain.md). Neither an hour of a bad deployment nor a repeated message
// may fail a healthy session: what counts is how many claims of the step died.
func (r *Runtime) DeadLetter(ctx context.Context, wake journal.Wake) (Disposition, error) {
	d, err := r.worker.DeadLetter(ctx, wake)
	return Disposition{Keep: d.Keep, lease: d.Lease}, err
}

// HandleDeadLetters works on what is in the dead letters' queue until it is empty.
// One that cannot be worked on is left for later and does not hide the others; one
// that a newer program sent is left for a program that reads it, and is no failure.
func (r *Runtime) HandleDeadLetters(ctx context.Context) error {
	return r.worker.HandleDeadLetters(ctx, r.cfg.DeadLetters)
}
