package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// reasoningKeys are the names under which servers show reasoning: DeepSeek,
// vLLM and llama.cpp the first, Ollama, OpenRouter and newer vLLM the second.
var reasoningKeys = []string{"reasoning_content", "reasoning"}

func reasoning(extra map[string]respjson.Field) string {
	for _, key := range reasoningKeys {
		var text string
		if field, ok := extra[key]; ok && json.Unmarshal([]byte(field.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// reply reads an answer that came in one piece.
func (m *model) reply(answer *sdk.ChatCompletion) (llm.Reply, error) {
	if answer == nil || len(answer.Choices) == 0 {
		return llm.Reply{}, remote.Broken("the answer holds no choice", nil)
	}
	choice := answer.Choices[0]
	out := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant}, Usage: usage(answer.Usage), ResponseID: answer.ID, Model: answer.Model}
	add := func(part llm.Part) { out.Message.Parts = append(out.Message.Parts, part) }
	if text := reasoning(choice.Message.JSON.ExtraFields); text != "" {
		add(llm.Part{Kind: llm.PartReasoning, Text: text})
	}
	if text := choice.Message.Content + choice.Message.Refusal; text != "" {
		add(llm.Text(text))
	}
	for i, call := range choice.Message.ToolCalls {
		if call.Function.Name == "" {
			return llm.Reply{}, remote.Broken(fmt.Sprintf("call %d has no name", i), nil)
		}
		add(llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
			ProviderID: call.ID, Name: call.Function.Name, Arguments: json.RawMessage(call.Function.Arguments),
		}})
	}
	out.Stop = stop(choice.FinishReason, len(choice.Message.ToolCalls) > 0, choice.Message.Refusal != "")
	return out, nil
}

// usage: OpenAI counts cached tokens inside the input, reasoning inside the output.
func usage(u sdk.CompletionUsage) llm.Usage {
	return llm.Usage{
		Input:     u.PromptTokens,
		CacheRead: u.PromptTokensDetails.CachedTokens,
		Output:    u.CompletionTokens,
		Reasoning: u.CompletionTokensDetails.ReasoningTokens,
	}
}

// stop translates a finish reason. Servers differ in what they say of calls, so
// calls speak for themselves.
func stop(reason string, calls, refused bool) llm.StopReason {
	switch {
	case refused, reason == "content_filter":
		return llm.StopRefused
	case reason == "length":
		return llm.StopLength
	case calls:
		return llm.StopToolCalls
	}
	return llm.StopEnd
}

// read yields the events of a stream. It returns nil when the reply was
// complete or the reader left.
func (m *model) read(stream *ssestream.Stream[sdk.ChatCompletionChunk], response *http.Response, yield func(llm.Event, error) bool) (err error) {
	defer func() { _ = stream.Close() }() // what is needed was read, or nobody wants it any more
	a := assembler{yield: yield, calls: map[int64]*openCall{}}
	for stream.Next() {
		if !a.chunk(stream.Current()) {
			return nil
		}
		if a.held > llm.MaxReply || len(a.calls) > llm.MaxParts {
			return llm.TooLarge()
		}
	}
	if err := stream.Err(); err != nil {
		return m.failure(err, response)
	}
	if a.reason == "" {
		return remote.Broken("the stream ended before the reply was complete", nil)
	}
	for _, call := range a.calls {
		if !call.started {
			return remote.Broken("a call has no name", nil)
		}
	}
	a.event(llm.Event{Kind: llm.EventStop, Stop: stop(a.reason, a.next > 0, a.refused), ResponseID: a.id, Model: a.model})
	return nil
}

// assembler turns chunks into events.
type assembler struct {
	yield   func(llm.Event, error) bool
	calls   map[int64]*openCall // by the server's index
	next    int                 // our next index of a call
	reason  string
	refused bool
	held    int // bytes of calls, also of what is not yielded as it comes
	// id of the response and the model that answered, as the server says.
	id, model string
}

type openCall struct {
	index   int
	id      string
	name    string
	pending string // arguments that came before the name
	started bool
}

func (a *assembler) event(e llm.Event) bool { return a.yield(e, nil) }

// chunk reports whether the reader wants more.
func (a *assembler) chunk(c sdk.ChatCompletionChunk) bool {
	a.id, a.model = cmp.Or(a.id, c.ID), cmp.Or(a.model, c.Model)
	if u := usage(c.Usage); u != (llm.Usage{}) && !a.event(llm.Event{Kind: llm.EventUsage, Usage: u}) {
		return false
	}
	if len(c.Choices) == 0 {
		return true
	}
	choice := c.Choices[0]
	if text := reasoning(choice.Delta.JSON.ExtraFields); text != "" && !a.event(llm.Event{Kind: llm.EventReasoningDelta, Text: text}) {
		return false
	}
	a.refused = a.refused || choice.Delta.Refusal != ""
	if text := choice.Delta.Content + choice.Delta.Refusal; text != "" && !a.event(llm.Event{Kind: llm.EventTextDelta, Text: text}) {
		return false
	}
	for _, delta := range choice.Delta.ToolCalls {
		if !a.call(delta) {
			return false
		}
	}
	if choice.FinishReason != "" {
		a.reason = choice.FinishReason
	}
	return true
}

// call takes one fragment of a call. Indexes are given anew: some servers send
// several whole calls under one index, told apart by their ids only.
func (a *assembler) call(delta sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	a.held += len(delta.ID) + len(delta.Function.Name) + len(delta.Function.Arguments)
	open := a.calls[delta.Index]
	if open == nil || open.started && delta.ID != "" && delta.Function.Name != "" && delta.ID != open.id {
		open = &openCall{index: a.next}
		a.calls[delta.Index] = open
		a.next++
	}
	if open.started {
		return delta.Function.Arguments == "" || a.arguments(open, delta.Function.Arguments)
	}
	if delta.ID != "" {
		open.id = delta.ID
	}
	open.name += delta.Function.Name
	open.pending += delta.Function.Arguments
	if open.name == "" {
		return true
	}
	open.started = true
	started := llm.Event{
		Kind: llm.EventToolStart, Index: open.index,
		ToolCall: llm.ToolCall{ProviderID: open.id, Name: open.name},
	}
	return a.event(started) && (open.pending == "" || a.arguments(open, open.pending))
}

func (a *assembler) arguments(open *openCall, text string) bool {
	return a.event(llm.Event{Kind: llm.EventToolArgDelta, Index: open.index, Text: text})
}
