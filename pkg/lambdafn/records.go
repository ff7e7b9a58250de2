package lambdafn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// How long a message waits whose delivery failed: 2 s after the first receipt,
// twice as long after each further one, at most a minute. The queue gives it ten
// receipts before it is a dead letter.
const (
	retryFirst = 2 * time.Second
	retryMost  = time.Minute
	// newerAfter is how long a message waits that only a newer program can read.
	newerAfter = time.Minute
	// afterwards bounds what is done with a message once it was worked on.
	afterwards = 5 * time.Second
)

// records works on the messages of an SQS event and says which of them shall come
// again. A message is put off by its visibility before it is reported as failed,
// because one that is only reported comes again when its visibility ends, minutes
// later.
type records struct {
	Config
	queue queue.Queue
	work  func(context.Context, journal.Wake) (runtime.Disposition, error)
}

// Invoke answers with the messages that shall come again: an empty list when all
// are done, for a null would fail the whole batch.
func (h *records) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	var event events.SQSEvent
	if err := json.Unmarshal(raw, &event); err != nil {
		return nil, fmt.Errorf("not an SQS event: %w", err)
	}
	if event.Records == nil {
		return nil, errors.New("not an SQS event: it has no Records")
	}
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	again := make([]bool, len(event.Records))
	var all sync.WaitGroup
	for i := range event.Records {
		// An unknown id among the failures fails the whole batch, so one without an
		// id cannot be reported alone.
		if event.Records[i].MessageId == "" {
			return nil, fmt.Errorf("not an SQS event: record %d has no messageId", i+1)
		}
		all.Go(func() { again[i] = h.one(ctx, &event.Records[i]) })
	}
	all.Wait()
	for i, failed := range again {
		if failed {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: event.Records[i].MessageId})
		}
	}
	return json.Marshal(response)
}

// one works on a message and reports whether it shall come again.
func (h *records) one(ctx context.Context, m *events.SQSMessage) (again bool) {
	log := h.Log.With("message", m.MessageId)
	wake, err := journal.ParseWake([]byte(m.Body))
	if err != nil {
		// It will never be readable: kept, it would only be a dead letter later.
		log.ErrorContext(ctx, "unreadable message dropped", "bytes", len(m.Body), "error", shortly(err))
		return false
	}
	d := delivery(m, wake)
	log = log.With("session", wake.ID, "tenant", wake.Tenant, "seq", wake.Seq, "kind", string(wake.Kind), "receives", d.Receives)
	if wake.V > journal.WakeVersion {
		log.WarnContext(ctx, "message of a newer program kept", "version", wake.V)
		h.putOff(ctx, log, d, newerAfter)
		return true
	}
	began := h.Now()
	soft, done := h.soften(ctx, workMargin)
	defer done()
	var disposition runtime.Disposition
	err = guard(func() (err error) {
		disposition, err = h.work(soft, d.Named())
		return err
	})
	log = log.With("ms", h.Now().Sub(began).Milliseconds())
	switch {
	case err != nil:
		wait := retryAfter(m.MessageId, d.Receives)
		logFailure(ctx, log, "message failed", err, "retry", wait.String())
		h.putOff(ctx, log, d, wait)
		return true
	case disposition.Keep > 0:
		wait := disposition.KeepAfter(d.Receives)
		log.InfoContext(ctx, "message kept", "keep", wait.String())
		h.putOff(ctx, log, d, wait)
		return true
	}
	log.InfoContext(ctx, "message done")
	return false
}

// putOff makes a message visible again after a time. Where that fails it comes
// again all the same, when its visibility ends.
func (h *records) putOff(ctx context.Context, log *slog.Logger, d queue.Delivery, wait time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, afterwards)
	defer cancel()
	err := guard(func() error { return h.queue.Postpone(bounded, d, wait) })
	if err != nil {
		logFailure(ctx, log, "message not put off: it comes again when its visibility ends", err)
	}
}

// delivery is the queue's view of a message that the event source received.
func delivery(m *events.SQSMessage, wake journal.Wake) queue.Delivery {
	d := queue.Delivery{Wake: wake, Message: m.MessageId, Receipt: m.ReceiptHandle, Receives: 1}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil && n > 0 {
		d.Receives = n
	}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms).UTC()
	}
	return d
}

// retryAfter spreads retries by up to a quarter, by the message's id, so that
// what failed together does not come again together.
func retryAfter(id string, receives int) time.Duration {
	wait := retryMost
	if receives < 6 {
		wait = retryFirst << (receives - 1)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id + strconv.Itoa(receives)))
	return wait + wait/4*time.Duration(hash.Sum32()%1000)/1000
}

// NewStep returns the handler of the step function: each message of its SQS event
// is one delivery ([runtime.Runtime.Deliver]).
func NewStep(cfg Config) (Handler, error) {
	cfg, err := cfg.check()
	if err == nil && cfg.Queue == nil {
		err = errors.New("lambdafn: Queue is required")
	}
	if err != nil {
		return nil, err
	}
	return &records{Config: cfg, queue: cfg.Queue, work: cfg.Runtime.Deliver}, nil
}
