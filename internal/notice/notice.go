// Package notice sends notices from the outbox to channels outside.
//
// The outbox (internal/outbox) writes them; here is how they are sent: claimed, sent, recorded, with
// a schedule of tries. A channel is an adapter in a room below.
package notice

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Channel is where notices go.
type Channel interface {
	// Name is unique among the channels of a program, and stays: notices are stored with it.
	Name() string
	// Send sends a message once. What it returns is kept as the reference of the send, also beside an
	// error, and is in the message the next time. An error that wraps [ErrPermanent] is not tried
	// again; a [*LaterError] says when the next try may be.
	Send(ctx context.Context, m Message) (reference json.RawMessage, err error)
}

// EventBridge is the name of the channel to an event bus. It stands here so that a program that only
// reads the names does not link the AWS SDK.
const EventBridge = "eventbridge"

// ErrPermanent says that no further try can succeed.
var ErrPermanent = errors.New("not tried again")

// LaterError is a failure after which the other side asks to wait.
type LaterError struct {
	Cause error
	After time.Duration
}

// Error says what failed.
func (e *LaterError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *LaterError) Unwrap() error { return e.Cause }

// Schedule is how long after each failed try the next one is: that of the specification of Standard
// Webhooks, about three days in all. After the last of them a notice is given up.
var Schedule = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Message is one notice on its way to one channel.
type Message struct {
	// ID is the same at every try: who has seen it has seen the message.
	ID string
	// Key of the session; zero in a test of the channel.
	Key    session.Key
	Notice journal.Notice
	// Reference is what the try before, if any, has left.
	Reference json.RawMessage

	sender *Sender
}

// Opening is what became, at a channel, of the notice that told that a wait was opened; nil when
// there was none.
func (m Message) Opening(ctx context.Context, channel, wait string) (*journal.NoticeSend, error) {
	if m.sender == nil {
		return nil, nil //nolint:nilnil // a test has nothing before it
	}
	return m.sender.opening(ctx, m.Key, channel, wait)
}

// Record is the record of a wait as it is now; nil where the wait is there no more.
func (m Message) Record(ctx context.Context, wait string) (*journal.WaitRecord, error) {
	if m.sender == nil {
		return nil, nil //nolint:nilnil // a test is about no wait
	}
	return m.sender.record(ctx, m.Key, wait)
}

// Shows is what a channel's messages have beside what every one tells.
type Shows struct {
	// Arguments of the calls that wait.
	Arguments bool
	// Links by which whoever reads them decides, one for each person who is asked.
	Links bool
}

// Payload is the message as JSON for channels that take any ([Payload]).
func (m Message) Payload(ctx context.Context, shows Shows) (Payload, error) {
	p := Payload{Type: m.Notice.Type, Timestamp: m.Notice.At, Data: Data{
		Tenant: m.Key.Tenant, Session: m.Key.ID, Agent: m.Notice.Agent, Version: m.Notice.Seq, Failure: m.Notice.Failure,
	}}
	if m.sender == nil {
		return p, nil
	}
	p.Data.Link = m.Link("")
	room := maxArguments
	for _, w := range m.Notice.Waits {
		told := Wait{NoticeWait: w}
		if w.Decision == "" {
			told.Link = m.Link(w.ID)
		}
		var record *journal.WaitRecord
		var err error
		if shows.Arguments || shows.Links && w.Decision == "" {
			if record, err = m.sender.record(ctx, m.Key, w.ID); err != nil {
				return Payload{}, err
			}
		}
		if shows.Links && w.Decision == "" {
			if told.Links, err = m.links(record, w); err != nil {
				return Payload{}, err
			}
		}
		if shows.Arguments {
			var raw json.RawMessage
			if record != nil {
				raw = record.Wait.Arguments
			}
			if told.ArgumentsBytes = len(raw); len(raw) <= room {
				told.Arguments, told.ArgumentsBytes = raw, 0
				room -= len(raw)
			}
		}
		p.Data.Waits = append(p.Data.Waits, told)
	}
	return p, nil
}

// Link leads a person to the session, or to one of its waits; empty where nothing is known that does.
func (m Message) Link(wait string) string {
	if m.sender == nil || m.sender.cfg.Link == nil {
		return ""
	}
	return m.sender.cfg.Link(m.Key, wait)
}

// maxArguments bounds the arguments that go with one message, in bytes.
const maxArguments = 64 << 10

// Payload is what channels send that take any JSON: the envelope of Standard Webhooks.
type Payload struct {
	Type      journal.NoticeType `json:"type"`
	Timestamp time.Time          `json:"timestamp"`
	Data      Data               `json:"data"`
}

// Data is what a notice tells. Messages, results and reasons are in none.
type Data struct {
	Tenant  string `json:"tenant"`
	Session string `json:"session"`
	Agent   string `json:"agent,omitempty"`
	// Version is the number of the entry that is told; of a decision, that of the entry that asked.
	Version int64 `json:"version,omitempty"`
	// Failure is the code of why the task failed.
	Failure string `json:"failure,omitempty"`
	Link    string `json:"link,omitempty"`
	Waits   []Wait `json:"waits,omitempty"`
}

// Wait is one wait of a notice.
type Wait struct {
	journal.NoticeWait
	Link string `json:"link,omitempty"`
	// Links decide, and are there only if the channel says so.
	Links []RecipientLink `json:"links,omitempty"`
	// Arguments are there only if the channel says so; ArgumentsBytes says how long they are where
	// they are too long to be sent.
	Arguments      json.RawMessage `json:"arguments,omitempty"`
	ArgumentsBytes int             `json:"argumentsBytes,omitempty"`
}
