package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestRetry_Delay(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		retry    agent.Retry
		failures int
		hint     time.Duration
		want     time.Duration
	}{
		"first":                  {failures: 1, want: s},
		"none_yet":               {failures: 0, want: s},
		"doubles":                {failures: 4, want: 8 * s},
		"capped":                 {failures: 10, want: 5 * time.Minute},
		"capped_for_ever":        {failures: math.MaxInt, want: 5 * time.Minute},
		"hint_is_the_least":      {failures: 1, hint: 30 * s, want: 30 * s},
		"hint_is_not_the_most":   {failures: 4, hint: 2 * s, want: 8 * s},
		"hint_beyond_max":        {failures: 1, hint: time.Hour, want: time.Hour},
		"own_base_and_max":       {retry: agent.Retry{Base: 3 * s, Max: 10 * s}, failures: 3, want: 10 * s},
		"base_beyond_the_max":    {retry: agent.Retry{Base: time.Hour}, failures: 9, want: time.Hour},
		"no_overflow":            {retry: agent.Retry{Base: math.MaxInt64/2 + 1, Max: math.MaxInt64}, failures: 5, want: math.MaxInt64},
		"negative_hint_is_no_op": {failures: 1, hint: -s, want: s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.retry.Delay(c.failures, c.hint))
		})
	}
}

func TestRetry_GivesUp(t *testing.T) {
	t.Parallel()
	require.False(t, agent.Retry{}.GivesUp(4))
	require.True(t, agent.Retry{}.GivesUp(5))
	require.True(t, agent.Retry{Attempts: 1}.GivesUp(1))
}

func TestReply_Message(t *testing.T) {
	t.Parallel()
	call := func(name, args string) llm.Part {
		return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: name, Arguments: json.RawMessage(args)}}
	}
	for name, c := range map[string]struct {
		reply agent.Reply
		want  []llm.Part
		err   string
	}{
		"nothing":           {want: []llm.Part{}},
		"text":              {reply: agent.Reply{Text: "hi"}, want: []llm.Part{llm.Text("hi")}},
		"text_before_calls": {reply: agent.Reply{Text: "hi", Calls: []agent.Call{{Name: "a"}}}, want: []llm.Part{llm.Text("hi"), call("a", `{}`)}},
		"arguments": {reply: agent.Reply{Calls: []agent.Call{
			{Name: "a", Arguments: map[string]int{"x": 1}}, {Name: "b", Arguments: json.RawMessage(`{"y":2}`)}, {Name: "c", Arguments: json.RawMessage(nil)},
		}}, want: []llm.Part{call("a", `{"x":1}`), call("b", `{"y":2}`), call("c", `{}`)}},
		"parts": {
			reply: agent.Reply{Parts: []llm.Part{{Kind: llm.PartReasoning, Provider: "p", Opaque: []byte("x")}, call("a", ""), llm.Text("hi")}},
			want:  []llm.Part{{Kind: llm.PartReasoning, Provider: "p", Opaque: []byte("x")}, call("a", `{}`), llm.Text("hi")},
		},
		"ids_are_given_later": {
			reply: agent.Reply{Parts: []llm.Part{{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "c1-0", ProviderID: "p", Name: "a", Arguments: json.RawMessage(`{}`)}}}},
			want:  []llm.Part{{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ProviderID: "p", Name: "a", Arguments: json.RawMessage(`{}`)}}},
		},
		"needs_input": {reply: agent.Reply{Text: "which?", NeedsInput: true}, want: []llm.Part{llm.Text("which?")}},

		"needs_input_with_calls": {reply: agent.Reply{NeedsInput: true, Calls: []agent.Call{{Name: "a"}}}, err: "NeedsInput is for a reply without calls"},
		"parts_and_text":         {reply: agent.Reply{Text: "hi", Parts: []llm.Part{}}, err: "set one or the other"},
		"arguments_no_json":      {reply: agent.Reply{Calls: []agent.Call{{Name: "a"}, {Name: "b", Arguments: func() {}}}}, err: "call 2: the arguments of b cannot be made JSON"},
		"raw_no_json":            {reply: agent.Reply{Calls: []agent.Call{{Name: "b", Arguments: json.RawMessage(`{`)}}}, err: "call 1: the arguments of b cannot be made JSON"},
		"call_of_nothing":        {reply: agent.Reply{Calls: []agent.Call{{}}}, err: "call 1: it names no tool"},
		"part_without_call":      {reply: agent.Reply{Parts: []llm.Part{{Kind: llm.PartToolCall}}}, err: "part 1: a tool call without ToolCall"},
		"part_call_of_nothing":   {reply: agent.Reply{Parts: []llm.Part{call("", "")}}, err: "names no tool"},
		"part_arguments":         {reply: agent.Reply{Parts: []llm.Part{call("a", "{")}}, err: "the arguments of a: cannot be kept: it is not valid JSON"},
		"part_result":            {reply: agent.Reply{Parts: []llm.Part{{Kind: llm.PartToolResult}}}, err: "a tool result is no part"},
		"part_unknown":           {reply: agent.Reply{Parts: []llm.Part{{Kind: "smell"}}}, err: `unknown kind "smell"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.reply.Message()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, llm.Message{Role: llm.RoleAssistant, Parts: c.want}, got)
		})
	}
}

func TestReply_Message_leaves_the_parts_alone(t *testing.T) {
	t.Parallel()
	parts := []llm.Part{{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "mine", Name: "a"}}}
	_, err := agent.Reply{Parts: parts}.Message()
	require.NoError(t, err)
	require.Equal(t, "mine", parts[0].ToolCall.ID)
}

func TestPlanner_that_panics(t *testing.T) {
	t.Parallel()
	r, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{
		{Name: "a", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { panic("no\n" + strings.Repeat("x", 10_000)) })},
		{Name: "b", Offline: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { panic(errors.New("no")) })},
	}})
	require.NoError(t, err)
	for _, name := range r.Names() {
		p, err := r.Planner(t.Context(), session.Rules{Agent: name}, nil)
		require.NoError(t, err)
		_, err = p.Plan(t.Context(), agent.View{})
		var panicked *agent.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, name, panicked.Agent)
		require.ErrorContains(t, err, "the planner of agent "+name+" panicked: no")
		require.Less(t, len(err.Error()), 600)
		require.NotEmpty(t, panicked.Stack)
	}
}
