package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestPlan_edited: what was edited by who approves does not run where somebody else than who asks must approve,
// whatever door has stored it.
func TestPlan_edited(t *testing.T) {
	t.Parallel()
	arguments, edited := json.RawMessage(`{"order":17}`), json.RawMessage(`{"order":18}`)
	for name, c := range map[string]struct {
		rule *session.AnswerRule
		runs bool
	}{
		"no rule":       {nil, true},
		"not who asked": {&session.AnswerRule{NotRequester: true}, false},
		"signed in":     {&session.AnswerRule{Assurance: session.AssuranceSignedIn}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			wait := session.Wait{Kind: session.WaitApproval, Call: "c2-1", Tool: "refund", Arguments: arguments, Digest: journal.Digest(arguments), Policy: "d1"}
			wait.Hold(c.rule, []string{"ann"})
			st.step(engine.StepOutcome{
				Reply: st.reply(llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "refund", Arguments: arguments}}), Waits: []session.Wait{wait},
			})
			answer := st.approval(0, true)
			answer.EditedInput, answer.Digest = edited, journal.Digest(edited)
			st.resumed(answer)
			p := engine.Plan(st.s, "d1", func(_ session.Call, arguments json.RawMessage) engine.Traits {
				return engine.Traits{Known: true, Approval: yes, Arguments: arguments}
			})[0]
			require.Equal(t, c.runs, p.Do == engine.DoRun)
		})
	}
}

// TestPlan_votes: whoever wrote the answer, a call that two people must approve runs only where two have,
// for the arguments that were shown.
func TestPlan_votes(t *testing.T) {
	t.Parallel()
	arguments := json.RawMessage(`{"a":1}`)
	digest := journal.Digest(arguments)
	vote := func(who string, approved bool, digest string) session.Vote {
		return session.Vote{Who: who, Approved: approved, Digest: digest}
	}
	for name, c := range map[string]struct {
		votes []session.Vote
		kind  session.AnswerKind
		runs  bool
	}{
		"none":               {nil, "", false},
		"one":                {[]session.Vote{vote("bob", true, digest)}, "", false},
		"one twice":          {[]session.Vote{vote("bob", true, digest), vote("bob", true, digest)}, "", false},
		"a yes and a no":     {[]session.Vote{vote("bob", true, digest), vote("cyd", false, digest)}, "", false},
		"for something else": {[]session.Vote{vote("bob", true, digest), vote("cyd", true, "other")}, "", false},
		"who asked":          {[]session.Vote{vote("bob", true, digest), vote("ann", true, digest)}, "", false},
		"two":                {[]session.Vote{vote("bob", true, digest), vote("cyd", true, digest)}, "", true},
		"a deadline":         {nil, session.AnswerExpiry, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			wait := session.Wait{Kind: session.WaitApproval, Call: "c2-1", Tool: "refund", Arguments: arguments, Digest: digest, Policy: "d1"}
			wait.Hold(&session.AnswerRule{Need: 2, NotRequester: true}, []string{"ann"})
			st.step(engine.StepOutcome{
				Reply: st.reply(llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "refund", Arguments: arguments}}), Waits: []session.Wait{wait},
			})
			answer := st.approval(0, true)
			if c.kind != "" {
				answer = st.expiry(0, session.ExpireDefault, `true`)
			}
			answer.Digest, answer.Votes = digest, c.votes
			st.resumed(answer)
			p := engine.Plan(st.s, "d1", func(session.Call, json.RawMessage) engine.Traits { return engine.Traits{Known: true, Approval: yes} })[0]
			require.Equal(t, c.runs, p.Do == engine.DoRun)
			if !c.runs {
				want := llm.ResultError
				if c.kind == session.AnswerExpiry {
					want = llm.ResultTimedOut
				}
				require.Equal(t, want, p.Result.Status)
				require.True(t, p.NeverRan)
			}
		})
	}
}
