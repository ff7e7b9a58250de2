package sqsqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Receive returns visible messages and hides them; see [queue.Queue]. It gets ten
// at most and polls for up to 20 seconds at a time. When its context ends it returns
// at once; what the poll under way is given after that is handed back in the
// background, for SQS would otherwise hide it from everybody.
//
// A message that is no wake is logged with its body and removed: it can never become
// one, and nothing is lost with it, because messages are pointers and the sweep sends
// for every session that is owed one.
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
	for remaining := p.Wait; ; {
		wait := min(max(remaining, 0), maxWait)
		messages, err := q.poll(ctx, min(p.Max, maxBatch), wait, p.Visibility)
		if err != nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		deliveries := q.read(ctx, messages)
		if remaining -= wait; len(deliveries) > 0 || remaining <= 0 {
			return deliveries, nil
		}
	}
}

type polled struct {
	messages []types.Message
	err      error
}

// poll asks SQS once. SQS does not notice that a waiting caller is gone, so the
// request is left to come to its end when ctx does.
func (q *Queue) poll(ctx context.Context, most int, wait, visibility time.Duration) ([]types.Message, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer := make(chan polled)
	asking := context.WithoutCancel(ctx)
	go func() {
		out, err := q.cfg.SQS.ReceiveMessage(asking, &sqs.ReceiveMessageInput{
			QueueUrl: &q.cfg.URL, MaxNumberOfMessages: int32(most), WaitTimeSeconds: seconds(wait),
			VisibilityTimeout: seconds(min(visibility, maxVisibility)),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{
				types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp,
			},
		}, q.within(wait))
		var p polled
		if p.err = q.explain(asking, err); err == nil {
			p.messages = out.Messages
		}
		select {
		case answer <- p:
		case <-ctx.Done():
			q.handBack(asking, p.messages)
		}
	}()
	select {
	case p := <-answer:
		return p.messages, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handBack makes messages visible again whose receiver no longer waits.
func (q *Queue) handBack(ctx context.Context, messages []types.Message) {
	for _, d := range q.read(ctx, messages) {
		if err := q.Postpone(ctx, d, 0); err != nil {
			q.cfg.Log.WarnContext(ctx, "hand a message back", "queue", q.name, "session", d.Wake.Key().String(), "error", err)
		}
	}
}

// read turns messages into deliveries.
func (q *Queue) read(ctx context.Context, messages []types.Message) []queue.Delivery {
	deliveries := make([]queue.Delivery, 0, len(messages))
	for _, m := range messages {
		d := queue.Delivery{
			Message: aws.ToString(m.MessageId), Receipt: aws.ToString(m.ReceiptHandle), Receives: 1, SentAt: sentAt(m.Attributes),
		}
		if n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err == nil {
			d.Receives = n
		}
		var err error
		if d.Wake, err = journal.ParseWake([]byte(aws.ToString(m.Body))); err != nil {
			q.remove(ctx, m, d, err)
			continue
		}
		deliveries = append(deliveries, d)
	}
	return deliveries
}

func sentAt(attributes map[string]string) time.Time {
	millis, err := strconv.ParseInt(attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// remove takes a message that is no wake out of the queue and says so.
func (q *Queue) remove(ctx context.Context, m types.Message, d queue.Delivery, reason error) {
	body := aws.ToString(m.Body)
	const most = 1024 // a wake has a hundred bytes
	if len(body) > most {
		body = body[:most] + "…"
	}
	q.cfg.Log.ErrorContext(ctx, "a message that is no wake is removed",
		"queue", q.name, "message", aws.ToString(m.MessageId), "sent", d.SentAt, "body", body, "error", reason)
	if err := q.Acknowledge(ctx, d); err != nil {
		// It comes again, and is removed then.
		q.cfg.Log.WarnContext(ctx, "remove a message", "queue", q.name, "message", aws.ToString(m.MessageId), "error", err)
	}
}
