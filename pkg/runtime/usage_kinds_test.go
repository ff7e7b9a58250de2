package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestUsage_of_runs: the records of the runs say by kind what each used, and their sum is what the task did:
// over waits, a retry later, an interruption and a next turn.
func TestUsage_of_runs(t *testing.T) {
	t.Parallel()
	n := int64(0)
	priced := func(do turn) turn { // of each reply other numbers
		return func(ctx context.Context, v agent.View) (agent.Reply, error) {
			reply, err := do(ctx, v)
			n++
			reply.Usage, reply.CostMicros = llm.Usage{Input: 1000 * n, CacheRead: 500 * n, CacheWrite: 20 * n, Output: 100 * n, Reasoning: 10 * n}, 7*n
			return reply, err
		}
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{
		"go":   {priced(calls("line", `{"text":"1"}`)), priced(calls("deploy", `{"text":"2"}`)), priced(calls("pick", `{"text":"3"}`)), priced(says("bye"))},
		"more": {priced(calls("deploy", `{"text":"4"}`)), priced(says("bye"))},
	}))
	w.run(w.process(), "go")
	_, err := w.submit(w.process(), session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	_, err = w.goOn(w.process())
	require.NoError(t, err)
	_, err = w.submit(w.process(), session.WaitQuestion, session.Answer{Selected: []string{"red"}})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	first := w.session()
	require.Equal(t, session.StatusCompleted, first.Status)
	w.run(w.process(), "more")
	_, err = w.submit(w.process(), session.WaitApproval, no())
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	second := w.session()
	require.Equal(t, session.StatusCompleted, second.Status)

	usage, used := map[int64]llm.Usage{}, map[int64]session.Amounts{}
	for _, item := range w.items(store.KindRun) {
		usage[item.Run.Task], used[item.Run.Task] = usage[item.Run.Task].Add(item.Run.Usage), used[item.Run.Task].Add(item.Run.Used)
	}
	for task, s := range map[int64]*session.Session{1: first, 2: second} {
		require.Equal(t, s.TaskUsage, usage[task], "task %d", task)
		require.Equal(t, s.Used, used[task], "task %d", task)
	}
	require.Equal(t, llm.Usage{Input: 10000, CacheRead: 5000, CacheWrite: 200, Output: 1000, Reasoning: 100}, usage[1], "1+2+3+4 of each")
	require.EqualValues(t, 70, used[1].CostMicros)
	require.Equal(t, llm.Usage{Input: 11000, CacheRead: 5500, CacheWrite: 220, Output: 1100, Reasoning: 110}, usage[2], "5+6")
	w.checkAtRest()
}

// TestUsage_of_old_runs: a record of a run from before a kind was counted says nothing of it.
func TestUsage_of_old_runs(t *testing.T) {
	t.Parallel()
	var run session.Run
	require.NoError(t, json.Unmarshal([]byte(`{"id":1,"task":1,"trigger":"start","status":"completed","startedAt":"2026-01-02T03:04:05Z","firstEntry":1,"usage":{"input":7,"output":3}}`), &run))
	require.Equal(t, llm.Usage{Input: 7, Output: 3}, run.Usage)
	raw, err := json.Marshal(run)
	require.NoError(t, err)
	for _, field := range []string{"cacheRead", "cacheWrite", "reasoning", "used"} {
		require.NotContains(t, string(raw), field)
	}
}
