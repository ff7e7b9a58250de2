package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/llmtest"
	"github.com/adjourn/adjourn/pkg/llm/scripted"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Run(t, llmtest.Harness{
		Answer: func(_ *testing.T, reply llm.Reply) llm.Model {
			return scripted.Func(func(context.Context, llm.Request) (scripted.Reply, error) { return reply, nil })
		},
		Fail: func(_ *testing.T, failure llm.Error) (llm.Model, func() int) {
			var calls atomic.Int64
			m := scripted.Func(func(context.Context, llm.Request) (scripted.Reply, error) {
				calls.Add(1)
				return scripted.Reply{}, &failure
			})
			return m, func() int { return int(calls.Load()) }
		},
		Flood: func(*testing.T) llm.Model {
			return scripted.Func(func(context.Context, llm.Request) (scripted.Reply, error) {
				return llm.Reply{Message: llm.Assistant(strings.Repeat("x", llm.MaxReply+1))}, nil
			})
		},
		Break: func(*testing.T) llm.Model {
			return scripted.Func(func(context.Context, llm.Request) (scripted.Reply, error) {
				return scripted.Reply{}, &llm.Error{Class: llm.ClassOverloaded, Cause: llm.ErrBrokenStream}
			})
		},
		Hang: func(*testing.T) llm.Model {
			return hanging{}
		},
	})
}

// hanging says a word, and then nothing until it is stopped.
type hanging struct{ llm.Model }

func (hanging) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if !yield(llm.Event{Kind: llm.EventTextDelta, Text: "one"}, nil) {
			return
		}
		wait := scripted.Func(func(ctx context.Context, _ llm.Request) (scripted.Reply, error) {
			<-ctx.Done()
			return scripted.Say("too late"), nil
		})
		wait.Stream(ctx, req)(yield)
	}
}

func ask(t *testing.T, m llm.Model, messages ...llm.Message) scripted.Reply {
	t.Helper()
	return askDelayed(t, m, nil, messages...)
}

func askDelayed(t *testing.T, m llm.Model, delays []int, messages ...llm.Message) scripted.Reply {
	t.Helper()
	reply, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: messages, Delays: delays}), nil)
	require.NoError(t, err)
	return reply
}

func TestNew_counts_replies_since_the_newest_user_message(t *testing.T) {
	t.Parallel()
	m := scripted.New(scripted.Use("echo", `{"n":1}`), scripted.Say("two"), scripted.Need("three?"))
	tool := llm.Message{Role: llm.RoleTool}
	history := []llm.Message{llm.User("go")}

	first := ask(t, m, history...)
	require.Equal(t, "echo", first.Message.ToolCalls()[0].Name)
	require.JSONEq(t, `{"n":1}`, string(first.Message.ToolCalls()[0].Arguments))
	require.Equal(t, llm.StopToolCalls, first.Stop)
	require.Equal(t, first, ask(t, m, history...), "a request delivered twice is answered the same twice")

	history = append(history, first.Message, tool)
	require.Equal(t, scripted.Say("two"), ask(t, m, history...))
	history = append(history, llm.Assistant("two"))
	require.Equal(t, scripted.Need("three?"), ask(t, m, history...))
	history = append(history, llm.Assistant("three?"))
	require.Equal(t, scripted.Say("done"), ask(t, m, history...), "past the end")
	history = append(history, llm.User("again"))
	require.Equal(t, first, ask(t, m, history...), "a new user message starts anew")
	require.Equal(t, first, ask(t, m), "no user message at all")
}

func TestNew_counts_delays_since_the_newest_user_message(t *testing.T) {
	t.Parallel()
	m := scripted.New(scripted.Say("one"), scripted.Say("two"), scripted.Say("three"))
	history := []llm.Message{llm.User("a"), llm.Assistant("x"), llm.User("b")}
	for _, c := range []struct {
		delays []int
		want   string
	}{
		{nil, "one"},
		{[]int{1, 2}, "one"}, // put off when "b" was not there yet
		{[]int{3}, "two"},
		{[]int{1, 3, 3}, "three"},
		{[]int{3, 3, 3, 3}, "done"},
	} {
		require.Equal(t, c.want, askDelayed(t, m, c.delays, history...).Message.Text(), c.delays)
	}
}

func TestAlso_leaves_the_first_reply_alone(t *testing.T) {
	t.Parallel()
	one := scripted.Use("a", `{}`)
	two, three := scripted.Also(one, "b", `{}`), scripted.Also(one, "c", `{}`)
	require.Len(t, one.Message.ToolCalls(), 1)
	require.Equal(t, "b", two.Message.ToolCalls()[1].Name)
	require.Equal(t, "c", three.Message.ToolCalls()[1].Name)
}

func TestFunc_errors_pass(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	m := scripted.Func(func(context.Context, llm.Request) (scripted.Reply, error) { return scripted.Reply{}, boom })
	_, err := llm.Collect(m.Stream(t.Context(), llm.Request{}), nil)
	require.Equal(t, boom, err)
}

func TestFunc_refuses_what_a_stream_cannot_bring(t *testing.T) {
	t.Parallel()
	for _, part := range []llm.Part{
		{Kind: llm.PartImage, File: &llm.FileRef{URL: "x"}}, {Kind: llm.PartToolCall}, {Kind: llm.PartToolResult},
	} {
		m := scripted.New(scripted.Reply{Message: llm.Message{Parts: []llm.Part{llm.Text("x"), part}}})
		_, err := llm.Collect(m.Stream(t.Context(), llm.Request{}), nil)
		var failure *llm.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, llm.ClassInvalid, failure.Class)
		require.ErrorContains(t, err, "part 1 ("+string(part.Kind)+")")
	}
}

func TestFunc_cancelled_while_it_thinks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := scripted.Func(func(ctx context.Context, _ llm.Request) (scripted.Reply, error) {
		cancel()
		<-ctx.Done()
		return scripted.Say("too late"), nil
	})
	_, err := llm.Collect(m.Stream(ctx, llm.Request{}), nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFunc_cancelled_between_events(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	n := 0
	m := scripted.New(scripted.Also(scripted.Use("a", `{}`), "b", `{}`))
	_, err := llm.Collect(m.Stream(ctx, llm.Request{}), func(llm.Event) {
		if n++; n == 2 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, n)
}

// A model that says what it was told to, reply for reply, for tests of agents.
func ExampleNew() {
	m := scripted.New(
		scripted.Also(scripted.Use("look", `{"at":"a"}`), "look", `{"at":"b"}`),
		scripted.Say("nothing to see"),
	)
	messages := []llm.Message{llm.User("look around")}
	for range 3 {
		reply, err := llm.Collect(m.Stream(context.Background(), llm.Request{Messages: messages}), nil)
		fmt.Println(len(reply.Message.ToolCalls()), reply.Message.Text(), reply.Stop, err)
		messages = append(messages, reply.Message)
	}
	// Output:
	// 2  tool_calls <nil>
	// 0 nothing to see end <nil>
	// 0 done end <nil>
}

// A model that is a Go function sees the request and may fail as a provider does.
func ExampleFunc() {
	m := scripted.Func(func(_ context.Context, req llm.Request) (scripted.Reply, error) {
		if len(req.Messages) > 1 {
			return scripted.Reply{}, &llm.Error{Class: llm.ClassContextOverflow, Message: "that is too much for me"}
		}
		return scripted.Say("You said: " + req.Messages[0].Text()), nil
	})
	reply, err := llm.Collect(m.Stream(context.Background(), llm.Request{Messages: []llm.Message{llm.User("hello")}}), nil)
	fmt.Println(reply.Message.Text(), err)
	_, err = llm.Collect(m.Stream(context.Background(), llm.Request{Messages: []llm.Message{llm.User("a"), llm.User("b")}}), nil)
	fmt.Println(err)
	// Output:
	// You said: hello <nil>
	// model call: context_overflow: that is too much for me
}
