// Package queue is the interface through which messages are delivered later.
//
// A message ([journal.Wake]) only names a session that is to be looked at. It may arrive
// twice, late or out of order, and nothing depends on it doing otherwise. Its adapters
// are github.com/adjourn/adjourn/pkg/sqlite and github.com/adjourn/adjourn/pkg/queue/sqsqueue.
// On Lambda the event source receives; the embedded engine and package queuetest use all
// four methods.
package queue

import (
	"context"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

// ErrUnavailable says that the queue cannot be reached or written.
var ErrUnavailable = errors.New("queue unavailable")

// Queue holds messages until a worker acknowledges them. Every method is safe for concurrent use,
// by any number of processes.
type Queue interface {
	// Send enqueues wakes, durably before it returns. A wake with a Delay is not
	// received before it has passed; one with more than 15 minutes an adapter may
	// leave out, because the sweep sends for its session when the time has come.
	Send(ctx context.Context, wakes ...journal.Wake) error

	// Receive returns up to Max visible messages and hides each for Visibility;
	// then, unless acknowledged, it is visible again. It waits up to Wait for the
	// first one and returns none, and no error, when there is none. Each receipt
	// counts; a message whose count would exceed the queue's limit goes to
	// the dead letters instead.
	Receive(ctx context.Context, p ReceiveParams) ([]Delivery, error)

	// Acknowledge removes messages for good. Acknowledging one that was received
	// again in the meantime, or is gone, is no error and may have no effect.
	Acknowledge(ctx context.Context, deliveries ...Delivery) error

	// Postpone makes a received message visible again after delay (0: at once),
	// counted from now. It may also be used to hide it for longer while it is worked
	// on. An adapter may take more than 15 minutes for 15.
	Postpone(ctx context.Context, delivery Delivery, delay time.Duration) error
}

// ReceiveParams are the parameters of Receive.
type ReceiveParams struct {
	// Max messages, 1 to 64; 0 means 1.
	Max int
	// Wait for the first message; 0 means not at all.
	Wait time.Duration
	// Visibility is how long a received message stays hidden; required. An adapter may
	// take more than 15 minutes for 15.
	Visibility time.Duration
}

// Delivery is one receipt of a message.
type Delivery struct {
	// Wake has no name of its message: see Named.
	Wake journal.Wake
	// Message is what the adapter calls the message, the same at every receipt and of
	// no other message.
	Message string
	// Receipt is the adapter's handle on this receipt.
	Receipt string
	// Receives counts receipts of this message, from 1.
	Receives int
	// SentAt is when the message was sent, if the adapter can tell.
	SentAt time.Time
}

// Named returns the wake with the name of its message and whether it came before, as a
// worker takes it.
func (d Delivery) Named() journal.Wake {
	w := d.Wake
	w.Message, w.Again = d.Message, d.Receives > 1
	return w
}
