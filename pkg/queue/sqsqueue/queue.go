// Package sqsqueue is the queue on Amazon SQS.
//
// A message is the JSON of a wake and nothing more, far below 64 KB, on a standard
// queue. Its MessageGroupId is the tenant: SQS then serves the others first when one
// tenant has most of what is in flight (fair queues); it orders nothing and drops
// nothing. The queue's redrive policy counts receipts and moves what was received
// too often to the dead letters.
package sqsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// API is what the queue calls of [sqs.Client].
type API interface {
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, options ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, options ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// Config says which queue. SQS and URL are required.
type Config struct {
	// SQS is usually an [sqs.Client]. Throttled and failed attempts are repeated
	// by its retryer; it needs no timeout of its own.
	SQS API
	URL string
	// AttemptTimeout is how long one attempt of a request may take (3 s), beside
	// what a Receive waits: the SDK itself waits for ever on a dead connection.
	AttemptTimeout time.Duration
	// Log receives a line for each message that is not a wake.
	Log *slog.Logger
}

// Queue is one queue of SQS; see [queue.Queue]. SQS counts in whole seconds, so
// delays, waits and visibilities are rounded up to them.
type Queue struct {
	cfg  Config
	name string // the end of the URL, for errors
}

var _ queue.Queue = (*Queue)(nil)

// Limits of SQS.
const (
	maxDelay = 15 * time.Minute
	maxWait  = 20 * time.Second
	maxBatch = 10
	// maxVisibility counts from the receive, whose time Postpone does not have; no function
	// works longer than 15 minutes on a message.
	maxVisibility = 12*time.Hour - 20*time.Minute
)

// New checks the configuration and fills in the defaults. It sends no request.
func New(cfg Config) (*Queue, error) {
	switch {
	case cfg.SQS == nil:
		return nil, errors.New("sqsqueue: SQS is required")
	case cfg.URL == "":
		return nil, errors.New("sqsqueue: URL is required")
	case cfg.AttemptTimeout < 0:
		return nil, fmt.Errorf("sqsqueue: AttemptTimeout is %v", cfg.AttemptTimeout)
	}
	if cfg.AttemptTimeout == 0 {
		cfg.AttemptTimeout = 3 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Queue{cfg: cfg, name: cfg.URL[strings.LastIndexByte(cfg.URL, '/')+1:]}, nil
}

// Send enqueues wakes one by one; see [queue.Queue]. A wake with a Delay of more
// than 15 minutes is not sent: SQS holds nothing back for longer, and the sweep finds
// its session when the time has come. A message whose answer was lost is sent again
// and arrives twice.
func (q *Queue) Send(ctx context.Context, wakes ...journal.Wake) error {
	for _, w := range wakes {
		if err := q.send(ctx, w); err != nil {
			return fmt.Errorf("send wake for entry %d of session %s: %w", w.Seq, w.Key(), err)
		}
	}
	return nil
}

func (q *Queue) send(ctx context.Context, w journal.Wake) error {
	if err := w.Key().Validate(); err != nil {
		return err
	}
	if w.Delay > maxDelay {
		return nil
	}
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	_, err = q.cfg.SQS.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.cfg.URL, MessageBody: aws.String(string(body)),
		MessageGroupId: aws.String(w.Tenant), DelaySeconds: seconds(w.Delay),
	}, q.within(0))
	return q.explain(ctx, err)
}

// Acknowledge removes messages; see [queue.Queue].
func (q *Queue) Acknowledge(ctx context.Context, deliveries ...queue.Delivery) error {
	for _, d := range deliveries {
		_, err := q.cfg.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.cfg.URL, ReceiptHandle: aws.String(d.Receipt)}, q.within(0))
		if err = q.explain(ctx, err); err != nil && !holdsNothing(err) {
			return fmt.Errorf("acknowledge wake for entry %d of session %s: %w", d.Wake.Seq, d.Wake.Key(), err)
		}
	}
	return nil
}

// Postpone makes a message visible after a delay; see [queue.Queue]. It needs
// nothing of the delivery but the receipt, so one from a Lambda event will do.
// SQS hides nothing for more than 12 hours, so a longer delay ends then. A receipt
// that is over (the message is gone, or visible again) is no error.
func (q *Queue) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	_, err := q.cfg.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.cfg.URL, ReceiptHandle: aws.String(d.Receipt), VisibilityTimeout: seconds(min(delay, maxVisibility)),
	}, q.within(0))
	if err = q.explain(ctx, err); err != nil && !holdsNothing(err) {
		return fmt.Errorf("postpone wake for entry %d of session %s: %w", d.Wake.Seq, d.Wake.Key(), err)
	}
	return nil
}

// seconds rounds up: early would break a promise, late breaks none.
func seconds(d time.Duration) int32 {
	return int32(min((max(d, 0)+time.Second-1)/time.Second, 1<<30))
}

// explain turns what the SDK returned into an error of the port. If the context has ended, the
// error is its cause.
func (q *Queue) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, q.name, err)
}

// holdsNothing reports whether SQS refused a receipt because it is over.
func holdsNothing(err error) bool {
	var over *types.MessageNotInflight
	var invalid *types.ReceiptHandleIsInvalid
	if errors.As(err, &over) || errors.As(err, &invalid) {
		return true
	}
	// What AWS says of a message that is gone has no type of its own.
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "InvalidParameterValue" &&
		strings.Contains(api.ErrorMessage(), "not available for visibility timeout change")
}
