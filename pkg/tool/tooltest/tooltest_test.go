package tooltest_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/tool"
	"github.com/adjourn/adjourn/pkg/tool/tooltest"
)

type none struct{}

func asking(q tool.Question) tool.Tool {
	return tool.Define(tool.Spec[none]{Name: "ask"}, func(ctx context.Context, c *tool.Call, _ none) (tool.Reply, error) {
		return c.Ask(ctx, q)
	})
}

func TestRun_refuses_before_the_tool_runs(t *testing.T) {
	t.Parallel()
	got := tooltest.Run(t.Context(), refund, json.RawMessage(`{"number": 3}`), tooltest.Call{Approved: true})
	var wrong *tool.ArgumentError
	require.ErrorAs(t, got.Err, &wrong)
	require.Zero(t, got.Runs)
	require.ErrorIs(t, tooltest.Run(t.Context(), tool.DefineClient(tool.Spec[none]{Name: "locate"}), none{}, tooltest.Call{}).Err, tooltest.ErrClient)
	require.Error(t, tooltest.Run(t.Context(), tool.Tool{}, none{}, tooltest.Call{}).Err)
}

func TestRun_answers_and_deadlines(t *testing.T) {
	t.Parallel()
	choose := tool.Question{ID: "q", Text: "Which?", Choices: []tool.Choice{{ID: "a"}, {ID: "b"}}}
	late := func(outcome tool.DeadlineOutcome, value any) tool.Question {
		q := choose
		q.Expiry = &tool.Expiry{After: time.Hour, Outcome: outcome, Value: value}
		return q
	}
	expired := tooltest.Call{Expired: []string{"q"}}
	var reply tool.Reply
	require.NoError(t, tooltest.Run(t.Context(), asking(choose), none{}, tooltest.Call{Answers: map[string]tool.Reply{"q": {Selected: []string{"b"}}}}).Decode(&reply))
	require.Equal(t, []string{"b"}, reply.Selected)
	require.NoError(t, tooltest.Run(t.Context(), asking(late(tool.ExpireDefault, "a")), none{}, expired).Decode(&reply))
	require.Equal(t, []string{"a"}, reply.Selected)
	require.ErrorIs(t, tooltest.Run(t.Context(), asking(late(tool.ExpireDeny, nil)), none{}, expired).Err, tool.ErrExpired)
	require.ErrorIs(t, tooltest.Run(t.Context(), asking(late(tool.ExpireFail, nil)), none{}, expired).Err, tool.ErrExpired)
	require.ErrorIs(t, tooltest.Run(t.Context(), asking(late(tool.ExpireReask, nil)), none{}, expired).Err, tool.ErrWaiting)
	require.ErrorContains(t, tooltest.Run(t.Context(), asking(choose), none{}, expired).Err, "has no deadline")
	got := tooltest.Run(t.Context(), asking(choose), none{}, tooltest.Call{Answers: map[string]tool.Reply{"q": {Selected: []string{"c"}}}})
	require.ErrorContains(t, got.Err, "does not fit")
	got = tooltest.Run(t.Context(), asking(choose), none{}, tooltest.Call{Answers: map[string]tool.Reply{"q": {Text: "a"}}})
	require.ErrorContains(t, got.Err, "does not fit it: the question takes Selected, ids of its choices: a, b")
	choose.Choices = nil
	got = tooltest.Run(t.Context(), asking(choose), none{}, tooltest.Call{Answers: map[string]tool.Reply{"q": {Selected: []string{"a"}}}})
	require.ErrorContains(t, got.Err, "does not fit it: the question takes Text")
}

// State, events and what Once remembered are there for the next run; a call that waits changes nothing.
func TestRun_state_events_and_once(t *testing.T) {
	t.Parallel()
	runs := 0
	count := tool.Define(tool.Spec[none]{Name: "count"}, func(ctx context.Context, c *tool.Call, _ none) (int, error) {
		n, _, err := tool.State[int](c, "n")
		if err != nil {
			return 0, err
		}
		if _, err := tool.Once(ctx, c, "k", func(context.Context) (int, error) { runs++; return runs, nil }); err != nil {
			return 0, err
		}
		if err := c.Emit("counted", n); err != nil {
			return 0, err
		}
		return n + 1, c.Replace("n", n+1)
	})
	got := tooltest.Run(t.Context(), count, none{}, tooltest.Call{State: map[string]any{"n": 4}})
	require.NoError(t, got.Err)
	require.JSONEq(t, `5`, string(got.State["n"]))
	require.Equal(t, []tooltest.Event{{Name: "counted", Data: json.RawMessage(`4`)}}, got.Events)
	require.NoError(t, tooltest.Run(t.Context(), count, none{}, tooltest.Call{Once: got.Once}).Err)
	require.Equal(t, 1, runs, "the run after a crash finds what Once remembered")

	got = tooltest.Run(t.Context(), refund, order{Number: "A", Amount: 1}, tooltest.Call{})
	require.ErrorIs(t, got.Err, tool.ErrWaiting)
	require.Empty(t, got.State)
}

func TestRun_ends_after_the_timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := tool.Define(tool.Spec[none]{Name: "slow", Timeout: time.Minute}, func(ctx context.Context, _ *tool.Call, _ none) (none, error) {
			<-ctx.Done()
			return none{}, ctx.Err()
		})
		require.ErrorIs(t, tooltest.Run(t.Context(), slow, none{}, tooltest.Call{}).Err, context.DeadlineExceeded)
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	paid := tool.Define(tool.Spec[none]{
		Name: "pay", OnUnknown: tool.UnknownProbe,
		Probe: func(_ context.Context, c *tool.Call, _ none) (any, bool, error) { return c.IdempotencyKey(), true, nil },
	}, func(context.Context, *tool.Call, none) (string, error) { return "", nil })
	out, happened, err := tooltest.Probe(t.Context(), paid, none{}, tooltest.Call{IdempotencyKey: "k"})
	require.NoError(t, err)
	require.True(t, happened)
	require.JSONEq(t, `"k"`, string(out))
}
