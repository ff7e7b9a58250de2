package llm

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a [Message].
type Role string

// The roles. The system prompt is not a message: it travels in [Request.System].
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation, in parts.
//
// A tool message holds the results of the calls of the assistant message
// before it, in the order of the calls.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// PartKind says which of the fields of a [Part] count.
type PartKind string

// The kinds of part.
const (
	PartText       PartKind = "text"
	PartReasoning  PartKind = "reasoning"
	PartToolCall   PartKind = "tool_call"
	PartToolResult PartKind = "tool_result"
	PartImage      PartKind = "image"
	PartFile       PartKind = "file"
)

// Part is one piece of a [Message]. Kind says which field is set: Text for
// text and reasoning, ToolCall, ToolResult, or File for images and files.
type Part struct {
	Kind PartKind `json:"kind"`

	// Text of a text part, or the readable form of a reasoning part.
	Text string `json:"text,omitempty"`

	// Provider names the adapter that wrote Opaque: openai, anthropic, bedrock.
	Provider string `json:"provider,omitempty"`
	// Opaque holds the provider's own form of this part (signatures, encrypted
	// reasoning). It goes back verbatim to the same provider and to no other.
	Opaque []byte `json:"opaque,omitempty"`

	ToolCall   *ToolCall   `json:"toolCall,omitempty"`
	ToolResult *ToolResult `json:"toolResult,omitempty"`
	File       *FileRef    `json:"file,omitempty"`
}

// ToolCall asks for one run of a tool.
type ToolCall struct {
	// ID is ours: c<seq of the reply>-<i>, fixed when the reply is committed.
	// It is empty in what a model returns.
	ID string `json:"id,omitempty"`
	// ProviderID is what the provider calls it; it goes back to providers only.
	ProviderID string `json:"providerId,omitempty"`
	Name       string `json:"name"`
	// Arguments is what the model wrote: JSON, as a rule an object. What is not
	// valid JSON is kept as a JSON string, so that the model can be told.
	Arguments json.RawMessage `json:"arguments"`
}

// ResultStatus is how a call ended. Every declared call ends in exactly one.
type ResultStatus string

// The ways a call can end.
const (
	ResultSuccess   ResultStatus = "success"
	ResultError     ResultStatus = "error"
	ResultDenied    ResultStatus = "denied"
	ResultCancelled ResultStatus = "cancelled"
	ResultTimedOut  ResultStatus = "timed_out"
	ResultUnknown   ResultStatus = "unknown"
)

// ToolResult is what became of one call.
type ToolResult struct {
	// CallID is ours; ProviderID is the provider's name for the same call.
	CallID     string       `json:"callId"`
	ProviderID string       `json:"providerId,omitempty"`
	Name       string       `json:"name"`
	Status     ResultStatus `json:"status"`
	// Output is the tool's answer as JSON. On any status but success it is a
	// JSON string that tells the model what happened.
	Output json.RawMessage `json:"output"`
}

// FileRef points to an image or a file: either by URL or with its bytes.
type FileRef struct {
	MediaType string `json:"mediaType"`
	Name      string `json:"name,omitempty"`
	URL       string `json:"url,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

// Text returns a text part.
func Text(text string) Part { return Part{Kind: PartText, Text: text} }

// TextParts returns a text as the parts of a message: one text part.
func TextParts(text string) []Part { return []Part{Text(text)} }

// User returns a user message of one text part.
func User(text string) Message { return UserParts(TextParts(text)) }

// UserParts returns a user message of the given parts.
func UserParts(parts []Part) Message { return Message{Role: RoleUser, Parts: parts} }

// Assistant returns an assistant message of one text part.
func Assistant(text string) Message {
	return Message{Role: RoleAssistant, Parts: []Part{Text(text)}}
}

// Text joins the text parts of the message; reasoning is left out.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// ToolCalls returns the calls the message asks for, in order.
func (m Message) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, p := range m.Parts {
		if p.Kind == PartToolCall && p.ToolCall != nil {
			calls = append(calls, *p.ToolCall)
		}
	}
	return calls
}

// Size returns about how many bytes the message takes in memory.
func (m Message) Size() int {
	const part = 256 // what a part takes beside its contents
	size := len(m.Parts) * part
	for _, p := range m.Parts {
		size += len(p.Text) + len(p.Opaque)
		if p.ToolCall != nil {
			size += len(p.ToolCall.Arguments)
		}
		if p.ToolResult != nil {
			size += len(p.ToolResult.Output)
		}
		if p.File != nil {
			size += len(p.File.URL) + len(p.File.Data)
		}
	}
	return size
}
