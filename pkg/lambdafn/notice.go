package lambdafn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// NoticeSender sends notices.
type NoticeSender interface {
	// Send sends what is left to send of a notice of a session, and records what became of it.
	Send(ctx context.Context, key session.Key, id string) error
	// Test sends a test message, of that id, to a channel.
	Test(ctx context.Context, channel, id string) error
}

// notices is the function that sends notices.
type notices struct{ Config }

// NewNotice returns the handler of the notice function: an SQS event brings pointers to notices, an
// operator's own invocation {"test": "webhook"} tries a channel.
func NewNotice(cfg Config) (Handler, error) {
	cfg, err := cfg.checkClock()
	if err == nil && cfg.Notices == nil {
		err = errors.New("lambdafn: Notices is required")
	}
	if err != nil {
		return nil, err
	}
	return &notices{cfg}, nil
}

// Invoke sends one notice after the other, and answers with the messages that shall come again: those
// whose notice could not be read or written. A channel that failed is no such failure. Where none of them
// is done the invocation has failed: Lambda counts errors, for which there is an alarm, and no such answers.
func (h *notices) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	var event struct {
		events.SQSEvent
		Test string `json:"test"`
	}
	if err := json.Unmarshal(raw, &event); err != nil {
		return nil, fmt.Errorf("notice: neither an SQS event nor a test: %w", err)
	}
	if event.Test != "" {
		if err := h.Notices.Test(ctx, event.Test, fmt.Sprint(h.Now().UnixNano())); err != nil {
			return nil, fmt.Errorf("notice: test of %s: %w", event.Test, err)
		}
		return json.Marshal(struct {
			Sent string `json:"sent"`
		}{event.Test})
	}
	if event.Records == nil {
		return nil, errors.New("notice: neither an SQS event nor a test")
	}
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var failed error
	for i := range event.Records {
		m := &event.Records[i]
		if m.MessageId == "" { // it could not be reported alone
			return nil, fmt.Errorf("notice: record %d has no messageId", i+1)
		}
		if err := h.one(ctx, m); err != nil {
			failed = err
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	if failed != nil && len(response.BatchItemFailures) == len(event.Records) {
		return nil, fmt.Errorf("notice: none of %d messages is done: %w", len(event.Records), failed)
	}
	return json.Marshal(response)
}

// one sends a notice. An error is one of the store's, or a panic: its message shall come again.
func (h *notices) one(ctx context.Context, m *events.SQSMessage) error {
	log := h.Log.With("message", m.MessageId)
	wake, err := journal.ParseNoticeWake([]byte(m.Body))
	if err != nil { // it will never be readable
		log.ErrorContext(ctx, "unreadable message dropped", "bytes", len(m.Body), "error", shortly(err))
		return nil
	}
	log = log.With("session", wake.ID, "tenant", wake.Tenant, "notice", wake.Notice)
	soft, done := h.soften(ctx, requestMargin)
	defer done()
	if err := guard(func() error { return h.Notices.Send(soft, wake.Key(), wake.Notice) }); err != nil {
		logFailure(ctx, log, "message failed", err)
		return err
	}
	log.InfoContext(ctx, "message done")
	return nil
}
