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

// shown gives the waits of the open calls the digests of what was shown, and their
// answers those of what they decided on, which the golden journals do not have.
func (st *story) shown() *story {
	for i := range st.s.Calls {
		for j := range st.s.Calls[i].Waits {
			st.s.Calls[i].Waits[j].Digest = journal.Digest(st.s.Calls[i].Arguments)
		}
		for j := range st.s.Calls[i].Answers {
			a := &st.s.Calls[i].Answers[j]
			a.Digest = journal.Digest(st.s.Calls[i].Arguments)
			if a.EditedInput != nil {
				a.Digest = journal.Digest(a.EditedInput)
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
		"another digest":               {func(w *session.Wait, _ *session.Answer, _ *session.Call) { w.Digest = journal.Digest(other) }, engine.DoResult},
		"no digest":                    {func(w *session.Wait, _ *session.Answer, _ *session.Call) { w.Digest = "" }, engine.DoResult},
		"an answer without its digest": {func(_ *session.Wait, a *session.Answer, _ *session.Call) { a.Digest = "" }, engine.DoResult},
		"an answer to something else":  {func(_ *session.Wait, a *session.Answer, _ *session.Call) { a.Digest = journal.Digest(other) }, engine.DoResult},
		"other arguments in both": {func(_ *session.Wait, a *session.Answer, call *session.Call) {
			a.Digest, call.Arguments = journal.Digest(other), other
		}, engine.DoResult},
		"edited, without its digest": {func(_ *session.Wait, a *session.Answer, _ *session.Call) {
			a.EditedInput, a.Digest = other, ""
		}, engine.DoResult},
		"edited": {func(_ *session.Wait, a *session.Answer, _ *session.Call) {
			a.EditedInput, a.Digest = other, journal.Digest(other)
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

// TestPlan_asks_anew_about_what_the_model_wants: an approval of another agent counts
// for nothing, and neither do the arguments it put in the place of the call's.
func TestPlan_asks_anew_about_what_the_model_wants(t *testing.T) {
	t.Parallel()
	st := begin(t).asks(session.WaitApproval, "refund")
	a := st.approval(0, true)
	a.EditedInput = json.RawMessage(`{"order":"A-2"}`)
	a.Digest = journal.Digest(a.EditedInput)
	st.resumed(a).shown()
	var seen json.RawMessage
	plan := func(digest string) engine.CallPlan {
		return engine.Plan(st.s, digest, func(_ session.Call, arguments json.RawMessage) engine.Traits {
			seen = arguments
			return engine.Traits{Known: true, Approval: yes}
		})[0]
	}
	p := plan("d1")
	require.Equal(t, engine.DoRun, p.Do)
	require.JSONEq(t, string(a.EditedInput), string(seen), "what runs is what is checked")
	p = plan("d2")
	require.Equal(t, engine.DoWait, p.Do)
	for _, arguments := range []json.RawMessage{seen, p.Arguments, p.Wait.Arguments} {
		require.JSONEq(t, string(st.s.Calls[0].Arguments), string(arguments))
	}
	require.Equal(t, journal.Digest(st.s.Calls[0].Arguments), p.Wait.Digest)
}

// TestPlan_answers_that_could_not_be_kept: the call has not run and does not, and the
// model is told why.
func TestPlan_answers_that_could_not_be_kept(t *testing.T) {
	t.Parallel()
	for kind, answer := range map[session.WaitKind]func(st *story) session.Answer{
		session.WaitApproval: func(st *story) session.Answer {
			a := st.approval(0, true)
			a.EditedInput, a.Digest = json.RawMessage(`null`), journal.Digest([]byte(`{"order":"A-2"}`))
			return a
		},
		session.WaitQuestion: func(st *story) session.Answer { return st.answer(0, session.AnswerReply, nil) },
	} {
		st := begin(t).asks(kind, "refund")
		a := answer(st)
		a.Error = "too large to keep"
		p := engine.Plan(st.resumed(a).shown().s, "d1", func(session.Call, json.RawMessage) engine.Traits { return engine.Traits{Known: true} })[0]
		require.Equal(t, engine.DoResult, p.Do, kind)
		require.Equal(t, llm.ResultError, p.Result.Status, kind)
		require.JSONEq(t, `"too large to keep"`, string(p.Result.Output), kind)
		require.True(t, p.NeverRan, kind)
		require.Empty(t, p.Replies, kind)
	}
}
