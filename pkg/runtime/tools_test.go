package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

func TestTools_state_composes_in_the_order_of_the_calls(t *testing.T) {
	t.Parallel()
	made := newEffects()
	set := tool.Define(tool.Spec[textIn]{Name: "set"}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
		before, _, err := tool.State[string](c, "last")
		if err != nil {
			return "", err
		}
		return before, errors.Join(c.Append("list", in.Text), c.Replace("last", in.Text), c.Emit("set", in.Text))
	})
	w := newWorld(t, made, helper(made, script{"go": {
		calls("set", `{"text":"1"}`, "note", `{"text":"n"}`, "set", `{"text":"2"}`), calls("set", `{"text":"3"}`, "end", `{"text":"e"}`),
	}}, func(a *agent.Agent) { a.Tools = append(a.Tools, set) }))
	p := w.process()
	w.run(p, "go")
	s := w.session()
	state := s.State.Snapshot()
	require.JSONEq(t, `["1","2","3"]`, string(state["list"]))
	require.JSONEq(t, `"3"`, string(state["last"]), "the last one in the order of the calls")
	r := results(s)
	require.JSONEq(t, `""`, string(r["c2-1"].Output))
	require.JSONEq(t, `""`, string(r["c2-3"].Output), "tools of one step start from the same base")
	require.JSONEq(t, `"2"`, string(r["c4-1"].Output))
	require.JSONEq(t, `{"text":"e","notes":["n"]}`, string(s.Output))
	require.Equal(t, session.StatusCompleted, s.Status)
	require.Len(t, w.journal()[2].Events, 2, "events are in the step's entry, in the order of the calls")
}

func TestTools_finish_sees_phase_one_and_runs_after_it(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("end", `{"text":"e"}`, "note", `{"text":"n"}`)}}))
	w.run(w.process(), "go")
	require.JSONEq(t, `{"text":"e","notes":["n"]}`, string(w.session().Output))

	w = newWorld(t, made, helper(made, script{"go": {calls("end", `{"text":"e"}`, "deploy", `{"text":"d"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	require.Equal(t, session.StatusSuspended, w.session().Status, "nothing finishes while something waits")
	require.Empty(t, results(w.session()))
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.NotEmpty(t, w.session().Output)
}

func TestTools_structured_output(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {
		calls(agent.FinishTool, `{"text":1}`), calls(agent.FinishTool, `{"text":"x"}`),
	}, "more": {says("and on")}}, func(a *agent.Agent) { a.Output = agent.OutputOf[textIn]() }))
	p := w.process()
	w.run(p, "go")
	s := w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	require.JSONEq(t, `{"text":"x"}`, string(s.Output))
	require.Equal(t, llm.ResultError, results(s)["c2-1"].Status, "arguments are validated and the model is told")
	require.Equal(t, llm.ResultSuccess, results(s)["c3-1"].Status, "its call is answered before the session can go on")
	w.run(p, "more")
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Nil(t, w.session().Output, "the output belongs to its task")
}

func TestTools_errors_are_results(t *testing.T) {
	t.Parallel()
	made := newEffects()
	bad := func(name string, f func() (string, error)) tool.Tool {
		return tool.Define(tool.Spec[textIn]{Name: name}, func(context.Context, *tool.Call, textIn) (string, error) { return f() })
	}
	w := newWorld(t, made, helper(made, script{"go": {
		calls("panics", `{"text":"1"}`, "errs", `{"text":"1"}`, "nobody", `{}`, "line", `{"txt":"1"}`, "line", `[]`, "line", `{"text":"ok"}`), says("bye"),
	}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, bad("panics", func() (string, error) { panic("oh") }), bad("errs", func() (string, error) { return "", errors.New("no luck") }))
	}))
	w.run(w.process(), "go")
	s := w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	r := results(s)
	for id, part := range map[string]string{"c2-1": "panicked: oh", "c2-2": "no luck", "c2-3": "no tool", "c2-4": "txt", "c2-5": "object"} {
		require.Equal(t, llm.ResultError, r[id].Status, id)
		require.Contains(t, string(r[id].Output), part)
	}
	require.Equal(t, llm.ResultSuccess, r["c2-6"].Status)
	require.Equal(t, map[string]int{"line ok": 1}, made.all())
}

func TestTools_timeouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect session.Effect
		policy session.UnknownPolicy
		obeys  bool
		want   llm.ResultStatus // "" waits for a verdict
	}{
		"read only":                {session.ReadOnly, "", true, llm.ResultTimedOut},
		"read only and deaf":       {session.ReadOnly, "", false, llm.ResultTimedOut},
		"idempotent":               {session.Idempotent, "", true, llm.ResultTimedOut},
		"side effect, tell":        {session.SideEffect, session.UnknownTell, true, llm.ResultUnknown},
		"side effect, deaf":        {session.SideEffect, session.UnknownTell, false, llm.ResultUnknown},
		"side effect, ask":         {session.SideEffect, session.UnknownAsk, true, ""},
		"side effect, retry":       {session.SideEffect, session.UnknownRetry, true, llm.ResultUnknown},
		"side effect, probe finds": {session.SideEffect, session.UnknownProbe, true, llm.ResultSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := newEffects()
				spec := tool.Spec[textIn]{Name: "slow", Effect: c.effect, OnUnknown: c.policy, Timeout: 10 * time.Second}
				if c.policy == session.UnknownProbe {
					spec.Probe = func(context.Context, *tool.Call, textIn) (any, bool, error) { return "found", true, nil }
				}
				release := make(chan struct{})
				slow := tool.Define(spec, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
					made.add("slow")
					if !c.obeys {
						<-release
						return "late", nil
					}
					<-ctx.Done()
					return "", ctx.Err()
				})
				w := realTime(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, slow) }))
				p := w.process()
				w.start(p, "go")
				began := time.Now()
				require.NoError(t, p.work())
				require.Less(t, time.Since(began), time.Minute)
				close(release)
				if c.want == "" {
					require.Equal(t, session.WaitOpen, w.open(session.WaitUnknown).State)
					return
				}
				require.Equal(t, session.StatusCompleted, w.session().Status)
				got := results(w.session())["c2-1"]
				require.Equal(t, c.want, got.Status)
				if c.policy == session.UnknownTell {
					require.Contains(t, string(got.Output), "The tool did not finish within 10s. The outcome of this call is not known")
				}
			})
		})
	}
}

func TestTools_ask_twice(t *testing.T) {
	t.Parallel()
	for _, effect := range []session.Effect{session.SideEffect, session.Idempotent, session.ReadOnly} {
		made := newEffects()
		twice := tool.Define(tool.Spec[textIn]{Name: "twice", Effect: effect}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
			made.add("run")
			first, err := c.Ask(ctx, tool.Question{ID: "1", Text: "First?"})
			if err != nil {
				return "", err
			}
			second, err := c.Ask(ctx, tool.Question{ID: "2", Text: "Second, after " + first.Text + "?"})
			if err != nil {
				return "whatever it returns", nil
			}
			return first.Text + second.Text, nil
		})
		w := newWorld(t, made, helper(made, script{"go": {calls("twice", `{"text":"1"}`)}}, func(a *agent.Agent) { a.Tools = append(a.Tools, twice) }))
		p := w.process()
		w.run(p, "go")
		_, err := w.submit(p, session.WaitQuestion, text("a"))
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, "Second, after a?", w.open(session.WaitQuestion).Wait.Question.Text)
		_, err = w.submit(p, session.WaitQuestion, text(""))
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.JSONEq(t, `"a"`, string(results(w.session())["c2-1"].Output), effect)
		require.Equal(t, 3, made.count("run"), "rerun from its top, with the stored replies")
		w.checkAtRest()
	}
}

func TestTools_hold_batch(t *testing.T) {
	t.Parallel()
	for hold, want := range map[bool]int{true: 0, false: 1} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`)}}, func(a *agent.Agent) { a.Policy.HoldBatch = hold }))
		p := w.process()
		w.run(p, "go")
		require.Equal(t, want, made.count("line 1"), "siblings that need nobody run first, unless the batch is held")
		_, err := w.submit(p, session.WaitApproval, no())
		require.NoError(t, err)
		require.NoError(t, p.settle())
		require.Equal(t, 1, made.count("line 1"))
		require.Zero(t, made.count("deploy 2"))
	}
}

func TestTools_on_change(t *testing.T) {
	t.Parallel()
	for policy, want := range map[session.ChangePolicy]session.Status{
		session.ChangeGoOn: session.StatusCompleted, session.ChangeReask: session.StatusSuspended, "": session.StatusSuspended, session.ChangeFail: session.StatusFailed,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			lines := script{"go": {calls("deploy", `{"text":"1"}`)}}
			w := newWorld(t, made, helper(made, lines, func(a *agent.Agent) { a.Policy.OnChange = policy }))
			p := w.process()
			w.run(p, "go")
			first := w.open(session.WaitApproval).Wait
			_, err := w.submit(p, session.WaitApproval, yes())
			require.NoError(t, err)
			changed, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, lines, func(a *agent.Agent) {
				a.Policy.OnChange = policy
				a.System = "Something else."
			})}})
			require.NoError(t, err)
			other := w.process(func(cfg *runtime.Config) { cfg.Registry = changed })
			require.NoError(t, other.settle())
			s := w.session()
			require.Equal(t, want, s.Status)
			asksAgain, failed := want == session.StatusSuspended, want == session.StatusFailed
			switch {
			case asksAgain:
				require.NotEqual(t, first.ID, w.open(session.WaitApproval).Wait.ID)
				require.Empty(t, made.all())
				_, err = w.submit(other, session.WaitApproval, yes())
				require.NoError(t, err)
				require.NoError(t, other.settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
			case failed:
				require.Equal(t, "agent_changed", s.Failure.Type)
				require.Empty(t, made.all())
			default:
				require.Equal(t, 1, made.count("deploy 1"))
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits session.Limits
		reply  agent.Reply
		steps  int64
	}{
		"steps":        {session.Limits{Steps: 2}, agent.Reply{}, 2},
		"tokens":       {session.Limits{Tokens: 25}, agent.Reply{Usage: llm.Usage{Input: 5, Output: 5}}, 3},
		"costMicros":   {session.Limits{CostMicros: 10}, agent.Reply{CostMicros: 4}, 3},
		"activeMillis": {session.Limits{ActiveMillis: 5000}, agent.Reply{Text: "slow"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			var w *world
			planner := agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
				reply := c.reply
				if reply.Text != "" {
					w.clock.advance(3 * time.Second)
				}
				reply.Calls = []agent.Call{{Name: "echo", Arguments: json.RawMessage(`{"text":"1"}`)}}
				return reply, nil
			})
			w = newWorld(t, made, agent.Agent{Name: "a", Planner: planner, Tools: toolbox(made), Limits: c.limits})
			w.run(w.process(), "go")
			s := w.session()
			require.Equal(t, session.StatusFailed, s.Status)
			require.Equal(t, "limit_reached", s.Failure.Type)
			require.Contains(t, s.Failure.Message, name)
			require.Equal(t, c.steps, s.Step)
			w.checkAtRest()
		})
	}
}

func TestLimits_waiting_does_not_count(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "approve")
	before := w.session().Used.ActiveMillis
	w.clock.advance(48 * time.Hour)
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, before, w.session().Used.ActiveMillis)
}

func TestPlanner_failures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		kind      string
		retryable bool
	}{
		"an error of the planner":     {errors.New("broken"), "planner_failed", true},
		"a request that is wrong":     {&llm.Error{Class: llm.ClassInvalid, Message: "m"}, "model_invalid", false},
		"a refusal":                   {&llm.Error{Class: llm.ClassRefused, Message: "m"}, "model_refused", true},
		"rate limits that do not end": {busy, "model_rate_limited", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, agent.Agent{Name: "a", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{}, c.err })})
			p := w.process()
			w.start(p, "go")
			require.NoError(t, p.settle())
			s := w.session()
			require.Equal(t, session.StatusFailed, s.Status)
			require.Equal(t, c.kind, s.Failure.Type)
			require.Equal(t, c.retryable, s.Failure.Retryable)
			w.checkAtRest()
		})
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {func(context.Context, agent.View) (agent.Reply, error) { panic("oh") }}}))
	w.run(w.process(), "go")
	require.Contains(t, w.session().Failure.Message, "panicked")
}
