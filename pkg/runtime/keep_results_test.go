package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// The reply is committed before an idempotent call runs: what another worker runs
// again is the same call with the same key, whatever its model would say now.
func TestTools_idempotent_call_is_fixed_before_it_runs(t *testing.T) {
	t.Parallel()
	made := newEffects()
	asked := 0
	put := tool.Define(tool.Spec[textIn]{Name: "put", Effect: session.Idempotent}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
		made.add("put " + in.Text + " " + c.IdempotencyKey())
		return "did", nil
	})
	w := newWorld(t, made, agent.Agent{Name: "a", Tools: []tool.Tool{put}, Planner: agent.PlannerFunc(func(_ context.Context, v agent.View) (agent.Reply, error) {
		if len(v.Messages) > 1 {
			return agent.Reply{Text: "done"}, nil
		}
		asked++
		return agent.Reply{Calls: []agent.Call{{Name: "put", Arguments: textIn{fmt.Sprint(asked)}}}}, nil
	})})
	w.start(w.process(), "go")
	f := &fuse{}
	dying := w.process(func(cfg *runtime.Config) {
		cfg.Store = &fusedStore{Store: w.store, fuse: f, detached: true}
		cfg.OnEntry = func(_ session.Key, p runtime.Progress) {
			if p.Kind == session.KindReplied {
				f.at = f.n + 2 // the next claim goes through; the entry with what put did does not
			}
		}
	})
	_, err := dying.Deliver(context.Background(), w.wake(2, journal.WakeStep))
	require.ErrorIs(t, err, errDied, f.ops)
	require.Equal(t, 1, made.count("put 1 default.s1.c2-1"))
	require.NoError(t, w.process().settle())
	require.Equal(t, map[string]int{"put 1 default.s1.c2-1": 2}, made.all())
	w.checkAtRest()
}

// What a call did counts when a signal ends the step, though no ledger knows of it:
// history does not say "not run" of what has happened.
func TestSignal_keeps_what_calls_without_a_ledger_did(t *testing.T) {
	t.Parallel()
	for name, watch := range map[string]time.Duration{"seen at the end of the step": time.Hour, "seen while another call runs": time.Millisecond} {
		for _, kind := range []journal.SignalKind{journal.SignalInterrupt, journal.SignalCancel} {
			t.Run(fmt.Sprintf("%s/%s", name, kind), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				put := make(chan struct{})
				var w *world
				tools := []tool.Tool{
					tool.DefineClient(tool.Spec[textIn]{Name: "locate"}), // so that the step would suspend
					tool.Define(tool.Spec[textIn]{Name: "put", Effect: session.Idempotent}, func(_ context.Context, _ *tool.Call, in textIn) (string, error) {
						defer close(put)
						made.add("put " + in.Text)
						return "did", nil
					}),
					tool.Define(tool.Spec[textIn]{Name: "wait", Effect: session.ReadOnly}, func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
						<-put
						w.signal(kind)
						if watch < time.Hour {
							<-ctx.Done()
						}
						return "waited", ctx.Err()
					}),
				}
				w = newWorld(t, made, agent.Agent{Name: "a", Tools: tools, Planner: script{"go": {calls("put", `{"text":"1"}`, "wait", `{"text":"1"}`, "locate", `{"text":"1"}`)}}})
				w.run(w.process(func(cfg *runtime.Config) { cfg.WatchEvery = watch }), "go")
				require.Equal(t, 1, made.count("put 1"))
				require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
				w.checkAtRest()
			})
		}
	}
}

// A side effect whose worker died after it, before it could say so: its result and
// its run count, also if the task stops without it.
func TestSignal_finds_what_a_dead_worker_finished(t *testing.T) {
	t.Parallel()
	for kind, want := range map[journal.SignalKind]session.Status{
		journal.SignalInterrupt: session.StatusInterrupted, journal.SignalCancel: session.StatusCancelled, journal.SignalAbort: session.StatusFailed,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`)}}))
			w.start(w.process(), "go")
			f := w.dies(5)
			ledger := w.items(store.KindTool)[0].Tool
			require.Equal(t, journal.ToolFinished, ledger.State, f.ops)
			w.signal(kind)
			require.NoError(t, w.process().settle())
			require.Equal(t, want, w.session().Status)
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			require.Equal(t, []journal.ToolRun{*ledger.Ran}, w.journal()[2].Calls)
			require.Equal(t, 1, made.count("line 1"))
			w.checkAtRest()
		})
	}
}

// A message after an interruption closes what has not run, and keeps all of what has.
func TestMessage_finds_what_a_dead_worker_finished(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("count", `{"text":"1"}`)}, "message": {says("heard")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "count"}, func(_ context.Context, c *tool.Call, in textIn) (string, error) {
			made.add("count " + in.Text)
			return "did", errors.Join(c.Append("counted", in.Text), c.Emit("counted", in.Text))
		}))
	}))
	w.start(w.process(), "go")
	w.dies(5)
	ledger := w.items(store.KindTool)[0].Tool
	require.Equal(t, journal.ToolFinished, ledger.State)
	require.NotEmpty(t, ledger.StateOps)
	require.NotEmpty(t, ledger.Events)
	w.clock.advance(time.Hour)
	w.interrupt()
	p := w.process()
	_, err := resume(w, p, runtime.ResumeWithMessage, func(p *runtime.ResumeParams) { p.Message = llm.TextParts("message") })
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
	entry := w.journal()[3]
	require.Equal(t, []journal.ToolRun{*ledger.Ran}, entry.Calls, "%v", w.kinds())
	require.Equal(t, ledger.StateOps, entry.StateOps)
	require.Equal(t, ledger.Events, entry.Events)
	require.Equal(t, 1, made.count("count 1"))
}

// A task that fails by the deadline of one call keeps what is known of the others.
func TestDeadline_that_fails_the_task_keeps_the_results_of_others(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`, "deploy", `{"text":"1"}`, "guarded", `{"text":"1"}`)}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, guarded(made, tool.Expiry{Outcome: session.ExpireFail}))
	}))
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"here"`)})
	require.NoError(t, err)
	for _, record := range w.waits() {
		if record.Wait.Tool == "deploy" {
			_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, no())})
			require.NoError(t, err)
		}
	}
	require.NoError(t, untilExpired(w, p))
	require.Equal(t, session.StatusFailed, w.session().Status)
	got := results(w.session())
	require.Equal(t, llm.ResultSuccess, got["c2-1"].Status, "it has happened")
	require.Equal(t, llm.ResultDenied, got["c2-2"].Status)
	require.Equal(t, llm.ResultCancelled, got["c2-3"].Status)
	require.Empty(t, made.all())
	w.checkAtRest()
}

// What Once remembered does not happen again when its tool goes on with the answer
// to a question, in another process.
func TestTools_once_is_once_over_a_question(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{"pick": "", "choose": "put "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls(name, `{"text":"1"}`), says("bye")}}))
			w.run(w.process(), "go")
			p := w.process()
			_, err := w.submit(p, session.WaitQuestion, session.Answer{Selected: []string{"red"}})
			require.NoError(t, err)
			require.NoError(t, p.settle())
			require.JSONEq(t, `"prepared red"`, string(results(w.session())["c2-1"].Output))
			require.Equal(t, map[string]int{prefix + "prepare 1": 1, prefix + "paint 1": 1}, made.all())
			w.checkAtRest()
		})
	}
}
