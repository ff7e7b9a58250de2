package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestCounts_repeated: a row is broken by another tool, other arguments or another result.
func TestCounts_repeated(t *testing.T) {
	t.Parallel()
	var c session.Counts
	call := func(name, arguments, output string) int64 {
		c.Count(session.Call{Name: name, Arguments: json.RawMessage(arguments)}, llm.ToolResult{Status: llm.ResultSuccess, Output: json.RawMessage(output)})
		return c.Repeated
	}
	require.EqualValues(t, 1, call("a", "{}", "1"))
	require.EqualValues(t, 2, call("a", "{}", "1"))
	require.EqualValues(t, 3, call("a", "{}", "1"))
	require.EqualValues(t, 1, call("a", "{}", "2"))
	require.EqualValues(t, 1, call("a", `{"x":1}`, "2"))
	require.EqualValues(t, 1, call("b", `{"x":1}`, "2"))
	require.EqualValues(t, 2, call("b", `{"x":1}`, "2"))
	c.Count(session.Call{Name: "b", Arguments: json.RawMessage(`{"x":1}`)}, llm.ToolResult{Status: llm.ResultError, Output: json.RawMessage("2")})
	require.EqualValues(t, 1, c.Repeated)
}

// TestExhausted names the limit, how much was used, and whose it is.
func TestExhausted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    session.Session
		want *session.LimitUse
	}{
		"nothing":            {s: session.Session{}},
		"unlimited":          {s: session.Session{Rules: session.Rules{Limits: session.Limits{ToolCalls: -1, Steps: -1}}, Used: session.Amounts{Steps: 9}, Counts: session.Counts{ToolCalls: 9}}},
		"all calls made":     {s: session.Session{Rules: session.Rules{Limits: session.Limits{ToolCalls: 9}}, Counts: session.Counts{ToolCalls: 9}}},
		"repeated":           {s: session.Session{Rules: session.Rules{Limits: session.Limits{RepeatedCalls: 3}}, Counts: session.Counts{Repeated: 3}}, want: &session.LimitUse{Limit: "repeatedCalls", Used: 3, Of: 3}},
		"steps of a session": {s: session.Session{Rules: session.Rules{SessionLimits: session.Limits{Steps: 3}}, Counts: session.Counts{All: session.Amounts{Steps: 4}}}, want: &session.LimitUse{Limit: "steps", OfSession: true, Used: 4, Of: 3}},
	} {
		require.Equal(t, c.want, c.s.Exhausted(), name)
	}
	s := session.Session{Rules: session.Rules{Limits: session.Limits{ToolCalls: 9}}, Counts: session.Counts{ToolCalls: 8}}
	require.Nil(t, s.ExhaustedBy(1))
	require.Equal(t, &session.LimitUse{Limit: "toolCalls", Used: 10, Of: 9}, s.ExhaustedBy(2))
}
