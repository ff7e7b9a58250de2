package engine_test

import (
	"cmp"
	"encoding/json"
	"strings"
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
			st.s.Calls[i].Waits[j].Arguments = st.s.Calls[i].Arguments
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
		"another claim": {func(w *session.Wait, _ *session.Answer, _ *session.Call) { w.Claim = "trust me" }, engine.DoResult},
		"another claim, and digest": {func(w *session.Wait, _ *session.Answer, _ *session.Call) {
			w.Claim = "trust me"
			w.ShownDigest = journal.ShownDigest(*w)
		}, engine.DoWait},
		"a preview that was shown": {func(w *session.Wait, a *session.Answer, _ *session.Call) {
			w.Preview = &session.Preview{Title: "Refund", Risk: session.RiskHigh}
			w.ShownDigest = journal.ShownDigest(*w)
			a.ShownDigest = w.ShownDigest
		}, engine.DoRun},
		"a preview that was not": {func(w *session.Wait, _ *session.Answer, _ *session.Call) {
			w.Preview = &session.Preview{Title: "Refund", Risk: session.RiskHigh}
			w.ShownDigest = journal.ShownDigest(*w)
		}, engine.DoWait},
		"an answer to another preview": {func(_ *session.Wait, a *session.Answer, _ *session.Call) { a.ShownDigest = "other" }, engine.DoResult},
		"edited and changed":           {func(w *session.Wait, a *session.Answer, _ *session.Call) { a.EditedInput, a.Digest = other, w.Digest }, engine.DoResult},
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

// TestPlan_effective_arguments: what is compared with what was approved, and with what a report is
// about, is what the tool's function gets now.
func TestPlan_effective_arguments(t *testing.T) {
	t.Parallel()
	filled := json.RawMessage(`{"limit":10,"order":"A-1"}`)
	for name, c := range map[string]struct {
		kind   session.WaitKind
		now    json.RawMessage // what the function gets now
		policy string          // of the wait, where it is another definition's
		change func(w *session.Wait, a *session.Answer)
		do     engine.Do
		status llm.ResultStatus
	}{
		"approved with a default":                 {kind: session.WaitApproval, now: filled, do: engine.DoRun},
		"the default has changed":                 {kind: session.WaitApproval, now: json.RawMessage(`{"limit":11,"order":"A-1"}`), do: engine.DoResult, status: llm.ResultError},
		"the default is gone":                     {kind: session.WaitApproval, do: engine.DoResult, status: llm.ResultError},
		"other arguments shown":                   {kind: session.WaitApproval, now: filled, change: func(w *session.Wait, _ *session.Answer) { w.Arguments = json.RawMessage(`{}`) }, do: engine.DoResult, status: llm.ResultError},
		"a result":                                {kind: session.WaitClientTool, now: filled, do: engine.DoResult, status: llm.ResultSuccess},
		"a result, the default has changed":       {kind: session.WaitClientTool, do: engine.DoResult, status: llm.ResultError},
		"a result under another definition":       {kind: session.WaitClientTool, policy: "d0", do: engine.DoResult, status: llm.ResultSuccess},
		"a result for other arguments":            {kind: session.WaitClientTool, now: filled, change: func(_ *session.Wait, a *session.Answer) { a.Digest = "other" }, do: engine.DoResult, status: llm.ResultError},
		"a result of a wait without a digest":     {kind: session.WaitClientTool, now: filled, change: func(w *session.Wait, _ *session.Answer) { w.Digest = "" }, do: engine.DoResult, status: llm.ResultError},
		"a result, other arguments shown":         {kind: session.WaitClientTool, policy: "d0", change: func(w *session.Wait, _ *session.Answer) { w.Arguments = json.RawMessage(`{}`) }, do: engine.DoResult, status: llm.ResultError},
		"a verdict":                               {kind: session.WaitUnknown, now: filled, do: engine.DoResult, status: llm.ResultSuccess},
		"a verdict about other arguments":         {kind: session.WaitUnknown, do: engine.DoResult, status: llm.ResultUnknown},
		"a verdict of a wait that was changed":    {kind: session.WaitUnknown, policy: "d0", change: func(w *session.Wait, _ *session.Answer) { w.Digest = "other" }, do: engine.DoResult, status: llm.ResultUnknown},
		"an edit, which has no defaults filled":   {kind: session.WaitApproval, now: filled, change: edit(`{"order":"A-1"}`), do: engine.DoResult, status: llm.ResultError},
		"an edit, as the function gets it":        {kind: session.WaitApproval, now: filled, change: edit(`{"order":"A-1","limit":10}`), do: engine.DoRun},
		"a reply to what was shown, which counts": {kind: session.WaitQuestion, now: filled, do: engine.DoRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t).asks(c.kind, "refund")
			kinds := map[session.WaitKind]session.AnswerKind{
				session.WaitApproval: session.AnswerApproval, session.WaitClientTool: session.AnswerClientTool,
				session.WaitUnknown: session.AnswerVerdict, session.WaitQuestion: session.AnswerReply,
			}
			a := st.answer(0, kinds[c.kind], func(a *session.Answer) { a.Approved, a.Result = new(true), json.RawMessage(`1`) })
			a.Verdict = session.VerdictHappened
			st.resumed(a).shown()
			w, answer := &st.s.Calls[0].Waits[0], &st.s.Calls[0].Answers[0]
			w.Arguments, w.Digest, answer.Digest = filled, journal.Digest(filled), journal.Digest(filled)
			w.Policy = cmp.Or(c.policy, "d1")
			if c.change != nil {
				c.change(w, answer)
			}
			p := engine.Plan(st.s, "d1", func(session.Call, json.RawMessage) engine.Traits {
				return engine.Traits{Known: true, Client: c.kind == session.WaitClientTool, Arguments: c.now}
			})[0]
			require.Equal(t, c.do, p.Do)
			if c.do == engine.DoRun {
				require.JSONEq(t, string(filled), string(p.Arguments))
				if c.kind == session.WaitApproval {
					require.Equal(t, journal.Digest(filled), p.Decided)
				} else {
					require.Len(t, p.Replies, 1)
				}
				return
			}
			require.Equal(t, c.status, p.Result.Status)
			require.Equal(t, c.status != llm.ResultSuccess, p.Mismatch)
			require.Equal(t, c.status != llm.ResultSuccess, strings.Contains(string(p.Result.Output), "approval_mismatch"))
		})
	}
}

func edit(input string) func(*session.Wait, *session.Answer) {
	return func(_ *session.Wait, a *session.Answer) {
		a.EditedInput, a.Digest = json.RawMessage(input), journal.Digest([]byte(input))
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
