package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
)

// Queue is the queue in the file. What a process received is visible to others
// the moment that process is dead, if its owner is one of [NewOwner].
type Queue struct {
	db   *DB
	dead bool        // the dead letters
	only session.Key // zero: all sessions
}

var _ queue.Queue = (*Queue)(nil)

// Only returns a view of the queue that receives messages of one session.
func (q *Queue) Only(key session.Key) *Queue {
	view := *q
	view.only = key
	return &view
}

func (q *Queue) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, datafile.Explain(err, queue.ErrUnavailable))
}

type sendOp struct {
	job
	dead  bool
	wakes []journal.Wake
}

// Send enqueues wakes; see [queue.Queue].
func (q *Queue) Send(ctx context.Context, wakes ...journal.Wake) error {
	if len(wakes) == 0 {
		return nil
	}
	for i := range wakes {
		if err := wakes[i].Key().Validate(); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	o := &sendOp{dead: q.dead, wakes: append([]journal.Wake(nil), wakes...), job: job{durable: true}}
	return q.fail("send", q.db.do(ctx, o))
}

func (o *sendOp) run(w *writer) error { return w.send(o.dead, o.wakes) }

// Receive returns visible messages and hides them; see [queue.Queue]. Messages
// sent by this process wake it at once, those of others within 20 ms.
func (q *Queue) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	if p.Max == 0 {
		p.Max = 1
	}
	switch {
	case p.Max < 1 || p.Max > 64:
		return nil, fmt.Errorf("receive: max %d: use 1 to 64", p.Max)
	case p.Visibility <= 0:
		return nil, fmt.Errorf("receive: visibility %v: it must be more than nothing", p.Visibility)
	}
	// Not durable: a receipt that power loss undoes leaves the message to be
	// received again, as any crash does.
	r := &receiveOp{dead: q.dead, only: q.only, max: p.Max, visibility: p.Visibility, patient: p.Wait > 0}
	deliveries, err := q.db.receive(ctx, r, p.Wait)
	return deliveries, q.fail("receive", err)
}

func (db *DB) receive(ctx context.Context, r *receiveOp, wait time.Duration) ([]queue.Delivery, error) {
	r.done = make(chan struct{}, 1)
	if _, err := db.submit(ctx, r); err != nil {
		return nil, err
	}
	var over <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		over = t.C
	}
	stop := ctx.Done()
	for {
		select {
		case <-r.done:
		case <-stop:
			if r.withdraw(true) {
				return nil, context.Cause(ctx)
			}
			stop = nil // too late: it has been given something, or is about to be
			continue
		case <-over:
			if r.withdraw(false) {
				return nil, nil
			}
			continue
		case <-db.closed:
			select {
			case <-r.done:
			default:
				return nil, datafile.ErrClosed
			}
		}
		if r.err == nil && len(r.deliveries) == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return r.deliveries, r.err
	}
}

type acknowledgeOp struct {
	job
	receipts []row.Receipt
}

// Acknowledge removes messages; see [queue.Queue]. It does not wait for the
// disk: the removal shares the next transaction, milliseconds later at most.
// A process that dies in between leaves a message that is received again, as it
// would have been had it died just before.
func (q *Queue) Acknowledge(ctx context.Context, deliveries ...queue.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	o := &acknowledgeOp{receipts: make([]row.Receipt, len(deliveries)), job: job{lazy: true}}
	for i := range deliveries {
		var err error
		if o.receipts[i], err = row.ParseReceipt(deliveries[i].Receipt); err != nil {
			return q.fail("acknowledge", err)
		}
	}
	_, err := q.db.submit(ctx, o)
	return q.fail("acknowledge", err)
}

func (o *acknowledgeOp) run(w *writer) error {
	for _, r := range o.receipts {
		if _, err := w.c.Exec(stmtAcknowledge, r.Message, boolInt(r.Dead), r.Receives); err != nil {
			return err
		}
	}
	return nil
}

type postponeOp struct {
	job
	receipt row.Receipt
	delay   time.Duration
}

// Postpone makes a message visible after a delay; see [queue.Queue].
func (q *Queue) Postpone(ctx context.Context, delivery queue.Delivery, delay time.Duration) error {
	r, err := row.ParseReceipt(delivery.Receipt)
	if err != nil {
		return q.fail("postpone", err)
	}
	return q.fail("postpone", q.db.do(ctx, &postponeOp{receipt: r, delay: max(delay, 0)}))
}

func (o *postponeOp) run(w *writer) error {
	visible := w.db.now().Add(min(o.delay, journal.MaxAhead))
	w.expect(visible)
	_, err := w.c.Exec(stmtPostpone, row.Nanos(visible), o.receipt.Message, boolInt(o.receipt.Dead), o.receipt.Receives)
	return err
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
