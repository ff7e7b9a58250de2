package runtime_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func twoWorld(t *testing.T) (*world, *effects) {
	made := newEffects()
	return newWorld(t, made, helper(made, script{"go": {calls("two", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, twoQuestions(made))
	})), made
}

func (w *world) reply(t *testing.T, s string) {
	t.Helper()
	_, err := w.submit(w.process(), session.WaitQuestion, text(s))
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
}

func twoQuestions(made *effects) tool.Tool {
	return tool.Define(tool.Spec[textIn]{Name: "two"}, func(ctx context.Context, c *tool.Call, in textIn) (string, error) {
		one, err := c.Ask(ctx, tool.Question{ID: "one", Text: "One?"})
		if err != nil {
			return "", err
		}
		paid, err := tool.Once(ctx, c, "pay", func(context.Context) (string, error) {
			made.add("pay")
			return "paid " + one.Text, nil
		})
		if err != nil {
			return "", err
		}
		if _, err := c.Ask(ctx, tool.Question{ID: "two", Text: "Two?"}); err != nil {
			return "", err
		}
		return paid, nil
	})
}

// A rule that asks for an approval is asked once for a call: it may say something else the second time.
func TestGoingBack_approval_rule_is_asked_once(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var asked atomic.Int64
	once := tool.Define(tool.Spec[textIn]{Name: "budget", Approve: func(textIn) bool { return asked.Add(1) == 1 }},
		func(_ context.Context, c *tool.Call, in textIn) (string, error) {
			made.add("budget " + in.Text)
			return "did", nil
		})
	w := newWorld(t, made, helper(made, script{"go": {calls("budget", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, once) }))
	w.run(w.process(), "go")
	t.Log(asked.Load(), made.all(), w.kinds())
	require.Empty(t, made.all())
	require.Equal(t, session.StatusSuspended, w.session().Status)
}

// A way back that does not fit into one entry is refused, and closes nothing: what is answered afterwards counts.
func TestGoingBack_refused_way_back_closes_nothing(t *testing.T) {
	t.Parallel()
	const n = 60
	made := newEffects()
	var list []string
	for i := range n {
		list = append(list, "pick", fmt.Sprintf(`{"text":"%d"}`, i))
	}
	w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
	w.run(w.process(), "go")
	_, err := w.back(w.process(), w.suspendedAt(), "")
	t.Log(codeOf(err), err)
	if err == nil {
		return
	}
	accepted := 0
	for _, record := range w.waits() {
		if record.State != session.WaitOpen {
			continue
		}
		_, err := w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, session.Answer{Selected: []string{"red"}})})
		require.NoError(t, err)
		accepted++
	}
	require.NoError(t, w.process().settle())
	painted := 0
	for i := range n {
		painted += made.count(fmt.Sprintf("paint %d", i))
	}
	t.Log(w.session().Status, w.kinds(), results(w.session())["c2-1"].Status)
	require.Equal(t, accepted, painted, "each reply was taken with 200")
}

// What Once has remembered under the ids of an earlier way back is kept by the next one.
func TestGoingBack_memo_of_a_renamed_call(t *testing.T) {
	t.Parallel()
	w, made := twoWorld(t)
	w.run(w.process(), "go")
	at := w.suspendedAt()
	back := func() {
		params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at), Caller: people}
		began, err := acknowledging(w.process(), &params)
		require.NoError(t, err)
		t.Log("effects listed:", began.Effects.Count)
	}
	back()
	w.reply(t, "a")
	require.Equal(t, 1, made.count("pay"))
	require.Equal(t, session.StatusSuspended, w.session().Status)
	back()
	w.reply(t, "a")
	require.Equal(t, 1, made.count("pay"), "Once happened twice for one decision of the model")
}

// A client is not asked for a tool that the task may not call.
func TestGoingBack_client_runs_a_tool_left_out(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`), says("bye")}}))
	w.run(w.process(), "go")
	_, err := w.process().GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Rules: session.TaskRules{AllowedTools: []string{"echo"}}, Caller: people})
	require.NoError(t, err)
	if len(w.session().Waits) == 0 {
		return
	}
	_, err = w.submit(w.process(), session.WaitClientTool, session.Answer{Result: []byte(`"here"`)})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	for id, r := range results(w.session()) {
		require.NotEqual(t, llm.ResultSuccess, r.Status, "%s ran: the task's tools are %v", id, w.session().Rules.Tools)
	}
}

// What is asked anew is held to the tools of the task that begins.
func TestGoingBack_going_back_with_fewer_tools(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"locate", "deploy", "pick"} {
		for _, verb := range []string{"back", "fork"} {
			t.Run(name+" "+verb, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls(name, `{"text":"1"}`), says("bye")}}))
				w.run(w.process(), "go")
				rules := session.TaskRules{AllowedTools: []string{"echo"}}
				var began runtime.Began
				if verb == "back" {
					var err error
					began, err = w.process().GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Rules: rules, Caller: people})
					require.NoError(t, err)
				} else {
					forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Rules: rules, Caller: people})
					require.NoError(t, err)
					began = forked.Began
				}
				require.Empty(t, began.Open, "the task may not call %s", name)
			})
		}
	}
}

// What needs an approval is denied where the task that begins does not wait for one.
func TestGoingBack_going_back_no_pause(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	w.run(w.process(), "go")
	_, err := w.process().GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Rules: session.TaskRules{PauseOnApproval: new(false)}, Caller: people})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status, "nobody attends it, and it waits")
}

// The same however much is asked.
func TestGoingBack_no_pause_depends_on_the_size(t *testing.T) {
	t.Parallel()
	asked := map[int]int{}
	for _, n := range []int{2, 60} {
		made := newEffects()
		var list []string
		for i := range n {
			list = append(list, "deploy", fmt.Sprintf(`{"text":"%d"}`, i))
		}
		w := newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}))
		w.run(w.process(), "go")
		_, err := w.process().GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, w.suspendedAt()), Rules: session.TaskRules{PauseOnApproval: new(false)}, Caller: people})
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
		asked[n] = len(w.session().Waits)
	}
	require.Equal(t, map[int]int{2: 0, 60: 0}, asked)
}
