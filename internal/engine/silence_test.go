package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestPlan_silence: the default of a deadline approves only what the tool alone asks for, and only where any
// one person may. It gives neither what a rule asks for, nor what the policy of the task has prompted for.
func TestPlan_silence(t *testing.T) {
	t.Parallel()
	arguments := json.RawMessage(`{"order":"A-1"}`)
	prompt := &session.TaskRules{Policy: &session.ToolPolicy{Tools: map[string]session.ToolMode{"refund": session.ToolPrompt}}}
	for name, c := range map[string]struct {
		rule  *session.AnswerRule
		asked *session.TaskRules
		runs  bool
	}{
		"nobody objects":        {nil, nil, true},
		"a role":                {&session.AnswerRule{Roles: []string{"ops"}}, nil, true},
		"two yeses":             {&session.AnswerRule{Need: 2}, nil, false},
		"two noes":              {&session.AnswerRule{Noes: 2}, nil, false},
		"others than who asked": {&session.AnswerRule{NotRequester: true}, nil, false},
		"signed in":             {&session.AnswerRule{Assurance: session.AssuranceSignedIn}, nil, false},
		"the policy":            {nil, prompt, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			wait := session.Wait{
				Kind: session.WaitApproval, Call: "c2-1", Tool: "refund", Arguments: arguments, Digest: journal.Digest(arguments), Policy: "d1",
				Deadline: &session.Deadline{After: time.Hour, Outcome: session.ExpireDefault, Value: json.RawMessage(`true`)},
			}
			wait.Hold(c.rule, []string{"ann"})
			st.step(engine.StepOutcome{
				Reply: st.reply(llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{Name: "refund", Arguments: arguments}}), Waits: []session.Wait{wait},
			})
			answer := st.expiry(0, session.ExpireDefault, `true`)
			answer.Digest = journal.Digest(arguments)
			st.resumed(answer)
			st.s.Rules.Asked = c.asked
			p := engine.Plan(st.s, "d1", func(session.Call, json.RawMessage) engine.Traits { return engine.Traits{Known: true, Approval: yes} })[0]
			if c.runs {
				require.Equal(t, engine.DoRun, p.Do)
				return
			}
			require.Equal(t, engine.DoResult, p.Do)
			require.Equal(t, llm.ResultTimedOut, p.Result.Status)
			require.True(t, p.NeverRan)
		})
	}
}

// TestPlan_silence_of_a_policy: what the policy prompts for is denied when nobody decides in time, whatever the
// tool has declared for its own approval or for its client's result.
func TestPlan_silence_of_a_policy(t *testing.T) {
	t.Parallel()
	prompt := &session.TaskRules{Policy: &session.ToolPolicy{Default: session.ToolPrompt}}
	for _, client := range []bool{false, true} {
		s := *begin(t).s
		s.Calls = []session.Call{{ID: "c2-1", Name: "refund", Arguments: json.RawMessage(`{}`)}}
		expiry := &engine.Expiry{After: time.Hour, Outcome: session.ExpireDefault, Value: json.RawMessage(`true`)}
		plan := func() engine.CallPlan {
			return engine.Plan(&s, "d1", func(session.Call, json.RawMessage) engine.Traits {
				return engine.Traits{Known: true, Client: client, Expiry: expiry, Approval: func() bool { return !client }}
			})[0]
		}
		require.Equal(t, session.ExpireDefault, plan().Wait.Deadline.Outcome)
		s.Rules.Asked = prompt
		p := plan()
		require.Equal(t, session.WaitApproval, p.Wait.Kind)
		require.Equal(t, &session.Deadline{At: time.Time{}.Add(time.Hour), After: time.Hour, Outcome: session.ExpireDeny}, p.Wait.Deadline)
		require.Equal(t, session.ExpireDefault, expiry.Outcome, "the declaration stays")
	}
}
