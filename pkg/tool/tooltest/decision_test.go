package tooltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/tool"
	"github.com/adjourn/adjourn/pkg/tool/tooltest"
)

// paying counts its runs as its result.
func paying(spec tool.Spec[none]) tool.Tool {
	runs := 0
	spec.Name = "pay"
	return tool.Define(spec, func(context.Context, *tool.Call, none) (int, error) { runs++; return runs, nil })
}

func TestRun_after_a_run_that_was_cut_off(t *testing.T) {
	t.Parallel()
	probe := func(happened bool, err error) tool.Tool {
		return paying(tool.Spec[none]{OnUnknown: tool.UnknownProbe, Probe: func(context.Context, *tool.Call, none) (any, bool, error) { return 7, happened, err }})
	}
	ask := tool.Spec[none]{OnUnknown: tool.UnknownAsk, Expiry: &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDeny}}
	cut := tooltest.Call{CutOff: true}
	with := func(change func(*tooltest.Call)) tooltest.Call { c := cut; change(&c); return c }
	for name, c := range map[string]struct {
		tool   tool.Tool
		call   tooltest.Call
		status llm.ResultStatus
		text   string
		runs   int
		is     error
	}{
		"tell":               {paying(tool.Spec[none]{}), cut, llm.ResultUnknown, "not known", 0, nil},
		"retry":              {paying(tool.Spec[none]{OnUnknown: tool.UnknownRetry}), cut, llm.ResultSuccess, "1", 1, nil},
		"idempotent":         {paying(tool.Spec[none]{Effect: tool.Idempotent}), cut, llm.ResultSuccess, "1", 1, nil},
		"probe: it happened": {probe(true, nil), cut, llm.ResultSuccess, "7", 0, nil},
		"probe: it did not":  {probe(false, nil), cut, llm.ResultSuccess, "1", 1, nil},
		"probe: failed":      {probe(false, errors.New("no line")), cut, llm.ResultUnknown, "Looking for it failed: no line", 0, nil},
		"ask":                {paying(ask), cut, "", "", 0, tool.ErrWaiting},
		"ask: happened":      {paying(ask), with(func(c *tooltest.Call) { c.Verdict = &tooltest.Verdict{Happened: true, Result: 9} }), llm.ResultSuccess, "9", 0, nil},
		"ask: did not": {
			paying(ask), with(func(c *tooltest.Call) { c.Verdict = &tooltest.Verdict{Reason: "No money moved."} }),
			llm.ResultError, "did not take effect. No money moved.", 0, nil,
		},
		"ask: nobody says": {paying(ask), with(func(c *tooltest.Call) { c.DecisionExpired = true }), llm.ResultUnknown, "not known", 0, tool.ErrExpired},
		"it was approved":  {paying(tool.Spec[none]{Approve: tool.Always[none]}), with(func(c *tooltest.Call) { c.Approved = true }), llm.ResultUnknown, "not known", 0, nil},
		"a late rejection": {paying(tool.Spec[none]{Approve: tool.Always[none], OnUnknown: tool.UnknownRetry}), with(func(c *tooltest.Call) { c.Rejected = true }), llm.ResultUnknown, "not known", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tooltest.Run(t.Context(), c.tool, none{}, c.call)
			require.Equal(t, c.status, got.Status)
			require.Contains(t, got.Text, c.text)
			require.Equal(t, c.runs, got.Runs)
			require.Equal(t, c.status == llm.ResultSuccess, got.Err == nil, got.Err)
			if c.is != nil {
				require.ErrorIs(t, got.Err, c.is)
			}
		})
	}
	refused := tooltest.Run(t.Context(), paying(tool.Spec[none]{}), json.RawMessage(`7`), cut)
	require.Equal(t, llm.ResultUnknown, refused.Status, "it has run, under other rules")
}

func TestRun_decisions(t *testing.T) {
	t.Parallel()
	large := order{Number: "A", Amount: 250}
	late := func(outcome tool.DeadlineOutcome, value any) tool.Tool {
		return paying(tool.Spec[none]{Approve: tool.Always[none], Expiry: &tool.Expiry{After: time.Hour, Outcome: outcome, Value: value}})
	}

	got := tooltest.Run(t.Context(), refund, large, tooltest.Call{})
	require.Empty(t, got.Status, "nobody has decided yet")
	require.ErrorIs(t, got.Err, tooltest.ErrNotApproved)
	got = tooltest.Run(t.Context(), refund, large, tooltest.Call{Rejected: true, Reason: "too much"})
	require.Equal(t, llm.ResultDenied, got.Status)
	require.Contains(t, got.Text, "too much")
	require.EqualError(t, got.Err, got.Text)
	require.Zero(t, got.Runs)

	answers := map[string]tool.Reply{"reason": {Text: "late"}}
	got = tooltest.Run(t.Context(), refund, large, tooltest.Call{Approved: true, Edited: order{Number: "A", Amount: 90}, Answers: answers})
	require.NoError(t, got.Err)
	require.Contains(t, got.Text, "R-1 of 90")
	got = tooltest.Run(t.Context(), refund, large, tooltest.Call{Approved: true, Edited: json.RawMessage(`{"amount": 90}`)})
	require.ErrorIs(t, got.Err, tooltest.ErrNotApproved, "it waits on")
	require.ErrorContains(t, got.Err, "/number: missing")
	require.NotContains(t, got.Err.Error(), "set Approved", "it is set")
	require.Empty(t, got.Status)

	expired := tooltest.Call{DecisionExpired: true}
	got = tooltest.Run(t.Context(), late(tool.ExpireDeny, nil), none{}, expired)
	require.Equal(t, llm.ResultTimedOut, got.Status)
	require.ErrorIs(t, got.Err, tool.ErrExpired)
	require.NoError(t, tooltest.Run(t.Context(), late(tool.ExpireDefault, true), none{}, expired).Err)
	require.ErrorIs(t, tooltest.Run(t.Context(), late(tool.ExpireDefault, false), none{}, expired).Err, tool.ErrExpired)
	require.ErrorContains(t, tooltest.Run(t.Context(), late(tool.ExpireFail, nil), none{}, expired).Err, "the task fails")
	require.ErrorIs(t, tooltest.Run(t.Context(), late(tool.ExpireReask, nil), none{}, expired).Err, tooltest.ErrNotApproved)
	got = tooltest.Run(t.Context(), refund, large, expired)
	require.ErrorIs(t, got.Err, tooltest.ErrNotApproved)
	require.EqualError(t, got.Err, "the decision has no deadline that could pass: set Expiry in the tool's Spec")

	require.ErrorContains(t, tooltest.Run(t.Context(), refund, large, tooltest.Call{Approved: true, Rejected: true}).Err, "both")
	require.ErrorContains(t, tooltest.Run(t.Context(), refund, order{Amount: 1}, tooltest.Call{Rejected: true, Answers: answers}).Err, "Rejected, and nothing waited")
	got = tooltest.Run(t.Context(), refund, order{Amount: 1}, tooltest.Call{Approved: true, Answers: answers})
	require.EqualError(t, got.Err, "the call has Approved, and nothing waited for it")
	require.Equal(t, llm.ResultSuccess, got.Status, "it ran")
	got = tooltest.Run(t.Context(), paying(tool.Spec[none]{OnUnknown: tool.UnknownAsk}), none{}, tooltest.Call{CutOff: true, Verdict: &tooltest.Verdict{Result: 1}})
	require.ErrorIs(t, got.Err, tool.ErrWaiting)
	require.EqualError(t, got.Err, "the verdict is that the run had no effect, and has a result")
	require.ErrorContains(t, tooltest.Run(t.Context(), paying(tool.Spec[none]{}), none{}, tooltest.Call{Verdict: &tooltest.Verdict{}}).Err, "Verdict, and nothing waited")
}

func TestRun_status_of_what_the_tool_does(t *testing.T) {
	t.Parallel()
	failing := tool.Define(tool.Spec[none]{Name: "fail"}, func(_ context.Context, c *tool.Call, _ none) (none, error) {
		return none{}, errors.Join(errors.New("out of paper"), c.Replace("k", 1), c.Emit("e", 1))
	})
	got := tooltest.Run(t.Context(), failing, none{}, tooltest.Call{})
	require.Equal(t, llm.ResultError, got.Status)
	require.Equal(t, "out of paper", got.Text)
	require.Empty(t, got.State, "only a success changes the state")
	require.Empty(t, got.Events)

	got = tooltest.Run(t.Context(), refund, json.RawMessage(`{"number": 3, "amount": 900}`), tooltest.Call{})
	require.Equal(t, llm.ResultError, got.Status)
	require.Contains(t, got.Text, "/number")
	require.False(t, got.NeedsApproval, "what the schema refuses is not put to a person")
}

// A tool that times out each time: what follows is the policy too.
func TestRun_status_after_a_timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(spec tool.Spec[none]) tooltest.Result {
			spec.Name, spec.Timeout = "slow", time.Minute
			return tooltest.Run(t.Context(), tool.Define(spec, func(ctx context.Context, _ *tool.Call, _ none) (none, error) {
				<-ctx.Done()
				return none{}, ctx.Err()
			}), none{}, tooltest.Call{})
		}
		require.Equal(t, llm.ResultTimedOut, slow(tool.Spec[none]{Effect: tool.ReadOnly}).Status)
		told := slow(tool.Spec[none]{})
		require.Equal(t, llm.ResultUnknown, told.Status)
		require.Contains(t, told.Text, "The tool did not finish within 1m0s. The outcome of this call is not known")
		asked := slow(tool.Spec[none]{OnUnknown: tool.UnknownAsk})
		require.ErrorIs(t, asked.Err, tool.ErrWaiting)
		require.ErrorContains(t, asked.Err, "The tool did not finish within 1m0s. The outcome")
		got := slow(tool.Spec[none]{OnUnknown: tool.UnknownRetry})
		require.Equal(t, llm.ResultUnknown, got.Status)
		require.Contains(t, got.Text, "3 times")
		require.Equal(t, 3, got.Runs)
	})
}

func TestRun_says_what_became_of_answers(t *testing.T) {
	t.Parallel()
	runs := 0
	moving := tool.Define(tool.Spec[none]{Name: "ask"}, func(ctx context.Context, c *tool.Call, _ none) (tool.Reply, error) {
		runs++
		return c.Ask(ctx, tool.Question{ID: "q", Text: []string{"", "One left?", "Two left?"}[runs]})
	})
	got := tooltest.Run(t.Context(), moving, none{}, tooltest.Call{Answers: map[string]tool.Reply{"q": {Text: "yes"}}})
	require.ErrorIs(t, got.Err, tool.ErrWaiting)
	require.ErrorContains(t, got.Err, `question "q" changed after it was answered, so it waits again: it was "One left?", and is "Two left?"`)
	require.Len(t, got.Open, 1)

	got = tooltest.Run(t.Context(), asking(tool.Question{ID: "q", Text: "Why?"}), none{}, tooltest.Call{
		Answers: map[string]tool.Reply{"Q": {Text: "a"}, "r": {}}, Expired: []string{"s"},
	})
	require.ErrorIs(t, got.Err, tool.ErrWaiting)
	require.ErrorContains(t, got.Err, `questions that the tool did not ask: "Q", "r", "s"`)
}

// What is wrong with a test is said once, and of what it is.
func TestRun_mistakes_of_the_test(t *testing.T) {
	t.Parallel()
	wrong := func(args any, c tooltest.Call) error { return tooltest.Run(t.Context(), refund, args, c).Err }
	require.ErrorContains(t, wrong(make(chan int), tooltest.Call{}), "the arguments of refund: json: unsupported type")
	require.ErrorContains(t, wrong(order{}, tooltest.Call{Session: "a/b c"}), `the Session of the call: session id "a/b c"`)
	require.ErrorContains(t, wrong(order{}, tooltest.Call{Files: tool.Files{Folder: "rel"}}), `the folder "rel" of Files is not absolute`)

	useless := asking(tool.Question{ID: "q", Text: "?", Choices: []tool.Choice{{ID: "a"}}, Expiry: &tool.Expiry{After: time.Hour, Outcome: tool.ExpireDefault, Value: "b"}})
	got := tooltest.Run(t.Context(), useless, none{}, tooltest.Call{Expired: []string{"q"}})
	require.EqualError(t, got.Err, `ask "q": the default "b" is no answer to it`)

	twins := tool.Define(tool.Spec[none]{Name: "ask"}, func(ctx context.Context, c *tool.Call, _ none) (string, error) {
		if _, err := c.Ask(ctx, tool.Question{ID: "q", Text: "One?"}); err != nil {
			return "", err
		}
		reply, err := c.Ask(ctx, tool.Question{ID: "q", Text: "Two?"})
		return reply.Text, err
	})
	got = tooltest.Run(t.Context(), twins, none{}, tooltest.Call{Answers: map[string]tool.Reply{"q": {Text: "yes"}}})
	require.EqualError(t, got.Err, `ask "q": two questions of one call have the id: give each its own`)
}
