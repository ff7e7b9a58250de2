package lab

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/scripted"
)

// help is what the model says while it has no script.
const help = `I am a model that follows a script instead of thinking. Send me a YAML list; each item is one of my replies:

- call: echo
  with: {text: hello}
- say: done

An item is one of
  call: TOOL, with: {ARGUMENTS}    call one tool
  calls: [{call: TOOL, with: {…}}]   call several at once; text: beside them is said first
  stream: TEXT, every: 50ms        say the text in pieces
  fail: rate_limited, after: 2s    fail like a provider (rate_limited, overloaded, timeout, context_overflow, refused, invalid, auth)
  need: QUESTION                   ask a person and wait
  say: TEXT                        say it and end the turn
and can have think: TEXT, repeat: TIMES and cost: MILLIONTHS of your currency.`

// Model returns the model of the lab. Its script is the newest user message
// that is a YAML list of items; the k-th reply after that message is the k-th
// reply of the script, where k counts the assistant messages after it and the
// calls put off since. Past its end the script says "done". It keeps no state but
// the script that it read last: a request that is delivered twice is answered the
// same twice.
//
// A wrong script is an [*llm.Error] of class invalid. Without any script the
// model explains how to write one.
func Model() llm.Model { return new(model) }

// model keeps the script it read last, so that a long one is not read at each of its steps.
type model struct{ last atomic.Pointer[reading] }

type reading struct {
	text   string
	script Script
}

var _ llm.Model = (*model)(nil)

// Stream yields the next item of the script.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		item, number, err := m.next(req)
		if stopped := llm.ContextError(ctx); stopped != nil {
			err = stopped
		}
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		perform(ctx, item, number, req, yield)
	}
}

// next finds the script and its next item. It reads messages from the newest on and stops at the script.
func (m *model) next(req llm.Request) (item Item, number int, err error) {
	replies := 0
	for i := len(req.Messages) - 1; i >= 0; i-- {
		message := req.Messages[i]
		switch message.Role {
		case llm.RoleAssistant:
			replies++
		case llm.RoleTool:
		case llm.RoleUser:
			text := message.Text()
			if !isScript(text) {
				continue
			}
			script, err := m.parse(text)
			if err != nil {
				return Item{}, 0, &llm.Error{Class: llm.ClassInvalid, Message: err.Error(), Cause: err}
			}
			for _, messages := range req.Delays {
				if messages > i { // the script was there when this call was put off
					replies++
				}
			}
			if number = script.Reply(replies); number == 0 {
				return Item{Say: "done"}, 0, nil
			}
			return script[number-1], number, nil
		}
	}
	return Item{Say: help}, 0, nil
}

func (m *model) parse(text string) (Script, error) {
	if last := m.last.Load(); last != nil && last.text == text {
		return last.script, nil
	}
	script, err := Parse(text)
	if err == nil {
		m.last.Store(&reading{text, script})
	}
	return script, err
}

func perform(ctx context.Context, item Item, number int, req llm.Request, yield func(llm.Event, error) bool) {
	think := llm.Event{Kind: llm.EventReasoningDelta, Text: item.Think}
	if item.Think != "" && !yield(think, nil) {
		return
	}
	if item.Fail != "" {
		failure := &llm.Error{Class: item.Fail, Message: fmt.Sprintf("item %d of the script says so", number), RetryAfter: item.After}
		yield(llm.Event{}, failure)
		return
	}
	if item.Stream != "" && !recite(ctx, item, yield) {
		return
	}
	reply := llm.Reply{Usage: usage(item, req.Messages), CostMicros: item.Cost}
	for _, text := range []string{item.Text, item.Need, item.Say} {
		if text != "" {
			reply.Message.Parts = append(reply.Message.Parts, llm.Text(text))
		}
	}
	for _, call := range item.ToolCalls() {
		reply.Message.Parts = append(reply.Message.Parts, llm.Part{Kind: llm.PartToolCall, ToolCall: &call})
	}
	if item.Need != "" {
		reply.Stop = llm.StopNeedsInput
	}
	rest := scripted.Func(func(context.Context, llm.Request) (llm.Reply, error) { return reply, nil })
	for event, err := range rest.Stream(ctx, req) {
		if !yield(event, err) {
			return
		}
	}
}

// recite yields the text of a stream item, and reports whether to go on.
func recite(ctx context.Context, item Item, yield func(llm.Event, error) bool) bool {
	first := true
	for delta := range deltas(item.Stream) {
		if !first {
			pause(ctx, item.Every)
		}
		first = false
		if err := llm.ContextError(ctx); err != nil {
			yield(llm.Event{}, err)
			return false
		}
		if !yield(llm.Event{Kind: llm.EventTextDelta, Text: delta}, nil) {
			return false
		}
	}
	return true
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// wordsPerDelta is how much of a stream comes at once.
const wordsPerDelta = 3

// deltas cuts text after every few words; joined they are the text again.
func deltas(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		words, begin, inWord := 0, 0, false
		for i, r := range text {
			space := unicode.IsSpace(r)
			if !space && !inWord {
				if words == wordsPerDelta {
					if !yield(text[begin:i]) {
						return
					}
					words, begin = 0, i
				}
				words++
			}
			inWord = !space
		}
		if begin < len(text) {
			yield(text[begin:])
		}
	}
}

// largeKiB is how many tokens each whole KiB of input counts for: so the limit of
// tokens also bounds how much a session can hold.
const largeKiB = 1000

// usage counts in a way that a reader can check by hand. Input: one token for each
// message, and [largeKiB] for each KiB of the last reply and what came after it.
// Output: one token for each word and each call.
func usage(item Item, messages []llm.Message) llm.Usage {
	words := func(text string) int64 { return int64(len(strings.Fields(text))) }
	u := llm.Usage{Input: int64(len(messages)) + newBytes(messages)/1024*largeKiB, Reasoning: words(item.Think)}
	u.Output = u.Reasoning + words(item.Text) + words(item.Stream) + words(item.Need) + words(item.Say) + int64(len(item.ToolCalls()))
	return u
}

// newBytes is the size of the last reply and of what came after it.
func newBytes(messages []llm.Message) int64 {
	size := 0
	for i := len(messages) - 1; i >= 0; i-- {
		for _, p := range messages[i].Parts {
			size += len(p.Text)
			if p.ToolCall != nil {
				size += len(p.ToolCall.Arguments)
			}
			if p.ToolResult != nil {
				size += len(p.ToolResult.Output)
			}
		}
		if messages[i].Role == llm.RoleAssistant {
			break
		}
	}
	return int64(size)
}
