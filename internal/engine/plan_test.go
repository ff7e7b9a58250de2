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

func yes() bool { return true }

// TestPlan_answers: what a suspended call needs after an answer.
func TestPlan_answers(t *testing.T) {
	t.Parallel()
	const approval, client, question, unknown, child = session.WaitApproval, session.WaitClientTool, session.WaitQuestion, session.WaitUnknown, session.WaitChild
	expires := func(o session.DeadlineOutcome, value string) func(*story) session.Answer {
		return func(st *story) session.Answer { return st.expiry(0, o, value) }
	}
	answers := func(kind session.AnswerKind, change func(*session.Answer)) func(*story) session.Answer {
		return func(st *story) session.Answer { return st.answer(0, kind, change) }
	}
	dismissal := answers(session.AnswerDismissal, func(a *session.Answer) { a.Who, a.Reason = "eve", "so" })
	verdict := func(v session.Verdict, change func(*session.Answer)) func(*story) session.Answer {
		return answers(session.AnswerVerdict, func(a *session.Answer) {
			a.Verdict = v
			if change != nil {
				change(a)
			}
		})
	}
	approve := func(st *story) session.Answer { return st.approval(0, true) }
	reply, told := answers(session.AnswerReply, nil), answers(session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`1`) })
	no := func() bool { return false }
	asks, others := engine.Traits{Approval: no}, engine.Traits{Approval: no, Client: true, Who: []string{"bob"}} // ana answers
	for name, c := range map[string]struct {
		wait     session.WaitKind
		answer   func(*story) session.Answer
		digest   string
		policy   session.ChangePolicy
		traits   engine.Traits
		do       engine.Do
		status   llm.ResultStatus
		output   string
		args     string
		neverRan bool
		refused  bool
		unknown  bool
		opens    session.WaitKind
		failure  string
		replies  int
	}{
		"approved": {wait: approval, answer: approve, do: engine.DoRun},
		"approved_edited": {wait: approval, do: engine.DoRun, args: `{"order":"A-2"}`, answer: func(st *story) session.Answer {
			a := st.approval(0, true)
			a.EditedInput = json.RawMessage(`{"order":"A-2"}`)
			return a
		}},
		"approved_then_client_tool": {wait: approval, answer: approve, traits: engine.Traits{Client: true}, do: engine.DoWait, opens: client},
		"denied":                    {wait: approval, answer: func(st *story) session.Answer { return st.approval(0, false) }, do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDenied, neverRan: true},
		"dismissed":                 {wait: approval, answer: dismissal, do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDismissed + " by eve: so", neverRan: true},
		"dismissed_agent_changed":   {wait: approval, answer: dismissal, digest: "d2", policy: session.ChangeFail, do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDismissed + " by eve: so", neverRan: true},
		"dismissed_question":        {wait: question, answer: dismissal, traits: asks, do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDismissed + " by eve: so", neverRan: true},
		"denied_with_reason": {wait: approval, do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDenied + ": too much", neverRan: true, answer: func(st *story) session.Answer {
			a := st.approval(0, false)
			a.Reason = "too much"
			return a
		}},
		"approval_that_says_nothing":      {wait: approval, answer: answers(session.AnswerApproval, nil), do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDenied, neverRan: true},
		"approved_agent_changed":          {wait: approval, answer: approve, digest: "d2", do: engine.DoWait, opens: approval},
		"approved_agent_changed_reask":    {wait: approval, answer: approve, digest: "d2", policy: session.ChangeReask, do: engine.DoWait, opens: approval},
		"approved_agent_changed_go_on":    {wait: approval, answer: approve, digest: "d2", policy: session.ChangeGoOn, do: engine.DoRun},
		"approved_agent_changed_fail":     {wait: approval, answer: approve, digest: "d2", policy: session.ChangeFail, do: engine.DoFail, failure: "agent_changed"},
		"approved_arguments_refused":      {wait: approval, answer: approve, traits: engine.Traits{Problem: "order: required"}, do: engine.DoResult, status: llm.ResultError, output: "order: required", refused: true},
		"denied_agent_changed":            {wait: approval, answer: func(st *story) session.Answer { return st.approval(0, false) }, digest: "d2", policy: session.ChangeFail, do: engine.DoResult, status: llm.ResultDenied, output: engine.TextDenied, neverRan: true},
		"approval_expired_deny":           {wait: approval, answer: expires(session.ExpireDeny, ""), do: engine.DoResult, status: llm.ResultTimedOut, output: engine.TextExpired, neverRan: true},
		"approval_expired_yes":            {wait: approval, answer: expires(session.ExpireDefault, `true`), do: engine.DoRun},
		"approval_expired_yes_to_another": {wait: approval, answer: expires(session.ExpireDefault, `true`), digest: "d2", do: engine.DoWait, opens: approval},
		"approval_expired_no":             {wait: approval, answer: expires(session.ExpireDefault, `false`), do: engine.DoResult, status: llm.ResultTimedOut, output: engine.TextExpired, neverRan: true},
		"approval_expired_nonsense":       {wait: approval, answer: expires(session.ExpireDefault, `"yes"`), do: engine.DoResult, status: llm.ResultTimedOut, output: engine.TextExpired, neverRan: true},
		"approval_expired_fail":           {wait: approval, answer: expires(session.ExpireFail, ""), do: engine.DoFail, failure: "wait_expired"},
		"approval_expired_reask":          {wait: approval, answer: expires(session.ExpireReask, ""), do: engine.DoWait, opens: approval},

		"client_result":          {wait: client, answer: answers(session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`null`) }), do: engine.DoResult, status: llm.ResultSuccess, output: `null`},
		"client_error":           {wait: client, answer: answers(session.AnswerClientTool, func(a *session.Answer) { a.Error = "no GPS" }), do: engine.DoResult, status: llm.ResultError, output: "no GPS"},
		"client_expired_deny":    {wait: client, answer: expires(session.ExpireDeny, ""), do: engine.DoResult, status: llm.ResultTimedOut, output: engine.TextExpired},
		"client_expired_default": {wait: client, answer: expires(session.ExpireDefault, `{"lat":1}`), do: engine.DoResult, status: llm.ResultSuccess, output: `{"lat":1}`},
		"client_expired_reask":   {wait: client, answer: expires(session.ExpireReask, ""), traits: engine.Traits{Client: true}, do: engine.DoWait, opens: approval},
		"child_ended":            {wait: child, answer: answers(session.AnswerChild, func(a *session.Answer) { a.Result = json.RawMessage(`"ok"`) }), do: engine.DoResult, status: llm.ResultSuccess, output: `"ok"`},

		"question_answered":        {wait: question, answer: answers(session.AnswerReply, nil), traits: asks, do: engine.DoRun, replies: 1},
		"question_expired_deny":    {wait: question, answer: expires(session.ExpireDeny, ""), traits: asks, do: engine.DoRun, replies: 1},
		"question_expired_default": {wait: question, answer: expires(session.ExpireDefault, `"x"`), traits: asks, do: engine.DoRun, replies: 1},
		"question_expired_fail":    {wait: question, answer: expires(session.ExpireFail, ""), do: engine.DoFail, failure: "wait_expired"},

		"replied_agent_changed":          {wait: question, answer: reply, digest: "d2", traits: asks, do: engine.DoRun},
		"replied_agent_changed_reask":    {wait: question, answer: reply, digest: "d2", policy: session.ChangeReask, traits: asks, do: engine.DoRun},
		"replied_agent_changed_go_on":    {wait: question, answer: reply, digest: "d2", policy: session.ChangeGoOn, traits: asks, do: engine.DoRun, replies: 1},
		"replied_agent_changed_fail":     {wait: question, answer: reply, digest: "d2", policy: session.ChangeFail, do: engine.DoFail, failure: "agent_changed"},
		"question_default_agent_changed": {wait: question, answer: expires(session.ExpireDefault, `"x"`), digest: "d2", traits: asks, do: engine.DoRun},
		"question_denied_agent_changed":  {wait: question, answer: expires(session.ExpireDeny, ""), digest: "d2", policy: session.ChangeFail, traits: asks, do: engine.DoRun, replies: 1},

		"client_agent_changed":               {wait: client, answer: told, digest: "d2", traits: engine.Traits{Client: true}, do: engine.DoResult, status: llm.ResultSuccess, output: `1`},
		"client_agent_changed_who":           {wait: client, answer: told, digest: "d2", traits: others, do: engine.DoWait, opens: client},
		"client_agent_changed_who_still":     {wait: client, answer: told, digest: "d2", policy: session.ChangeReask, traits: engine.Traits{Client: true, Who: []string{"bob", "ana"}}, do: engine.DoResult, status: llm.ResultSuccess, output: `1`},
		"client_agent_changed_who_go_on":     {wait: client, answer: told, digest: "d2", policy: session.ChangeGoOn, traits: others, do: engine.DoResult, status: llm.ResultSuccess, output: `1`},
		"client_agent_changed_fail":          {wait: client, answer: told, digest: "d2", policy: session.ChangeFail, do: engine.DoFail, failure: "agent_changed"},
		"client_agent_changed_needs_a_yes":   {wait: client, answer: told, digest: "d2", traits: engine.Traits{Client: true, Who: []string{"bob"}}, do: engine.DoWait, opens: approval},
		"client_agent_changed_arguments":     {wait: client, answer: told, digest: "d2", traits: engine.Traits{Client: true, Problem: "order: required"}, do: engine.DoResult, status: llm.ResultSuccess, output: `1`},
		"client_becomes_server":              {wait: client, answer: told, digest: "d2", traits: engine.Traits{Approval: no, Who: []string{"bob"}}, do: engine.DoResult, status: llm.ResultSuccess, output: `1`},
		"client_becomes_server_untold":       {wait: client, answer: expires(session.ExpireReask, ""), digest: "d2", traits: engine.Traits{Approval: no}, do: engine.DoResult, status: llm.ResultUnknown, output: engine.TextUnknown, unknown: true},
		"client_becomes_server_with_a_yes":   {wait: client, answer: expires(session.ExpireReask, ""), digest: "d2", do: engine.DoResult, status: llm.ResultUnknown, output: engine.TextUnknown, unknown: true},
		"client_becomes_server_arguments":    {wait: client, answer: expires(session.ExpireReask, ""), digest: "d2", traits: engine.Traits{Problem: "order: required"}, do: engine.DoResult, status: llm.ResultUnknown, output: engine.TextUnknown, unknown: true},
		"client_becomes_server_default":      {wait: client, answer: expires(session.ExpireDefault, `1`), digest: "d2", traits: engine.Traits{Approval: no}, do: engine.DoResult, status: llm.ResultUnknown, output: engine.TextUnknown, unknown: true},
		"client_default_agent_changed":       {wait: client, answer: expires(session.ExpireDefault, `1`), digest: "d2", traits: engine.Traits{Client: true, Approval: no}, do: engine.DoWait, opens: client},
		"client_default_agent_changed_go_on": {wait: client, answer: expires(session.ExpireDefault, `1`), digest: "d2", policy: session.ChangeGoOn, do: engine.DoResult, status: llm.ResultSuccess, output: `1`},
		"verdict_agent_changed":              {wait: unknown, answer: verdict(session.VerdictHappened, nil), digest: "d2", do: engine.DoResult, status: llm.ResultSuccess, output: "A person checked: the call took effect."},
		"verdict_agent_changed_who":          {wait: unknown, answer: verdict(session.VerdictNotHappened, nil), digest: "d2", traits: engine.Traits{Approval: no, Who: []string{"bob"}}, do: engine.DoRun},
		"verdict_agent_changed_fail":         {wait: unknown, answer: verdict(session.VerdictHappened, nil), digest: "d2", policy: session.ChangeFail, do: engine.DoFail, failure: "agent_changed"},

		"happened":             {wait: unknown, answer: verdict(session.VerdictHappened, nil), do: engine.DoResult, status: llm.ResultSuccess, output: "A person checked: the call took effect."},
		"happened_with_result": {wait: unknown, answer: verdict(session.VerdictHappened, func(a *session.Answer) { a.Result = json.RawMessage(`7`) }), do: engine.DoResult, status: llm.ResultSuccess, output: `7`},
		"not_happened":         {wait: unknown, answer: verdict(session.VerdictNotHappened, func(a *session.Answer) { a.Reason = "I looked." }), do: engine.DoResult, status: llm.ResultError, output: "A person checked: the call did not take effect. I looked."},
		"unknown_expired":      {wait: unknown, answer: expires(session.ExpireDeny, ""), do: engine.DoResult, status: llm.ResultUnknown, output: engine.TextUnknown},

		"message_is_for_nobody": {wait: approval, answer: answers(session.AnswerMessage, nil), do: engine.DoWait, opens: approval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			st.s.Rules.Policy.OnChange = c.policy
			st.asks(c.wait, "refund")
			st.resumed(c.answer(st)).shown()
			traits := c.traits
			traits.Known = true
			if traits.Approval == nil {
				traits.Approval = yes
			}
			digest := c.digest
			if digest == "" {
				digest = "d1"
			}
			plans := engine.Plan(st.s, digest, func(session.Call, json.RawMessage) engine.Traits { return traits })
			require.Len(t, plans, 1)
			p := plans[0]
			require.Equal(t, digest, p.Policy)
			require.Equal(t, c.do, p.Do)
			require.Equal(t, c.status, p.Result.Status)
			require.Equal(t, c.neverRan, p.NeverRan)
			require.Equal(t, c.refused, p.Refused)
			require.Equal(t, c.unknown, p.Unknown)
			require.Equal(t, c.wait == unknown && c.do == engine.DoResult, p.Looked)
			require.Equal(t, c.opens, p.Wait.Kind)
			require.Len(t, p.Replies, c.replies)
			if c.output != "" {
				text := string(p.Result.Output)
				_ = json.Unmarshal(p.Result.Output, &text)
				require.Contains(t, []string{text, string(p.Result.Output)}, c.output)
				require.Equal(t, "c2-1", p.Result.CallID)
				require.Equal(t, "p-refund", p.Result.ProviderID)
			}
			if c.args != "" {
				require.JSONEq(t, c.args, string(p.Arguments))
			}
			if c.failure != "" {
				require.Equal(t, c.failure, p.Failure.Type)
				require.True(t, p.Failure.Retryable)
			}
			if c.opens != "" {
				require.Equal(t, digest, p.Wait.Policy)
				require.Equal(t, journal.Digest(p.Arguments), p.Wait.Digest)
			}
		})
	}
}

func TestPlan_new_calls(t *testing.T) {
	t.Parallel()
	expiry := &engine.Expiry{After: time.Hour, Outcome: session.ExpireDeny}
	traits := map[string]engine.Traits{
		"run":      {Known: true},
		"ask":      {Known: true, Approval: yes, Expiry: expiry, Who: []string{"ana"}},
		"no_need":  {Known: true, Approval: func() bool { return false }},
		"client":   {Known: true, Client: true},
		"bad_args": {Known: true, Problem: "order: required", Approval: yes},
		"unknown":  {},
	}
	names := []string{"run", "ask", "no_need", "client", "bad_args", "unknown"}
	plan := func(hold bool, names ...string) []engine.CallPlan {
		st := begin(t)
		s := *st.s
		s.Rules.Policy.HoldBatch = hold
		for _, name := range names {
			s.Calls = append(s.Calls, session.Call{ID: "c2-" + name, Name: name, Arguments: json.RawMessage(`{}`)})
		}
		return engine.Plan(&s, "d1", func(c session.Call, _ json.RawMessage) engine.Traits { return traits[c.Name] })
	}
	do := map[string]engine.Do{}
	plans := plan(false, names...)
	for i, p := range plans {
		require.Equal(t, names[i], p.Call.Name, "in the order of the calls")
		do[p.Call.Name] = p.Do
		require.Equal(t, p.Do == engine.DoResult, p.Refused, "another program may have run it")
	}
	require.Equal(t, map[string]engine.Do{
		"run": engine.DoRun, "ask": engine.DoWait, "no_need": engine.DoRun, "client": engine.DoWait, "bad_args": engine.DoResult, "unknown": engine.DoResult,
	}, do)
	require.Equal(t, []string{"ana"}, plans[1].Wait.Who)
	require.Equal(t, time.Hour, plans[1].Wait.Deadline.After)
	require.Contains(t, string(plans[4].Result.Output), "order: required")
	require.Contains(t, string(plans[5].Result.Output), "There is no tool")
	require.Empty(t, plan(false))

	var held []string
	for _, p := range plan(true, names...) {
		held = append(held, p.Call.Name)
	}
	require.Equal(t, []string{"ask", "client", "bad_args", "unknown"}, held, "what could run waits for the decisions")
	require.Len(t, plan(true, "run", "no_need", "unknown"), 3, "nothing to wait for: nothing is held")
}

// TestPlan_replies_to_what_was_shown: a reply to a question about other arguments
// counts for nothing.
func TestPlan_replies_to_what_was_shown(t *testing.T) {
	t.Parallel()
	st := begin(t).asks(session.WaitQuestion, "refund")
	st.resumed(st.answer(0, session.AnswerReply, nil)).shown()
	replies := func() []session.Answer {
		return engine.Plan(st.s, "d1", func(session.Call, json.RawMessage) engine.Traits { return engine.Traits{Known: true} })[0].Replies
	}
	require.Len(t, replies(), 1)
	st.s.Calls[0].Arguments = json.RawMessage(`{"order":"A-2"}`)
	require.Empty(t, replies())
}

// TestPlan_newest_report: of two reports the newest one counts, whichever definition
// the agent went back to since.
func TestPlan_newest_report(t *testing.T) {
	t.Parallel()
	for _, digest := range []string{"d1", "d2", "d3"} {
		st := begin(t).asks(session.WaitClientTool, "refund")
		result := func(value string) session.Answer {
			return st.answer(0, session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(value) })
		}
		first := result(`1`)
		st.resumed(first).shown()
		call := &st.s.Calls[0]
		second, again := first, call.Waits[0]
		second.Wait, second.Result, again.ID, again.Policy = "w9-1", json.RawMessage(`2`), "w9-1", "d2"
		call.Answers, call.Waits = append(call.Answers, second), append(call.Waits, again)
		p := engine.Plan(st.s, digest, func(session.Call, json.RawMessage) engine.Traits { return engine.Traits{Known: true, Client: true} })[0]
		require.Equal(t, engine.DoResult, p.Do, digest)
		require.Equal(t, `2`, string(p.Result.Output), digest)
	}
}
