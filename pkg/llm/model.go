package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

// Model asks a language model for the next message of a conversation.
// Implementations are safe for concurrent use.
type Model interface {
	// Stream sends the request and yields what comes back, piece by piece. The
	// last event of a complete reply is EventStop. An error ends the stream; a
	// provider's error is an [*Error], so that the caller can tell what to do
	// about it. Adapters do not retry, and hold no more of a reply than [MaxReply].
	// The stream stops when ctx is done, with the error of [ContextError]. The
	// request is only read.
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Request is one question to a model.
type Request struct {
	System   string
	Messages []Message
	// Tools the model may call, sorted by name so that prefixes can be cached.
	Tools []ToolSpec
	// Choice is empty for the provider's default (auto).
	Choice ToolChoice
	// MaxOutputTokens is 0 for the provider's default.
	MaxOutputTokens int64
	// Delays holds one number for each model call of this task that failed and is
	// repeated later: how many messages there were then. Providers ignore it; scripts
	// find their place by it.
	Delays []int
}

// ToolSpec tells the model about one tool.
type ToolSpec struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object at its top.
	Schema json.RawMessage
}

// ToolChoice says whether the model may, must or must not call tools.
type ToolChoice string

// The tool choices.
const (
	ChoiceAuto     ToolChoice = "auto"
	ChoiceRequired ToolChoice = "required"
	ChoiceNone     ToolChoice = "none"
)

// EventKind says what an [Event] brings.
type EventKind string

// The kinds of event a stream is made of.
const (
	EventTextDelta      EventKind = "text_delta"
	EventReasoningDelta EventKind = "reasoning_delta"
	EventToolStart      EventKind = "tool_start"
	EventToolArgDelta   EventKind = "tool_arg_delta"
	EventOpaque         EventKind = "opaque"
	EventUsage          EventKind = "usage"
	EventStop           EventKind = "stop"
)

// Event is one piece of a streamed reply.
type Event struct {
	Kind EventKind
	// Index tells parts of the same kind apart: two parallel calls have two
	// indexes, and the deltas of a part carry the index it was started with.
	Index int
	// Text of a text, reasoning or argument delta.
	Text string
	// ToolCall of EventToolStart: ProviderID and Name; arguments follow as deltas.
	ToolCall ToolCall
	// Provider and Opaque of EventOpaque belong to the reasoning part at Index.
	Provider string
	Opaque   []byte
	// Usage of EventUsage replaces what was said before.
	Usage Usage
	// Stop of EventStop; with it, where the provider says so, the id of its
	// response, the model that answered, and what the reply cost, in millionths
	// of the agent's currency.
	Stop       StopReason
	ResponseID string
	Model      string
	CostMicros int64
}

// StopReason is why the model stopped.
type StopReason string

// The reasons to stop.
const (
	StopEnd       StopReason = "end"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	StopRefused   StopReason = "refused"
	// StopNeedsInput: the text is a question to a person, without whom the model
	// cannot go on. Scripts return it; an agent's policy can treat every text as one.
	StopNeedsInput StopReason = "needs_input"
)

// Usage counts tokens. Input is the total with the cached part inside; Output
// is the total with Reasoning inside.
type Usage struct {
	Input      int64 `json:"input,omitempty"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Output     int64 `json:"output,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
	}
}

// Total is what a token limit counts: input and output.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Reply is a complete answer of a model.
type Reply struct {
	Message Message
	Usage   Usage
	Stop    StopReason
	// ResponseID and Model are the provider's, where it says so: the id of its
	// response, the model that answered.
	ResponseID string
	Model      string
	// CostMicros is what the reply cost, where the model says so: in millionths of
	// the agent's currency.
	CostMicros int64
}

// ErrBrokenStream is the cause of the error of a reply that ended before its stop event.
var ErrBrokenStream = errors.New("llm: stream ended before the reply was complete")

// The largest reply that is accepted: many times the longest that models write. A
// larger one comes from a server that is broken, or that is no model.
const (
	// MaxReply is how many bytes a reply may have in sum: text, reasoning, calls with
	// their arguments.
	MaxReply = 8 << 20
	// MaxParts is how many parts it may have: texts, calls.
	MaxParts = 1000
)

// ErrTooLarge is the cause of the error of a reply larger than [MaxReply] or [MaxParts].
var ErrTooLarge = errors.New("llm: the reply is too large")

// TooLarge returns the error of a reply that is larger than [MaxReply] or [MaxParts].
func TooLarge() *Error {
	return &Error{
		Class: ClassInvalid, Cause: ErrTooLarge,
		Message: fmt.Sprintf("the reply is too large and was dropped: it has more than %d MiB or %d parts, and no model writes that much. Set MaxOutputTokens, or check the model's server", MaxReply>>20, MaxParts),
	}
}

// Collect reads a stream to its end and returns the whole reply. Each event is
// also handed to watch, if there is one. A stream that ends without EventStop is
// an [*Error] of class overloaded (it may be tried again) with ErrBrokenStream
// as its cause. Of a reply larger than [MaxReply] or [MaxParts] no more is read; the
// error is [TooLarge].
func Collect(events iter.Seq2[Event, error], watch func(Event)) (Reply, error) {
	var c collector
	for event, err := range events {
		if err != nil {
			return Reply{}, err
		}
		if c.size += event.size(); c.size > MaxReply {
			return Reply{}, TooLarge()
		}
		if watch != nil {
			watch(event)
		}
		c.add(event)
		if len(c.parts) > MaxParts {
			return Reply{}, TooLarge()
		}
		if event.Kind == EventStop {
			return c.reply(), nil
		}
	}
	return Reply{}, &Error{Class: ClassOverloaded, Message: "the stream broke off", Cause: ErrBrokenStream}
}

// Events returns the stream that [Collect] folds into reply. An adapter that got its
// answer in one piece yields it. An empty Stop follows from the calls; parts that no
// event can carry (images, files, results) are left out.
func Events(reply Reply) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		counts := map[PartKind]int{}
		stop := StopEnd
		for _, p := range reply.Message.Parts {
			index := counts[p.Kind]
			counts[p.Kind]++
			if p.Kind == PartToolCall && p.ToolCall != nil {
				stop = StopToolCalls
			}
			for _, e := range p.events(index) {
				if !yield(e) {
					return
				}
			}
		}
		if reply.Usage != (Usage{}) && !yield(Event{Kind: EventUsage, Usage: reply.Usage}) {
			return
		}
		if reply.Stop != "" {
			stop = reply.Stop
		}
		yield(Event{Kind: EventStop, Stop: stop, ResponseID: reply.ResponseID, Model: reply.Model, CostMicros: reply.CostMicros})
	}
}

func (p Part) events(index int) []Event {
	switch p.Kind {
	case PartText:
		return []Event{{Kind: EventTextDelta, Index: index, Text: p.Text}}
	case PartReasoning:
		var events []Event
		if p.Text != "" {
			events = append(events, Event{Kind: EventReasoningDelta, Index: index, Text: p.Text})
		}
		if p.Opaque != nil {
			events = append(events, Event{Kind: EventOpaque, Index: index, Provider: p.Provider, Opaque: p.Opaque})
		}
		return events
	case PartToolCall:
		if p.ToolCall == nil {
			return nil
		}
		start := ToolCall{ProviderID: p.ToolCall.ProviderID, Name: p.ToolCall.Name}
		return []Event{
			{Kind: EventToolStart, Index: index, ToolCall: start},
			{Kind: EventToolArgDelta, Index: index, Text: string(p.ToolCall.Arguments)},
		}
	case PartToolResult, PartImage, PartFile:
	}
	return nil
}

type partKey struct {
	kind  PartKind
	index int
}

type collector struct {
	parts   []Part
	buffers [][]byte
	at      map[partKey]int
	usage   Usage
	stop    Event
	size    int
}

// size is how many bytes an event may add to a reply.
func (e Event) size() int {
	return len(e.Text) + len(e.ToolCall.ID) + len(e.ToolCall.ProviderID) + len(e.ToolCall.Name) + len(e.ToolCall.Arguments) + len(e.Provider) + len(e.Opaque)
}

func (c *collector) part(kind PartKind, index int) int {
	key := partKey{kind, index}
	if i, ok := c.at[key]; ok {
		return i
	}
	if c.at == nil {
		c.at = map[partKey]int{}
	}
	c.parts = append(c.parts, Part{Kind: kind})
	c.buffers = append(c.buffers, nil)
	c.at[key] = len(c.parts) - 1
	return len(c.parts) - 1
}

func (c *collector) add(e Event) {
	switch e.Kind {
	case EventTextDelta:
		i := c.part(PartText, e.Index)
		c.buffers[i] = append(c.buffers[i], e.Text...)
	case EventReasoningDelta:
		i := c.part(PartReasoning, e.Index)
		c.buffers[i] = append(c.buffers[i], e.Text...)
	case EventOpaque:
		i := c.part(PartReasoning, e.Index)
		c.parts[i].Provider, c.parts[i].Opaque = e.Provider, e.Opaque
	case EventToolStart:
		i := c.part(PartToolCall, e.Index)
		call := e.ToolCall
		c.parts[i].ToolCall = &call
		c.buffers[i] = append(c.buffers[i], call.Arguments...)
	case EventToolArgDelta:
		i := c.part(PartToolCall, e.Index)
		c.buffers[i] = append(c.buffers[i], e.Text...)
	case EventUsage:
		c.usage = e.Usage
	case EventStop:
		c.stop = e
	}
}

func (c *collector) reply() Reply {
	m := Message{Role: RoleAssistant}
	for i, p := range c.parts {
		switch p.Kind {
		case PartToolCall:
			if p.ToolCall == nil {
				continue // arguments of a call that was never started
			}
			p.ToolCall.Arguments = Arguments(c.buffers[i])
		case PartText, PartReasoning:
			p.Text = string(c.buffers[i])
			if p.Text == "" && p.Opaque == nil {
				continue
			}
		case PartToolResult, PartImage, PartFile:
		}
		m.Parts = append(m.Parts, p)
	}
	return Reply{Message: m, Usage: c.usage, Stop: c.stop.Stop, ResponseID: c.stop.ResponseID, Model: c.stop.Model, CostMicros: c.stop.CostMicros}
}

// Arguments makes JSON of what a model wrote as a call's arguments: nothing
// means {}, and text that is not valid JSON becomes a JSON string, so that it
// can be stored, shown and refused by the tool's schema. The form is the one
// encoding/json writes, so that arguments have the same bytes (and digest)
// before and after they were stored.
func Arguments(raw []byte) json.RawMessage {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\uFFFD"))
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	if stored, err := json.Marshal(json.RawMessage(raw)); err == nil {
		return stored
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return json.RawMessage(`{}`) // a string always has a JSON form
	}
	return text
}
