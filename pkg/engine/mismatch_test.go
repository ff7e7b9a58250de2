package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// shown gives the waits of the open calls the digests of what was shown, and their
// answers those of what they decided on, which the golden journals do not have.
func (st *story) shown() *story {
	for i := range st.s.Calls {
		for j := range st.s.Calls[i].Waits {
			st.s.Calls[i].Waits[j].Digest = session.Digest(st.s.Calls[i].Arguments)
		}
		for j := range st.s.Calls[i].Answers {
			a := &st.s.Calls[i].Answers[j]
			a.Digest = session.Digest(st.s.Calls[i].Arguments)
			if a.EditedInput != nil {
				a.Digest = session.Digest(a.EditedInput)
			}
		}
	}
	return st
}

// TestPlan_runs_what_was_approved: an approval is of the arguments that were shown,
// or of those the answer put in their place, and of none else.
func TestPlan_runs_what_was_approved(t *testing.T) {
	t.Parallel()
	other := json.RawMessage(`{"order":"A-2"}`)
	for name, c := range map[string]struct {
		change func(w *session.Wait, a *session.Answer, call *session.Call)
		do     engine.Do
	}{
		"as shown":                     {func(*session.Wait, *session.Answer, *session.Call) {}, engine.DoRun},
		"other arguments":              {func(_ *session.Wait, _ *session.Answer, call *session.Call) { call.Arguments = other }, engine.DoResult},
		"another digest":               {func(w *session.Wait, _ *session.Answer, _ *session.Call) { w.Digest = session.Digest(other) }, engine.DoResult},
		"no digest":                    {func(w *session.Wait, _ *session.Answer, _ *session.Call) { w.Digest = "" }, engine.DoResult},
		"an answer without its digest": {func(_ *session.Wait, a *session.Answer, _ *session.Call) { a.Digest = "" }, engine.DoResult},
		"an answer to something else":  {func(_ *session.Wait, a *session.Answer, _ *session.Call) { a.Digest = session.Digest(other) }, engine.DoResult},
		"other arguments in both": {func(_ *session.Wait, a *session.Answer, call *session.Call) {
			a.Digest, call.Arguments = session.Digest(other), other
		}, engine.DoResult},
		"edited, without its digest": {func(_ *session.Wait, a *session.Answer, _ *session.Call) {
			a.EditedInput, a.Digest = other, ""
		}, engine.DoResult},
		"edited": {func(_ *session.Wait, a *session.Answer, _ *session.Call) {
			a.EditedInput, a.Digest = other, session.Digest(other)
		}, engine.DoRun},
		"edited and changed": {func(w *session.Wait, a *session.Answer, _ *session.Call) { a.EditedInput, a.Digest = other, w.Digest }, engine.DoResult},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t).asks(session.WaitApproval, "refund")
			st.resumed(st.approval(0, true)).shown()
			call := &st.s.Calls[0]
			c.change(&call.Waits[0], &call.Answers[0], call)
			for _, policy := range []session.ChangePolicy{"", session.ChangeGoOn} {
				st.s.Rules.Policy.OnChange = policy
				plans := engine.Plan(st.s, "d1", func(session.Call, json.RawMessage) engine.Traits {
					return engine.Traits{Known: true, Approval: func() bool { return true }}
				})
				require.Equal(t, c.do, plans[0].Do)
				if c.do == engine.DoResult {
					require.Equal(t, llm.ResultError, plans[0].Result.Status)
					require.True(t, plans[0].NeverRan)
					require.Contains(t, string(plans[0].Result.Output), "approval_mismatch")
				}
			}
		})
	}
}
