package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Reply is what a scripted model answers.
type Reply = llm.Reply

// theEnd is the text of every reply after the last one of the list.
const theEnd = "done"

// Say returns a reply of text that ends the turn.
func Say(text string) Reply {
	return Reply{Message: llm.Assistant(text), Stop: llm.StopEnd}
}

// Need returns a reply that asks a person: the turn cannot go on without them.
func Need(question string) Reply {
	return Reply{Message: llm.Assistant(question), Stop: llm.StopNeedsInput}
}

// Use returns a reply that calls one tool, with arguments in JSON; see [Also].
func Use(tool, arguments string) Reply {
	return Also(Reply{Stop: llm.StopToolCalls}, tool, arguments)
}

// Also returns reply with one more tool call.
func Also(reply Reply, tool, arguments string) Reply {
	parts := reply.Message.Parts
	reply.Message = llm.Message{
		Role: llm.RoleAssistant,
		Parts: append(parts[:len(parts):len(parts)], llm.Part{
			Kind:     llm.PartToolCall,
			ToolCall: &llm.ToolCall{Name: tool, Arguments: json.RawMessage(arguments)},
		}),
	}
	reply.Stop = llm.StopToolCalls
	return reply
}

// New returns a model that answers the k-th request after the newest user
// message with the k-th of replies, and "done" after the last. What counts is
// the conversation: k is the number of assistant messages after that user
// message, and of calls put off since then.
func New(replies ...Reply) llm.Model {
	return Func(func(_ context.Context, req llm.Request) (Reply, error) {
		answered := 0
		for i := len(req.Messages) - 1; i >= 0; i-- {
			switch req.Messages[i].Role {
			case llm.RoleAssistant:
				answered++
			case llm.RoleUser:
				answered += delaysAfter(req.Delays, i)
				i = 0
			case llm.RoleTool:
			}
		}
		if answered >= len(replies) {
			return Say(theEnd), nil
		}
		return replies[answered], nil
	})
}

// delaysAfter counts the calls that were put off when message i was there
// already, that is when there were more than i messages.
func delaysAfter(delays []int, i int) int {
	n := 0
	for _, messages := range delays {
		if messages > i {
			n++
		}
	}
	return n
}

// Func returns a model that answers what f returns. An error of f becomes the
// stream's as it is; to fail like a provider, f returns an [*llm.Error]. f may
// be called by many goroutines at once.
func Func(f func(ctx context.Context, req llm.Request) (Reply, error)) llm.Model {
	return function(f)
}

type function func(context.Context, llm.Request) (Reply, error)

var _ llm.Model = function(nil)

// Stream yields the reply of the function.
func (f function) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if err := llm.ContextError(ctx); err != nil {
			yield(llm.Event{}, err)
			return
		}
		reply, err := f(ctx, req)
		if err == nil {
			err = check(reply)
		}
		if stopped := llm.ContextError(ctx); stopped != nil {
			err = stopped
		}
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		play(ctx, llm.Events(reply), yield)
	}
}

// play yields events until ctx is done or the reader leaves.
func play(ctx context.Context, events iter.Seq[llm.Event], yield func(llm.Event, error) bool) {
	for e := range events {
		if err := llm.ContextError(ctx); err != nil {
			yield(llm.Event{}, err)
			return
		}
		if !yield(e, nil) {
			return
		}
	}
}

// check refuses parts that no stream can carry: they would be missing from the reply
// without an error.
func check(reply Reply) error {
	for i, p := range reply.Message.Parts {
		switch p.Kind {
		case llm.PartText, llm.PartReasoning:
			continue
		case llm.PartToolCall:
			if p.ToolCall != nil {
				continue
			}
		case llm.PartToolResult, llm.PartImage, llm.PartFile:
		}
		return &llm.Error{Class: llm.ClassInvalid, Message: fmt.Sprintf("scripted reply: a model cannot say part %d (%s)", i, p.Kind)}
	}
	return nil
}
