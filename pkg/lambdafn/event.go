package lambdafn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// ErrUnknownEvent says that the event function knows no such event.
var ErrUnknownEvent = errors.New("unknown event")

// event begins sessions of events. Whose they are is EventTenant's word alone:
// nothing in an event is looked at for it.
type event struct {
	Config
	template *Template
}

// NewEvent returns the handler of the event function: events of EventBridge,
// notifications of SNS and S3, plain invocations. HTTP requests are none of its.
func NewEvent(cfg Config) (Handler, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if (session.Key{Tenant: cfg.EventTenant, ID: "x"}).Validate() != nil {
		return nil, fmt.Errorf("lambdafn: EventTenant %q is no tenant: use 1 to 128 letters, digits, _ or -", cfg.EventTenant)
	}
	h := &event{Config: cfg}
	if cfg.EventTemplate != "" {
		if h.template, err = ParseTemplate(cfg.EventTemplate); err != nil {
			return nil, fmt.Errorf("ADJOURN_EVENT_TEMPLATE: %w", err)
		}
	}
	return h, nil
}

// startEvent is what a session is started with: what a template renders, and the
// plain invocation {"agent", "input", "session"?, "idempotencyKey"?}.
type startEvent struct {
	Agent          string `json:"agent"`
	Input          string `json:"input"`
	Session        string `json:"session"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// asked is one session to start.
type asked struct {
	startEvent
	caller runtime.Caller
}

// startedEvent is what an event started.
type startedEvent struct {
	SessionID    string `json:"sessionId"`
	Task         int64  `json:"task"`
	CheckpointID string `json:"checkpointId"`
	// Replayed says that this event was seen before, and its session is the one it started then.
	Replayed bool `json:"replayed,omitempty"`
}

// Invoke starts the sessions of an event and answers with them. What keeps a session
// from being started is logged and returned as an error, though it be the event's own
// mistake: Lambda then repeats the event, which is harmless because its id is the
// idempotency key, and hands it to the function's failure destination, where somebody
// can see it. The sessions of an event's other records are started all the same.
func (h *event) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	soft, done := h.soften(ctx, requestMargin)
	defer done()
	result := struct {
		Sessions []startedEvent `json:"sessions"`
	}{Sessions: []startedEvent{}}
	var failed []error
	all, err := h.read(ctx, raw)
	if err != nil {
		h.Log.ErrorContext(ctx, "event refused", "error", shortly(err))
		failed = append(failed, err)
	}
	for i, a := range all {
		var started runtime.Started
		err := guard(func() (err error) {
			started, err = h.Runtime.Start(soft, runtime.StartParams{
				Key: session.Key{Tenant: h.EventTenant, ID: a.Session}, Agent: a.Agent, Input: llm.TextParts(a.Input),
				Caller: a.caller, IdempotencyKey: a.IdempotencyKey, Event: true,
			})
			return err
		})
		log := h.Log.With("who", a.caller.Who, "from", a.caller.From)
		if err != nil {
			logFailure(ctx, log, "event started no session", err, "code", string(runtime.AsError(err).Code))
			failed = append(failed, fmt.Errorf("start %d of %d: %s: %w", i+1, len(all), runtime.AsError(err).Code, err))
			continue
		}
		log.InfoContext(ctx, "event started session", "session", started.Key.ID, "tenant", started.Key.Tenant, "task", started.Task, "replayed", started.Replayed)
		result.Sessions = append(result.Sessions, startedEvent{
			SessionID: started.Key.ID, Task: started.Task, CheckpointID: started.Checkpoint, Replayed: started.Replayed,
		})
	}
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// read says what an event asks for.
func (h *event) read(ctx context.Context, raw []byte) ([]asked, error) {
	// Names by their exact case, which a struct would not ask for: records or event
	// of anybody's own are not those of AWS.
	var shape map[string]json.RawMessage
	_ = json.Unmarshal(raw, &shape) // what is no object is a plain event
	var records []json.RawMessage
	_ = json.Unmarshal(shape["Records"], &records)
	if ofHTTP(raw) {
		return nil, fmt.Errorf("%w: an HTTP request; the functions behind the API answer those", ErrUnknownEvent)
	}
	switch id := textOf(shape["id"]); {
	case textOf(shape["Service"]) == "Amazon S3" && textOf(shape["Event"]) == "s3:TestEvent":
		return nil, nil // sent when a notification is set up
	case len(records) > 0:
		return h.records(records)
	case id != "" && textOf(shape["detail-type"]) != "":
		// The same event played back from an archive is meant to happen again.
		a, err := h.fill(raw, "eventbridge", textOf(shape["source"]), id, textOf(shape["replay-name"]))
		return only(a, err)
	}
	if plain, err := readPlain(raw); err == nil {
		return []asked{h.plain(ctx, plain)}, nil
	} else if h.template == nil {
		return nil, fmt.Errorf(`%w: neither of a source that is known nor {"agent", "input", "session"?, "idempotencyKey"?} (%w), and there is no template: set ADJOURN_EVENT_TEMPLATE`, ErrUnknownEvent, err)
	}
	event, err := h.template.render(raw)
	return only(h.plain(ctx, event), err)
}

// textOf returns a text of JSON, "" where it is anything else.
func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // into "" as long as it is no text
	return text
}

func only(a asked, err error) ([]asked, error) {
	if err != nil {
		return nil, err
	}
	return []asked{a}, nil
}

// readPlain reads an event that says itself what to start.
func readPlain(raw []byte) (startEvent, error) {
	var event startEvent
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&event); err != nil {
		return startEvent{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return startEvent{}, errors.New("something follows the JSON object")
	}
	if event.Input == "" {
		return startEvent{}, errors.New(`it has no "input"`)
	}
	return event, nil
}

// plain is the start of an invocation without an id of its own. Lambda repeats an
// asynchronous one under the same request id.
func (h *event) plain(ctx context.Context, event startEvent) asked {
	a := asked{startEvent: event, caller: runtime.Caller{Who: "invoke"}}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		a.caller.From = lc.InvokedFunctionArn
		if a.IdempotencyKey == "" && lc.AwsRequestID != "" {
			a.IdempotencyKey = eventKey("invoke", lc.AwsRequestID)
		}
	}
	return a
}

// records are those of a notification, one session each.
func (h *event) records(records []json.RawMessage) ([]asked, error) {
	var all []asked
	var faults []error
	for i, raw := range records {
		a, err := h.record(raw)
		if err != nil {
			faults = append(faults, fmt.Errorf("record %d of %d: %w", i+1, len(records), err))
			continue
		}
		all = append(all, a)
	}
	return all, errors.Join(faults...)
}

func (h *event) record(raw json.RawMessage) (asked, error) {
	var source struct {
		EventSource string `json:"eventSource"`
	}
	if err := json.Unmarshal(raw, &source); err != nil {
		return asked{}, fmt.Errorf("%w: %w", ErrUnknownEvent, err)
	}
	switch source.EventSource {
	case "aws:sns":
		var r events.SNSEventRecord
		if err := json.Unmarshal(raw, &r); err != nil || r.SNS.MessageID == "" {
			return asked{}, fmt.Errorf("%w: a record of SNS without a message id", ErrUnknownEvent)
		}
		return h.fill(raw, "sns", r.SNS.TopicArn, r.SNS.MessageID)
	case "aws:s3":
		return h.recordS3(raw)
	}
	return asked{}, fmt.Errorf("%w: records of %q start no sessions; those of SNS and S3 do", ErrUnknownEvent, source.EventSource)
}

// recordS3 is a record of S3. Its id is the object's, with the sequencer that
// orders what happened to it; without one the request that made it happen.
func (h *event) recordS3(raw json.RawMessage) (asked, error) {
	var r events.S3EventRecord
	if err := json.Unmarshal(raw, &r); err != nil || r.S3.Bucket.Name == "" || r.S3.Object.Key == "" {
		return asked{}, fmt.Errorf("%w: a record of S3 without bucket or key", ErrUnknownEvent)
	}
	id := []string{r.EventName, r.S3.Bucket.Name, r.S3.Object.Key, r.S3.Object.VersionID, r.S3.Object.ETag, r.S3.Object.Sequencer}
	if r.S3.Object.Sequencer == "" {
		request := r.ResponseElements["x-amz-request-id"]
		if request == "" {
			return asked{}, fmt.Errorf("%w: a record of S3 without sequencer or x-amz-request-id", ErrUnknownEvent)
		}
		id = append(id, request)
	}
	return h.fill(raw, "s3", r.S3.Bucket.Name, id...)
}

// fill renders the template for an event of a source, known by its id.
func (h *event) fill(raw []byte, source, from string, id ...string) (asked, error) {
	if h.template == nil {
		return asked{}, fmt.Errorf("%w: an event of %s needs a template: set ADJOURN_EVENT_TEMPLATE", ErrUnknownEvent, source)
	}
	event, err := h.template.render(raw)
	if err != nil {
		return asked{}, err
	}
	event.IdempotencyKey = eventKey(source, id...)
	return asked{startEvent: event, caller: runtime.Caller{Who: source, From: from}}, nil
}

// eventKey is the idempotency key of an event that names none itself.
func eventKey(source string, id ...string) string {
	raw, err := json.Marshal(id)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return strings.Join([]string{"event", source, hex.EncodeToString(sum[:])}, " ")
}
