package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func text(s string) llm.Event { return llm.Event{Kind: llm.EventTextDelta, Text: s} }

func stop(s llm.StopReason) llm.Event { return llm.Event{Kind: llm.EventStop, Stop: s} }

func call(index int, name, args string) llm.Event {
	return llm.Event{Kind: llm.EventToolStart, Index: index, ToolCall: llm.ToolCall{ProviderID: "p" + name, Name: name, Arguments: json.RawMessage(args)}}
}

// planWith has a model say the events to an agent.
func planWith(t *testing.T, a agent.Agent, v agent.View, f *fake) (agent.Reply, error) {
	t.Helper()
	a.Name, a.Model = "a", "fake:m"
	r := registry(t, agent.Models{"fake": f.open}, a)
	rules, err := r.Rules("a", nil)
	require.NoError(t, err)
	p, err := r.Planner(t.Context(), rules, nil)
	require.NoError(t, err)
	return p.Plan(t.Context(), v)
}

func TestModelPlanner_asks(t *testing.T) {
	t.Parallel()
	f := &fake{events: []llm.Event{text("hi"), stop(llm.StopEnd)}}
	messages := []llm.Message{llm.User("hello")}
	_, err := planWith(t, agent.Agent{System: "Be kind.", Tools: []tool.Tool{echo("z"), echo("b")}, MaxOutputTokens: 9}, agent.View{Messages: messages, Delays: []int{1, 1}}, f)
	require.NoError(t, err)
	require.Equal(t, []llm.Request{{
		System: "Be kind.", Messages: messages, Tools: []llm.ToolSpec{echo("b").Spec(), echo("z").Spec()}, MaxOutputTokens: 9, Delays: []int{1, 1},
	}}, f.asked)
}

func TestModelPlanner_with_output_must_call_tools(t *testing.T) {
	t.Parallel()
	f := &fake{events: []llm.Event{text("hi"), stop(llm.StopEnd)}}
	output := agent.OutputOf[answer]()
	_, err := planWith(t, agent.Agent{Output: output}, agent.View{}, f)
	require.NoError(t, err)
	_, err = planWith(t, agent.Agent{Output: output, Policy: session.Policy{TextNeedsInput: true}}, agent.View{}, f)
	require.NoError(t, err)
	require.Equal(t, llm.ChoiceRequired, f.asked[0].Choice)
	require.Equal(t, agent.FinishTool, f.asked[0].Tools[0].Name)
	require.Empty(t, f.asked[1].Choice, "unless its text asks for people")
}

func TestModelPlanner_offers_only_the_tools_of_the_rules(t *testing.T) {
	t.Parallel()
	f := &fake{events: []llm.Event{stop(llm.StopEnd)}}
	r := registry(t, agent.Models{"fake": f.open}, agent.Agent{Name: "a", Model: "fake:m", Tools: []tool.Tool{echo("old"), echo("new")}, Output: agent.OutputOf[answer]()})
	p, err := r.Planner(t.Context(), session.Rules{Agent: "a", Model: "fake:m", Tools: []string{"gone", "old"}}, nil)
	require.NoError(t, err)
	_, err = p.Plan(t.Context(), agent.View{})
	require.NoError(t, err)
	require.Equal(t, []llm.ToolSpec{echo("old").Spec()}, f.asked[0].Tools)
	require.Empty(t, f.asked[0].Choice)
}

func TestModelPlanner_replies(t *testing.T) {
	t.Parallel()
	part := func(name, args string) llm.Part {
		return llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ProviderID: "p" + name, Name: name, Arguments: json.RawMessage(args)}}
	}
	usage := llm.Event{Kind: llm.EventUsage, Usage: llm.Usage{Input: 3, Output: 4}}
	reasoning := llm.Event{Kind: llm.EventReasoningDelta, Text: "hm"}
	for name, c := range map[string]struct {
		events []llm.Event
		parts  []llm.Part
		needs  bool
		class  llm.ErrorClass
		err    string
	}{
		"text":        {events: []llm.Event{text("h"), text("i"), stop(llm.StopEnd)}, parts: []llm.Part{llm.Text("hi")}},
		"nothing":     {events: []llm.Event{stop(llm.StopEnd)}, parts: []llm.Part{}},
		"calls":       {events: []llm.Event{text("hi"), call(0, "a", `{"x":1}`), call(1, "b", ``), stop(llm.StopToolCalls)}, parts: []llm.Part{llm.Text("hi"), part("a", `{"x":1}`), part("b", `{}`)}},
		"needs_input": {events: []llm.Event{text("which?"), stop(llm.StopNeedsInput)}, parts: []llm.Part{llm.Text("which?")}, needs: true},
		"needs_input_but_calls": {
			events: []llm.Event{text("which?"), call(0, "a", `{}`), stop(llm.StopNeedsInput)},
			parts:  []llm.Part{llm.Text("which?"), part("a", `{}`)},
		},
		"refused":         {events: []llm.Event{text("I will not."), stop(llm.StopRefused)}, class: llm.ClassRefused, err: "I will not."},
		"refused_mutely":  {events: []llm.Event{stop(llm.StopRefused)}, class: llm.ClassRefused, err: "the model refused to answer"},
		"broken":          {events: []llm.Event{text("h")}, class: llm.ClassOverloaded, err: "the stream broke off"},
		"cut_off_text":    {events: []llm.Event{text("half a th"), stop(llm.StopLength)}, parts: []llm.Part{llm.Text("half a th\n\n[cut off at the output limit]")}},
		"cut_off_at_once": {events: []llm.Event{stop(llm.StopLength)}, class: llm.ClassInvalid, err: "reached the limit of 9 output tokens before it said anything: raise MaxOutputTokens"},
		"cut_off_in_reasoning": {
			events: []llm.Event{reasoning, stop(llm.StopLength)}, class: llm.ClassInvalid, err: "before it said anything",
		},
		"cut_off_in_reasoning_after_a_call": {
			events: []llm.Event{call(0, "a", `{}`), reasoning, stop(llm.StopLength)},
			parts:  []llm.Part{part("a", `{}`), {Kind: llm.PartReasoning, Text: "hm"}, llm.Text("[cut off at the output limit]")},
		},
		"cut_off_call": {
			events: []llm.Event{call(0, "a", `{"x":1}`), call(1, "b", `{"x":"ha`), stop(llm.StopLength)},
			parts:  []llm.Part{part("a", `{"x":1}`), part("b", `"[cut off at the output limit] {\"x\":\"ha"`)},
		},
		"cut_off_before_the_arguments": {
			events: []llm.Event{call(0, "b", ``), stop(llm.StopLength)},
			parts:  []llm.Part{part("b", `"[cut off at the output limit] {}"`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := &c.events[len(c.events)-1]
			last.ResponseID, last.Model, last.CostMicros = "resp-1", "m-2026", 2500
			reply, err := planWith(t, agent.Agent{MaxOutputTokens: 9}, agent.View{}, &fake{events: append([]llm.Event{usage}, c.events...)})
			if c.err != "" {
				var failed *llm.Error
				require.ErrorAs(t, err, &failed)
				require.Equal(t, c.class, failed.Class)
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, agent.Reply{Parts: c.parts, NeedsInput: c.needs, Usage: usage.Usage, CostMicros: 2500, Finish: last.Stop, ResponseID: "resp-1", Model: "m-2026"}, reply)
			_, err = reply.Message()
			require.NoError(t, err)
		})
	}
}

func TestModelPlanner_what_was_cut_off_is_told_to_the_model(t *testing.T) {
	t.Parallel()
	reply, err := planWith(t, agent.Agent{Tools: []tool.Tool{echo("x")}}, agent.View{}, &fake{events: []llm.Event{call(0, "x", ""), stop(llm.StopLength)}})
	require.NoError(t, err)
	message, err := reply.Message()
	require.NoError(t, err)
	require.ErrorContains(t, echo("x").Validate(message.ToolCalls()[0].Arguments), "[cut off at the output limit]")
}

func TestModelPlanner_passes_on(t *testing.T) {
	t.Parallel()
	limited := &llm.Error{Class: llm.ClassRateLimited}
	_, err := planWith(t, agent.Agent{}, agent.View{}, &fake{err: limited})
	require.Equal(t, limited, err, "errors as they are")

	var seen []llm.Event
	events := []llm.Event{text("h"), text("i"), stop(llm.StopEnd)}
	_, err = planWith(t, agent.Agent{}, agent.View{Watch: func(e llm.Event) { seen = append(seen, e) }}, &fake{events: events})
	require.NoError(t, err)
	require.Equal(t, events, seen, "events to who watches")
}
