package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

// TestToolPolicy_And: both policies together are as strict as either, for every tool; they allow only what
// both name.
func TestToolPolicy_And(t *testing.T) {
	t.Parallel()
	order := map[session.ToolMode]int{session.ToolAuto: 0, session.ToolPrompt: 1, session.ToolNever: 2}
	modes := []session.ToolMode{"", session.ToolAuto, session.ToolPrompt, session.ToolNever}
	policies := []*session.ToolPolicy{nil}
	for _, refund := range modes {
		for _, byDefault := range modes {
			for _, never := range []session.NeverMode{"", session.NeverReject, session.NeverPause} {
				p := &session.ToolPolicy{Default: byDefault, Never: never}
				if refund != "" {
					p.Tools = map[string]session.ToolMode{"refund": refund}
				}
				policies = append(policies, p)
			}
		}
	}
	allows := func(p *session.ToolPolicy, tool string) bool {
		rules := session.Rules{ProgramPolicy: p}
		return rules.PolicyAllows(tool)
	}
	for _, p := range policies {
		for _, q := range policies {
			both := p.And(q)
			require.NoError(t, both.Validate())
			for _, tool := range []string{"refund", "other"} {
				require.GreaterOrEqual(t, order[both.Of(tool)], max(order[p.Of(tool)], order[q.Of(tool)]), "%+v %+v", p, q)
				require.Equal(t, allows(p, tool) && allows(q, tool), allows(both, tool), "%+v %+v", p, q)
			}
			require.Equal(t, both, q.And(p))
			if p != nil && q != nil {
				require.Equal(t, p.Never == session.NeverPause || q.Never == session.NeverPause, both.Never == session.NeverPause)
			}
		}
	}
	require.Nil(t, (*session.ToolPolicy)(nil).And(nil))
}

// TestRules_HoldTo: what a program that does not know the policies must not ignore is named, once.
func TestRules_HoldTo(t *testing.T) {
	t.Parallel()
	auto := &session.ToolPolicy{Tools: map[string]session.ToolMode{"refund": session.ToolAuto}}
	rules := session.Rules{}
	rules.HoldTo(nil)
	rules.HoldToAsked(nil)
	rules.HoldAlso(nil)
	require.Equal(t, session.Rules{}, rules)
	rules.HoldTo(auto)
	require.Equal(t, []string{session.NeedsProgramPolicy}, rules.Needs)
	rules.HoldAlso(&session.ToolPolicy{Never: session.NeverPause})
	require.Equal(t, []string{session.NeedsProgramPolicy, session.NeedsPolicyPause}, rules.Needs)
	require.False(t, rules.PolicyAllows("refund"))
	rules.HoldToAsked(&session.ToolPolicy{Never: session.NeverPause})
	require.Equal(t, []string{session.NeedsProgramPolicy, session.NeedsPolicyPause, session.NeedsToolPolicy}, rules.Needs)
	require.Equal(t, session.ToolAuto, auto.Tools["refund"], "it has a copy")
}
