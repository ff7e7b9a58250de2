package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// read yields the events of a stream. It returns nil when the reply was
// complete or the reader left.
func (m *model) read(stream *ssestream.Stream[sdk.MessageStreamEventUnion], response *http.Response, yield func(llm.Event, error) bool) error {
	defer func() { _ = stream.Close() }() // what is needed was read, or nobody wants it any more
	a := assembler{yield: yield, blocks: map[int64]*block{}, next: map[llm.PartKind]int{}}
	for stream.Next() {
		more, err := a.take(stream.Current())
		if err != nil {
			return m.told(err)
		}
		if !more {
			return nil
		}
		if a.held > llm.MaxReply || len(a.blocks) > llm.MaxParts {
			return llm.TooLarge()
		}
	}
	if err := stream.Err(); err != nil {
		return m.failure(err, response)
	}
	return remote.Broken("the stream ended before the reply was complete", nil)
}

// assembler turns the events of the API into ours.
type assembler struct {
	yield  func(llm.Event, error) bool
	blocks map[int64]*block     // that have begun and not ended, by the server's index
	next   map[llm.PartKind]int // our next index of a kind
	usage  llm.Usage            // as far as it is known
	said   bool                 // there is a text
	reason sdk.StopReason       // why the model stopped
	detail string               // the provider's words for a refusal
	held   int                  // bytes of signatures
	id     string               // of the response
	model  string               // that answered
}

// block is a content block that is being received.
type block struct {
	kind      llm.PartKind // "" for what is not asked for and not read
	index     int
	signature []byte
	arguments bool            // of a call have begun
	input     json.RawMessage // of a call, as it began
}

func (a *assembler) event(e llm.Event) bool { return a.yield(e, nil) }

// take reports whether the reader wants more.
func (a *assembler) take(e sdk.MessageStreamEventUnion) (more bool, err error) {
	switch e.Type {
	case "message_start":
		a.id, a.model = e.Message.ID, e.Message.Model
		u := e.Message.Usage
		a.usage = llm.Usage{
			Input:     u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens,
			CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
			Output: u.OutputTokens, Reasoning: u.OutputTokensDetails.ThinkingTokens,
		}
		return a.event(llm.Event{Kind: llm.EventUsage, Usage: a.usage}), nil
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		return a.delta(e)
	case "content_block_stop":
		return a.end(e)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.reason, a.detail = e.Delta.StopReason, e.Delta.StopDetails.Explanation
		}
		a.count(e.Usage)
		return a.event(llm.Event{Kind: llm.EventUsage, Usage: a.usage}), nil
	case "message_stop":
		return false, a.stop()
	}
	return true, nil // the API may add events
}

// count takes the totals that a message_delta has: all of them, or the output only.
func (a *assembler) count(u sdk.MessageDeltaUsage) {
	plain := a.usage.Input - a.usage.CacheRead - a.usage.CacheWrite
	for _, n := range []struct {
		said bool
		from int64
		to   *int64
	}{
		{u.JSON.InputTokens.Valid(), u.InputTokens, &plain},
		{u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens, &a.usage.CacheRead},
		{u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens, &a.usage.CacheWrite},
		{u.JSON.OutputTokens.Valid(), u.OutputTokens, &a.usage.Output},
		{u.OutputTokensDetails.JSON.ThinkingTokens.Valid(), u.OutputTokensDetails.ThinkingTokens, &a.usage.Reasoning},
	} {
		if n.said {
			*n.to = n.from
		}
	}
	a.usage.Input = plain + a.usage.CacheRead + a.usage.CacheWrite
}

func (a *assembler) begin(e sdk.MessageStreamEventUnion) (bool, error) {
	if a.blocks[e.Index] != nil {
		return false, remote.Broken(fmt.Sprintf("block %d begins twice", e.Index), nil)
	}
	b := &block{}
	a.blocks[e.Index] = b
	open := func(kind llm.PartKind) {
		b.kind, b.index = kind, a.next[kind]
		a.next[kind]++
	}
	content := e.ContentBlock
	switch content.Type {
	case "text":
		open(llm.PartText)
		return a.text(b, content.Text), nil
	case "thinking":
		open(llm.PartReasoning)
		b.signature = []byte(content.Signature)
		return content.Thinking == "" || a.event(llm.Event{Kind: llm.EventReasoningDelta, Index: b.index, Text: content.Thinking}), nil
	case redacted:
		if content.Data == "" {
			return false, remote.Broken("a redacted thought has no data", nil)
		}
		open(llm.PartReasoning)
		return a.opaque(b, opaque{Type: redacted, Data: content.Data})
	case "tool_use":
		if content.Name == "" {
			return false, remote.Broken("a call has no name", nil)
		}
		open(llm.PartToolCall)
		b.input = json.RawMessage(content.JSON.Input.Raw())
		return a.event(llm.Event{
			Kind: llm.EventToolStart, Index: b.index,
			ToolCall: llm.ToolCall{ProviderID: content.ID, Name: content.Name},
		}), nil
	}
	return true, nil
}

func (a *assembler) delta(e sdk.MessageStreamEventUnion) (bool, error) {
	b := a.blocks[e.Index]
	if b == nil {
		return false, remote.Broken(fmt.Sprintf("block %d goes on without a beginning", e.Index), nil)
	}
	of := map[string]llm.PartKind{
		"text_delta": llm.PartText, "input_json_delta": llm.PartToolCall,
		"thinking_delta": llm.PartReasoning, "signature_delta": llm.PartReasoning,
	}
	if kind, known := of[e.Delta.Type]; !known || b.kind == "" {
		return true, nil // citations, and what the API may add
	} else if kind != b.kind {
		return false, remote.Broken(fmt.Sprintf("block %d is a %s and goes on with a %s", e.Index, b.kind, e.Delta.Type), nil)
	}
	switch e.Delta.Type {
	case "text_delta":
		return a.text(b, e.Delta.Text), nil
	case "thinking_delta":
		return a.event(llm.Event{Kind: llm.EventReasoningDelta, Index: b.index, Text: e.Delta.Thinking}), nil
	case "signature_delta":
		a.held += len(e.Delta.Signature)
		b.signature = append(b.signature, e.Delta.Signature...)
		return true, nil
	}
	if e.Delta.PartialJSON == "" {
		return true, nil
	}
	b.arguments = true
	return a.event(llm.Event{Kind: llm.EventToolArgDelta, Index: b.index, Text: e.Delta.PartialJSON}), nil
}

func (a *assembler) end(e sdk.MessageStreamEventUnion) (bool, error) {
	b := a.blocks[e.Index]
	if b == nil {
		return false, remote.Broken(fmt.Sprintf("block %d ends without a beginning", e.Index), nil)
	}
	delete(a.blocks, e.Index)
	switch {
	case b.kind == llm.PartReasoning && len(b.signature) > 0:
		return a.opaque(b, opaque{Signature: string(b.signature)})
	case b.kind == llm.PartToolCall && !b.arguments && len(b.input) > 0:
		// Some servers send the arguments with the beginning, where Anthropic has {}.
		return a.event(llm.Event{Kind: llm.EventToolArgDelta, Index: b.index, Text: string(b.input)}), nil
	}
	return true, nil
}

func (a *assembler) text(b *block, text string) bool {
	a.said = a.said || text != ""
	return text == "" || a.event(llm.Event{Kind: llm.EventTextDelta, Index: b.index, Text: text})
}

func (a *assembler) opaque(b *block, o opaque) (bool, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return false, remote.Broken("a thought cannot be stored", err)
	}
	return a.event(llm.Event{Kind: llm.EventOpaque, Index: b.index, Provider: provider, Opaque: raw}), nil
}

// stop ends the reply. Where the model ran out of its context, the reply is not one.
func (a *assembler) stop() error {
	if len(a.blocks) > 0 {
		return remote.Broken("the reply ended within a block", nil)
	}
	out := llm.Event{Kind: llm.EventStop, Stop: llm.StopEnd, ResponseID: a.id, Model: a.model}
	switch a.reason {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonToolUse:
		if a.next[llm.PartToolCall] > 0 {
			out.Stop = llm.StopToolCalls
		}
	case sdk.StopReasonMaxTokens:
		out.Stop = llm.StopLength
	case sdk.StopReasonRefusal:
		out.Stop = llm.StopRefused
		if !a.said && a.detail != "" && !a.event(llm.Event{Kind: llm.EventTextDelta, Text: a.detail, Index: a.next[llm.PartText]}) {
			return nil
		}
	case sdk.StopReasonModelContextWindowExceeded:
		return remote.Refuse(llm.ClassContextOverflow, "the conversation and the reply are longer than the model's context")
	case sdk.StopReasonPauseTurn:
		return remote.Refuse(llm.ClassInvalid, "the model paused its turn, as it does for tools that run at the provider; none were offered to it")
	case "":
		return remote.Broken("the reply does not say why it ended", nil)
	default:
		return remote.Refuse(llm.ClassInvalid, "the model stopped for a reason that is not known here: %q", a.reason)
	}
	a.event(out)
	return nil
}
