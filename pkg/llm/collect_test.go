package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
)

func stream(err error, events ...llm.Event) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(llm.Event{}, err)
		}
	}
}

func text(i int, s string) llm.Event { return llm.Event{Kind: llm.EventTextDelta, Index: i, Text: s} }

func thought(i int, s string) llm.Event {
	return llm.Event{Kind: llm.EventReasoningDelta, Index: i, Text: s}
}

func signature(i int, provider, s string) llm.Event {
	return llm.Event{Kind: llm.EventOpaque, Index: i, Provider: provider, Opaque: []byte(s)}
}

func start(i int, id, name string) llm.Event {
	return llm.Event{Kind: llm.EventToolStart, Index: i, ToolCall: llm.ToolCall{ProviderID: id, Name: name}}
}

func args(i int, s string) llm.Event {
	return llm.Event{Kind: llm.EventToolArgDelta, Index: i, Text: s}
}

func usage(in, out int64) llm.Event {
	return llm.Event{Kind: llm.EventUsage, Usage: llm.Usage{Input: in, Output: out}}
}
func stop(s llm.StopReason) llm.Event { return llm.Event{Kind: llm.EventStop, Stop: s} }

func callPart(id, name, arguments string) llm.Part {
	return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{
		ProviderID: id, Name: name, Arguments: json.RawMessage(arguments),
	}}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	thoughtPart := func(text, provider, opaque string) llm.Part {
		p := llm.Part{Kind: llm.PartReasoning, Text: text, Provider: provider}
		if opaque != "" {
			p.Opaque = []byte(opaque)
		}
		return p
	}
	for name, c := range map[string]struct {
		events []llm.Event
		parts  []llm.Part
		usage  llm.Usage
		stop   llm.StopReason
	}{
		"text_in_deltas": {
			events: []llm.Event{text(0, "Hel"), text(0, ""), text(0, "lo"), stop(llm.StopEnd)},
			parts:  []llm.Part{llm.Text("Hello")}, stop: llm.StopEnd,
		},
		"a_rune_cut_in_two_is_whole_again": {
			events: []llm.Event{text(0, "\xc3"), text(0, "\xbc"), stop(llm.StopEnd)},
			parts:  []llm.Part{llm.Text("ü")}, stop: llm.StopEnd,
		},
		"two_text_parts_stay_apart": {
			events: []llm.Event{text(0, "a"), text(1, "b"), text(0, "c"), stop(llm.StopEnd)},
			parts:  []llm.Part{llm.Text("ac"), llm.Text("b")}, stop: llm.StopEnd,
		},
		"interleaved_parallel_calls": {
			events: []llm.Event{
				text(0, "both"),
				start(0, "call_a", "refund"), start(1, "call_b", "refund"),
				args(0, `{"order":`), args(1, `{"order":"`), args(0, `"A-1"}`), args(1, `A-2"}`),
				usage(10, 5), stop(llm.StopToolCalls),
			},
			parts: []llm.Part{
				llm.Text("both"), callPart("call_a", "refund", `{"order":"A-1"}`), callPart("call_b", "refund", `{"order":"A-2"}`),
			},
			usage: llm.Usage{Input: 10, Output: 5}, stop: llm.StopToolCalls,
		},
		"calls_keep_the_order_they_were_started_in": {
			events: []llm.Event{start(3, "d", "last"), start(1, "b", "first"), stop(llm.StopToolCalls)},
			parts:  []llm.Part{callPart("d", "last", `{}`), callPart("b", "first", `{}`)}, stop: llm.StopToolCalls,
		},
		"no_arguments_are_an_empty_object": {
			events: []llm.Event{start(0, "a", "now"), args(0, ""), start(1, "b", "now"), args(1, " \n"), stop(llm.StopToolCalls)},
			parts:  []llm.Part{callPart("a", "now", `{}`), callPart("b", "now", `{}`)}, stop: llm.StopToolCalls,
		},
		"invalid_arguments_are_a_json_string": {
			events: []llm.Event{start(0, "a", "echo"), args(0, `{"text": "brok`), stop(llm.StopToolCalls)},
			parts:  []llm.Part{callPart("a", "echo", `"{\"text\": \"brok"`)}, stop: llm.StopToolCalls,
		},
		"arguments_that_are_no_object_are_kept": {
			events: []llm.Event{start(0, "a", "echo"), args(0, `[1, 2]`), stop(llm.StopToolCalls)},
			parts:  []llm.Part{callPart("a", "echo", `[1,2]`)}, stop: llm.StopToolCalls,
		},
		"deltas_of_a_call_that_never_started_are_dropped": {
			events: []llm.Event{args(4, `{}`), text(0, "x"), stop(llm.StopEnd)},
			parts:  []llm.Part{llm.Text("x")}, stop: llm.StopEnd,
		},
		"signature_after_the_thought": {
			events: []llm.Event{thought(0, "a "), thought(0, "b"), signature(0, "anthropic", "sig"), text(0, "x"), stop(llm.StopEnd)},
			parts:  []llm.Part{thoughtPart("a b", "anthropic", "sig"), llm.Text("x")}, stop: llm.StopEnd,
		},
		"reasoning_with_nothing_to_read_is_kept": {
			events: []llm.Event{signature(0, "bedrock", "\x00\xff"), signature(1, "bedrock", "z"), stop(llm.StopEnd)},
			parts:  []llm.Part{thoughtPart("", "bedrock", "\x00\xff"), thoughtPart("", "bedrock", "z")}, stop: llm.StopEnd,
		},
		"empty_parts_are_dropped": {
			events: []llm.Event{text(0, ""), thought(0, ""), stop(llm.StopEnd)},
			stop:   llm.StopEnd,
		},
		"later_usage_replaces": {
			events: []llm.Event{usage(5, 1), text(0, "x"), usage(5, 9), stop(llm.StopLength)},
			parts:  []llm.Part{llm.Text("x")}, usage: llm.Usage{Input: 5, Output: 9}, stop: llm.StopLength,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []llm.Event
			reply, err := llm.Collect(stream(nil, c.events...), func(e llm.Event) { seen = append(seen, e) })
			require.NoError(t, err)
			require.Equal(t, llm.Reply{
				Message: llm.Message{Role: llm.RoleAssistant, Parts: c.parts}, Usage: c.usage, Stop: c.stop,
			}, reply)
			require.Equal(t, c.events, seen, "each event is handed to watch, once and in order")

			again, err := llm.Collect(stream(nil, c.events...), nil)
			require.NoError(t, err)
			require.Equal(t, reply, again)
		})
	}
}

func TestCollect_a_stream_without_stop_is_broken(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]llm.Event{
		"nothing": nil,
		"text":    {text(0, "x")},
		"call":    {start(0, "a", "echo"), args(0, `{"te`)},
		"usage":   {text(0, "x"), usage(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := llm.Collect(stream(nil, events...), nil)
			require.Zero(t, reply, "what was not said to its end is no reply")
			var failure *llm.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, llm.ClassOverloaded, failure.Class)
			require.True(t, failure.Retryable())
			require.ErrorIs(t, err, llm.ErrBrokenStream)
		})
	}
}

func TestCollect_an_error_ends_it(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	_, err := llm.Collect(stream(boom, text(0, "x")), nil)
	require.Equal(t, boom, err)
}

func TestCollect_reads_nothing_after_stop(t *testing.T) {
	t.Parallel()
	reply, err := llm.Collect(stream(errors.New("late"), text(0, "x"), stop(llm.StopEnd), text(0, "y")), nil)
	require.NoError(t, err)
	require.Equal(t, "x", reply.Message.Text())
}

// Arguments are digested when they are approved and stored in between, so their
// bytes must survive a round through a journal.
func TestArguments_have_their_stored_form(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                           `{}`,
		" \t\n":                      `{}`,
		`{ "a" : 1 }`:                `{"a":1}`,
		`{"b":1,"a":2}`:              `{"b":1,"a":2}`,
		`{"n":12345678901234567890}`: `{"n":12345678901234567890}`,
		`{"a":"<&>"}`:                `{"a":"\u003c\u0026\u003e"}`,
		`null`:                       `null`,
		`{} {}`:                      `"{} {}"`,
		`nonsense`:                   `"nonsense"`,
		"{\"a\":\"\xff\"}":           "{\"a\":\"\uFFFD\"}",
	} {
		got := llm.Arguments([]byte(in))
		require.Equal(t, want, string(got), "of %q", in)

		stored, err := json.Marshal(llm.ToolCall{Name: "echo", Arguments: got})
		require.NoError(t, err)
		var loaded llm.ToolCall
		require.NoError(t, json.Unmarshal(stored, &loaded))
		require.Equal(t, string(got), string(loaded.Arguments), "of %q", in)
	}
}

func TestArguments_do_not_keep_the_buffer(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"a":1}`)
	got := llm.Arguments(raw)
	copy(raw, `XXXXXXX`)
	require.JSONEq(t, `{"a":1}`, string(got))
}

func TestEvents_is_the_inverse_of_Collect(t *testing.T) {
	t.Parallel()
	want := llm.Reply{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
			{Kind: llm.PartReasoning, Text: "hm", Provider: "anthropic", Opaque: []byte("sig")},
			{Kind: llm.PartReasoning, Provider: "anthropic", Opaque: []byte("redacted")},
			llm.Text("one"), llm.Text("two"),
			callPart("a", "echo", `{"n":1}`), callPart("", "echo", `{}`),
		}},
		Usage: llm.Usage{Input: 7, Output: 3, Reasoning: 1}, Stop: llm.StopToolCalls,
	}
	events := func(reply llm.Reply) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for e := range llm.Events(reply) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	got, err := llm.Collect(events(want), nil)
	require.NoError(t, err)
	require.Equal(t, want, got)

	implied := want
	implied.Stop = ""
	got, err = llm.Collect(events(implied), nil)
	require.NoError(t, err)
	require.Equal(t, want, got, "calls imply why it stopped")

	got, err = llm.Collect(events(llm.Reply{Message: llm.Message{Parts: []llm.Part{
		{Kind: llm.PartImage, File: &llm.FileRef{URL: "x"}}, {Kind: llm.PartToolCall}, llm.Text("x"),
	}}}), nil)
	require.NoError(t, err)
	require.Equal(t, llm.Reply{Message: llm.Assistant("x"), Stop: llm.StopEnd}, got)

	for range llm.Events(want) {
		break // a reader may leave early, at any event
	}
	n := 0
	for range llm.Events(want) {
		if n++; n == 9 {
			break
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	a := llm.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 5}
	b := llm.Usage{Input: 10, CacheRead: 20, CacheWrite: 30, Output: 40, Reasoning: 50}
	require.Equal(t, llm.Usage{Input: 11, CacheRead: 22, CacheWrite: 33, Output: 44, Reasoning: 55}, a.Add(b))
	require.Equal(t, a, a.Add(llm.Usage{}))
	require.EqualValues(t, 5, a.Total(), "cache and reasoning are inside input and output")
}

func TestError(t *testing.T) {
	t.Parallel()
	for class, retryable := range map[llm.ErrorClass]bool{
		llm.ClassRateLimited: true, llm.ClassOverloaded: true, llm.ClassTimeout: true,
		llm.ClassContextOverflow: false, llm.ClassRefused: false, llm.ClassInvalid: false, llm.ClassAuth: false,
		"from_the_future": false,
	} {
		require.Equal(t, retryable, (&llm.Error{Class: class}).Retryable(), class)
	}
	cause := errors.New("underneath")
	err := fmt.Errorf("step 3: %w", &llm.Error{
		Class: llm.ClassRateLimited, Message: "slow down", Status: 429, RetryAfter: time.Second, Cause: cause,
	})
	require.EqualError(t, err, "step 3: model call: rate_limited (HTTP 429): slow down")
	require.ErrorIs(t, err, cause)
	require.EqualError(t, &llm.Error{Class: llm.ClassAuth}, "model call: auth")
}

func TestContextError(t *testing.T) {
	t.Parallel()
	require.NoError(t, llm.ContextError(t.Context()))

	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted by ada")
	cancel(reason)
	err := llm.ContextError(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	var failure *llm.Error
	require.NotErrorAs(t, err, &failure, "a wish of the caller is no failure of the model")

	ctx, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	err = llm.ContextError(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorAs(t, err, &failure)
	require.Equal(t, llm.ClassTimeout, failure.Class)
	require.True(t, failure.Retryable())
}

// TestCollectEnds: of a stream without end little is kept in memory, and reading stops.
func TestCollectEnds(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 64<<10)
	for name, at := range map[string]func(i int) llm.Event{
		"text":             func(int) llm.Event { return llm.Event{Kind: llm.EventTextDelta, Text: large} },
		"reasoning":        func(int) llm.Event { return llm.Event{Kind: llm.EventReasoningDelta, Text: large} },
		"opaque":           func(int) llm.Event { return llm.Event{Kind: llm.EventOpaque, Opaque: []byte(large)} },
		"arguments":        func(int) llm.Event { return llm.Event{Kind: llm.EventToolArgDelta, Text: large} },
		"arguments, apart": func(i int) llm.Event { return llm.Event{Kind: llm.EventToolArgDelta, Index: i, Text: "x"} },
		"calls": func(i int) llm.Event {
			return llm.Event{Kind: llm.EventToolStart, Index: i, ToolCall: llm.ToolCall{Name: "x"}}
		},
		"one call": func(int) llm.Event { return llm.Event{Kind: llm.EventToolStart, ToolCall: llm.ToolCall{Name: large}} },
		"calls, whole": func(i int) llm.Event {
			return llm.Event{Kind: llm.EventToolStart, Index: i, ToolCall: llm.ToolCall{Arguments: []byte(large)}}
		},
		"texts": func(i int) llm.Event { return llm.Event{Kind: llm.EventTextDelta, Index: -i} },
		"ids of a provider": func(int) llm.Event {
			return llm.Event{Kind: llm.EventToolStart, ToolCall: llm.ToolCall{ProviderID: large}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, bytes := 0, 0
			_, err := llm.Collect(func(yield func(llm.Event, error) bool) {
				for i := 0; yield(at(i), nil); i++ {
					sent++
				}
			}, func(e llm.Event) { bytes += len(e.Text) })
			require.ErrorIs(t, err, llm.ErrTooLarge)
			var failure *llm.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, llm.ClassInvalid, failure.Class)
			require.Contains(t, failure.Message, "MaxOutputTokens")
			require.LessOrEqual(t, sent, llm.MaxParts)
			require.LessOrEqual(t, bytes, llm.MaxReply, "nobody watches what is not taken in")
		})
	}
	events := make([]llm.Part, llm.MaxParts-1)
	for i := range events {
		events[i] = llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "x", Arguments: json.RawMessage(`{}`)}}
	}
	most := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: append(events, llm.Text(strings.Repeat("x", llm.MaxReply-3*len(events))))}, Stop: llm.StopToolCalls}
	got, err := llm.Collect(func(yield func(llm.Event, error) bool) {
		for e := range llm.Events(most) {
			if !yield(e, nil) {
				return
			}
		}
	}, nil)
	require.NoError(t, err)
	require.Len(t, got.Message.Parts, llm.MaxParts, "as much as may be is taken in")
}
