//go:build linux

package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueueAPI is what a mapping asks of SQS.
type QueueAPI interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
}

// MappingConfig says what a mapping is. Queue, URL, ARN and Function are required.
type MappingConfig struct {
	Queue    QueueAPI
	URL      string
	ARN      string
	Function *Function
	// MaximumConcurrency is how many invocations there are at once (10).
	MaximumConcurrency int
	// IgnoreFailures is a mapping without ReportBatchItemFailures: what the
	// function answers does not matter, only whether it fails.
	IgnoreFailures bool
	// Wait is how long a poll waits for a message (1 s).
	Wait time.Duration
	// Deliveries decides how a message that was received is delivered: once after
	// each of these times, side by side. None at all means that it is lost until
	// it is visible again. nil delivers each at once and once.
	Deliveries func(types.Message) []time.Duration
	Log        func(format string, args ...any)
}

// Mapping polls a queue and invokes a function with each message, in batches of
// one. A message is deleted when the function has acknowledged it; else it is
// visible again when its time has passed, and goes to the dead letters by the
// queue's own policy. Its methods are safe for concurrent use.
type Mapping struct {
	cfg   MappingConfig
	slots chan struct{}
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu       sync.Mutex
	received int
	deleted  int
}

// Map starts a mapping. It works until ctx ends or it is closed.
func Map(ctx context.Context, cfg MappingConfig) *Mapping {
	if cfg.MaximumConcurrency == 0 {
		cfg.MaximumConcurrency = 10
	}
	if cfg.Wait == 0 {
		cfg.Wait = time.Second
	}
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	if cfg.Deliveries == nil {
		cfg.Deliveries = func(types.Message) []time.Duration { return []time.Duration{0} }
	}
	ctx, stop := context.WithCancel(ctx)
	m := &Mapping{cfg: cfg, stop: stop, slots: make(chan struct{}, cfg.MaximumConcurrency)}
	m.wg.Go(func() { m.poll(ctx) })
	return m
}

// Close stops the mapping and kills what it still works on.
func (m *Mapping) Close() {
	m.stop()
	m.wg.Wait()
}

// Busy is how many messages are being worked on.
func (m *Mapping) Busy() int { return len(m.slots) }

// Received counts messages received, Deleted those acknowledged.
func (m *Mapping) Received() int { m.mu.Lock(); defer m.mu.Unlock(); return m.received }

// Deleted counts messages that the function has acknowledged.
func (m *Mapping) Deleted() int { m.mu.Lock(); defer m.mu.Unlock(); return m.deleted }

func (m *Mapping) poll(ctx context.Context) {
	for {
		select {
		case m.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		message, err := m.receive(ctx)
		if message == nil {
			<-m.slots
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				m.cfg.Log("mapping of %s: %v", m.cfg.Function.Name(), err)
				time.Sleep(100 * time.Millisecond)
			}
			continue
		}
		m.mu.Lock()
		m.received++
		m.mu.Unlock()
		m.wg.Go(func() {
			defer func() { <-m.slots }()
			m.deliver(ctx, *message)
		})
	}
}

func (m *Mapping) receive(ctx context.Context) (*types.Message, error) {
	// Not cut off half-way: what was received then would be lost for a while.
	got, err := m.cfg.Queue.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
		QueueUrl: &m.cfg.URL, MaxNumberOfMessages: 1, WaitTimeSeconds: int32(m.cfg.Wait / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil || len(got.Messages) == 0 {
		return nil, err
	}
	return &got.Messages[0], nil
}

// deliver invokes the function, as often as the faults say, and deletes the
// message when one invocation acknowledges it.
func (m *Mapping) deliver(ctx context.Context, message types.Message) {
	var wg sync.WaitGroup
	for _, delay := range m.cfg.Deliveries(message) {
		wg.Go(func() {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
			if err := m.invoke(ctx, message); err != nil {
				m.cfg.Log("%s: message %s comes back: %v", m.cfg.Function.Name(), *message.Body, err)
				return
			}
			_, err := m.cfg.Queue.DeleteMessage(context.WithoutCancel(ctx), &sqs.DeleteMessageInput{
				QueueUrl: &m.cfg.URL, ReceiptHandle: message.ReceiptHandle,
			})
			if err != nil {
				m.cfg.Log("%s: delete message %s: %v", m.cfg.Function.Name(), *message.Body, err)
				return
			}
			m.mu.Lock()
			m.deleted++
			m.mu.Unlock()
		})
	}
	wg.Wait()
}

// invoke reports an error when the message was not acknowledged.
func (m *Mapping) invoke(ctx context.Context, message types.Message) error {
	event := Event(m.cfg.ARN, message)
	payload, err := json.Marshal(event)
	if err != nil {
		return err
	}
	answer, err := m.cfg.Function.Invoke(ctx, payload)
	if err != nil || m.cfg.IgnoreFailures {
		return err
	}
	return acknowledged(event, answer)
}

// Event is what a function gets of messages received from a queue.
func Event(arn string, messages ...types.Message) events.SQSEvent {
	var event events.SQSEvent
	for _, message := range messages {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: value(message.MessageId), ReceiptHandle: value(message.ReceiptHandle),
			Body: value(message.Body), Md5OfBody: value(message.MD5OfBody),
			Attributes: message.Attributes, MessageAttributes: map[string]events.SQSMessageAttribute{},
			EventSource: "aws:sqs", EventSourceARN: arn, AWSRegion: Region,
		})
	}
	return event
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ErrNotAcknowledged says that a function gave a message back.
var ErrNotAcknowledged = errors.New("not acknowledged")

// acknowledged reads the answer of a function with ReportBatchItemFailures.
// Nothing, null, {} and an empty list acknowledge the batch. JSON that cannot be
// read, and a failure that does not name a message of the batch, fail it whole.
func acknowledged(event events.SQSEvent, answer []byte) error {
	if len(answer) == 0 {
		return nil
	}
	var failures *struct {
		BatchItemFailures []map[string]any `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(answer, &failures); err != nil {
		if string(answer) == `""` {
			return nil // an empty string is an empty answer
		}
		return fmt.Errorf("%w: the answer cannot be read: %w", ErrNotAcknowledged, err)
	}
	if failures == nil || len(failures.BatchItemFailures) == 0 {
		return nil
	}
	for _, failure := range failures.BatchItemFailures {
		id, ok := failure["itemIdentifier"].(string)
		if !ok || id == "" || event.Records[0].MessageId != id {
			return fmt.Errorf("%w: %s names no message of the batch, so all of it fails", ErrNotAcknowledged, answer)
		}
	}
	return fmt.Errorf("%w: the function reports it as failed", ErrNotAcknowledged)
}
