package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents/lab"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestLimits_lab trips every limit with a script of the lab, and holds the message that a user reads.
func TestLimits_lab(t *testing.T) {
	t.Parallel()
	const raise = " in the agent's definition if it needs more, or start another session."
	for name, c := range map[string]struct {
		limits, all session.Limits
		turns       []string
		message     string
		warning     *session.LimitUse
	}{
		"steps":          {limits: session.Limits{Steps: 5}, turns: []string{"[{repeat: 9, call: echo, with: {text: a}}]"}, message: "The task used up its limit of steps. Raise Limits" + raise, warning: &session.LimitUse{Limit: "steps", Used: 4, Of: 5}},
		"tokens":         {limits: session.Limits{Tokens: 1}, turns: []string{"[{repeat: 9, call: echo, with: {text: a}}]"}, message: "The task used up its limit of tokens. Raise Limits" + raise},
		"active time":    {limits: session.Limits{ActiveMillis: 1}, turns: []string{"[{repeat: 9, call: sleep, with: {seconds: 0.01}}]"}, message: "The task used up its limit of activeMillis. Raise Limits" + raise},
		"money":          {limits: session.Limits{CostMicros: 1000}, turns: []string{"[{repeat: 9, call: echo, with: {text: a}, cost: 200}]"}, message: "The task used up its limit of costMicros. Raise Limits" + raise, warning: &session.LimitUse{Limit: "costMicros", Used: 800, Of: 1000}},
		"tool calls":     {limits: session.Limits{ToolCalls: 5}, turns: []string{"[{calls: [{call: echo, with: {text: a}}, {call: echo, with: {text: b}}, {call: echo, with: {text: c}}, {call: echo, with: {text: d}}]}, {calls: [{call: echo, with: {text: e}}, {call: echo, with: {text: f}}]}]"}, message: "The task used up its limit of toolCalls (6 were asked for, and 5 are allowed). Raise Limits" + raise, warning: &session.LimitUse{Limit: "toolCalls", Used: 4, Of: 5}},
		"a stuck loop":   {limits: session.Limits{RepeatedCalls: 5}, turns: []string{"[{call: echo, with: {text: b}}, {repeat: 9, call: echo, with: {text: a}}]"}, message: "The task used up its limit of repeatedCalls: the same tool was called 5 times in a row with the same arguments and the same result, so the agent is stuck. Raise Limits" + raise, warning: &session.LimitUse{Limit: "repeatedCalls", Used: 4, Of: 5}},
		"state":          {limits: session.Limits{StateBytes: 40}, turns: []string{"[{repeat: 9, call: add_note, with: {text: aaaaaaaaaa}}]"}, message: "The task used up its limit of stateBytes"},
		"session steps":  {all: session.Limits{Steps: 5}, turns: []string{"[{repeat: 3, call: echo, with: {text: a}}, {say: one}]", "[{repeat: 3, call: echo, with: {text: a}}, {say: two}]"}, message: "The session used up its limit of steps (5 of 5, by all its tasks). Raise SessionLimits" + raise, warning: nil},
		"session tokens": {all: session.Limits{Tokens: 12}, turns: []string{"[{say: one}]", "[{repeat: 9, call: echo, with: {text: b}}]"}, message: "The session used up its limit of tokens"},
		"session time":   {all: session.Limits{ActiveMillis: 1}, turns: []string{"[{repeat: 9, call: sleep, with: {seconds: 0.01}}]"}, message: "The session used up its limit of activeMillis"},
		"session money":  {all: session.Limits{CostMicros: 1000}, turns: []string{"[{say: one, cost: 600}]", "[{call: echo, with: {text: a}, cost: 200}, {repeat: 9, call: echo, with: {text: b}, cost: 200}]"}, message: "The session used up its limit of costMicros (1000 of 1000, by all its tasks). Raise SessionLimits" + raise, warning: &session.LimitUse{Limit: "costMicros", OfSession: true, Used: 800, Of: 1000}},
		"session loop":   {all: session.Limits{RepeatedCalls: 5}, turns: []string{"[{repeat: 9, call: echo, with: {text: a}}]"}, message: "The session used up its limit of repeatedCalls"},
		"session state":  {all: session.Limits{StateBytes: 40}, turns: []string{"[{repeat: 9, call: add_note, with: {text: aaaaaaaaaa}}]"}, message: "The session used up its limit of stateBytes"},
		"session calls":  {all: session.Limits{ToolCalls: 5}, turns: []string{"[{repeat: 3, call: echo, with: {text: a}}, {say: one}]", "[{repeat: 3, call: echo, with: {text: a}}, {say: two}]"}, message: "The session used up its limit of toolCalls (6 were asked for, and 5 are allowed). Raise SessionLimits" + raise, warning: &session.LimitUse{Limit: "toolCalls", OfSession: true, Used: 4, Of: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lab.Agent()
			a.Limits, a.SessionLimits = c.limits.Or(a.Limits), c.all
			registry, err := agent.NewRegistry(agent.Config{Models: agent.Models{"scripted": lab.Open}, Agents: []agent.Agent{a}})
			require.NoError(t, err)
			b := setup(t, func(cfg *runtime.Config) { cfg.Registry = registry })
			for _, turn := range c.turns {
				b.start(t, "lab", turn)
			}
			s := b.session(t)
			require.Equal(t, session.StatusFailed, s.Status)
			require.Equal(t, "limit_reached", s.Failure.Type)
			require.True(t, s.Failure.Retryable)
			require.Contains(t, s.Failure.Message, c.message)
			require.Empty(t, s.Calls)
			if c.warning != nil {
				require.Contains(t, s.Counts.Warnings, *c.warning)
				require.Len(t, s.Counts.Warnings, 1)
			}
			if c.limits.ToolCalls+c.limits.RepeatedCalls+c.limits.StateBytes > 0 || c.all != (session.Limits{}) {
				require.NotEmpty(t, s.Rules.Needs, "a program that does not know the limit must not go on")
			}
			view, err := b.View(context.Background(), b.key)
			require.NoError(t, err)
			require.Equal(t, s.Counts.Warnings, view.Warnings)
		})
	}
}

// TestLimits_next_turn: limits of a task begin anew with it; polling with another result is no loop.
func TestLimits_next_turn(t *testing.T) {
	t.Parallel()
	made, n := newEffects(), 0
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}}, func(a *agent.Agent) { a.Limits.ToolCalls, a.Limits.RepeatedCalls = 2, 2 }))
	p := w.process()
	for n < 3 {
		n++
		_, err := p.Start(t.Context(), runtime.StartParams{Key: w.key, Agent: "a", Input: llm.TextParts("go"), Caller: person})
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, session.StatusCompleted, w.session().Status)
	}
	raw, err := json.Marshal(w.session().Rules.Needs)
	require.NoError(t, err)
	require.JSONEq(t, `["limit:repeatedCalls","limit:toolCalls"]`, string(raw))
	require.EqualValues(t, 6, w.session().Counts.AllToolCalls)
}
