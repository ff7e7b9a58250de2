package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

const stepBytes = 40_000

func small(cfg *runtime.Config) { cfg.StepBytes = stepBytes }

// bulky are tools that bring 10,000 bytes, each in its own way.
func bulky(made *effects) []tool.Tool {
	large := strings.Repeat("x", 10_000)
	result := func(_ context.Context, c *tool.Call, _ textIn) (string, error) { made.add(c.Name()); return large, nil }
	return []tool.Tool{
		tool.Define(tool.Spec[textIn]{Name: "effect"}, result),
		tool.Define(tool.Spec[textIn]{Name: "read", Effect: session.ReadOnly}, result),
		tool.Define(tool.Spec[textIn]{Name: "state"}, func(_ context.Context, c *tool.Call, _ textIn) (string, error) {
			made.add(c.Name())
			return "did", c.Append("notes", large)
		}),
		tool.Define(tool.Spec[textIn]{Name: "event"}, func(_ context.Context, c *tool.Call, _ textIn) (string, error) {
			made.add(c.Name())
			return "did", c.Emit("note", large)
		}),
		tool.Define(tool.Spec[textIn]{Name: "fails"}, func(_ context.Context, c *tool.Call, _ textIn) (string, error) {
			made.add(c.Name())
			return "", errors.New(large)
		}),
		tool.Define(tool.Spec[textIn]{Name: "asks"}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
			made.add(c.Name())
			_, err := c.Ask(ctx, tool.Question{ID: "q", Text: large})
			return "asked", err
		}),
	}
}

// Whatever the calls of a step bring, and however, its entry keeps no more than a
// step's bytes. What is over is told as an error that says that the tool ran, and
// its ledger keeps the same.
func TestStepSize_bounds_what_the_calls_of_a_step_bring(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"effect", "read", "state", "event", "fails", "asks"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			var list []string
			for range 9 {
				list = append(list, name, `{"text":"1"}`)
			}
			w := newWorld(t, made, agent.Agent{Name: "a", Planner: script{"go": {calls(list...), says("bye")}}, Tools: bulky(made)})
			w.run(w.process(small), "go")
			require.Equal(t, 9, made.count(name), "each ran, and once")
			size, over := 0, 0
			for _, e := range w.journal() {
				if e.Kind == session.KindStepped || e.Kind == session.KindSuspended {
					size = max(size, len(asJSON(t, e)))
				}
			}
			require.Less(t, size, stepBytes+9_000)
			require.Greater(t, size, stepBytes/2, "what fits is kept")
			for id, r := range results(w.session()) {
				if r.Status != llm.ResultError {
					continue
				}
				if strings.Contains(string(r.Output), "too large to keep") {
					over++
				}
				for _, item := range w.items(store.KindTool) {
					if item.ID == id {
						require.Equal(t, journal.Digest(r.Output), journal.Digest(item.Tool.Result.Output), "the ledger keeps the same")
						require.Empty(t, item.Tool.StateOps)
					}
				}
			}
			if name != "fails" {
				require.GreaterOrEqual(t, over, 5)
			}
			w.checkAtRest()
		})
	}
}

// Each of several workers that died finished calls with as much as fits: together
// they are too much for one entry, and the step ends all the same.
func TestStepSize_bounds_what_dead_workers_finished(t *testing.T) {
	t.Parallel()
	for _, signal := range []journal.SignalKind{"", journal.SignalCancel, journal.SignalInterrupt} {
		t.Run(string(signal), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			var list []string
			for range 9 {
				list = append(list, "effect", `{"text":"1"}`)
			}
			w := newWorld(t, made, agent.Agent{Name: "a", Planner: script{"go": {calls(list...), says("bye")}}, Tools: bulky(made)})
			down := &storeHook{Store: w.store, refuse: func(e journal.Entry) bool { return e.Kind == session.KindStepped }}
			p := w.process(func(cfg *runtime.Config) { cfg.Store = down }) // it has room for all of them
			w.start(p, "go")
			_, err := p.Deliver(context.Background(), w.wake(2, journal.WakeStep))
			require.ErrorIs(t, err, store.ErrUnavailable)
			if signal != "" {
				w.signal(signal)
			}
			require.NoError(t, w.process(small).settle())
			require.Equal(t, 9, made.count("effect"))
			require.Len(t, results(w.session()), 9)
			for _, e := range w.journal() {
				require.Less(t, len(asJSON(t, e)), stepBytes+9_000)
			}
			w.checkAtRest()
		})
	}
}

// A reply that is too large fails the task with words that say so, and with it
// what its calls would ask for.
func TestStepSize_bounds_a_reply(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", stepBytes/4)
	for name, reply := range map[string]agent.Reply{
		"text":      {Text: large},
		"arguments": {Calls: []agent.Call{{Name: "deploy", Arguments: json.RawMessage(`{"text":"` + large + `"}`)}}},
		"state":     {StateOps: []session.StateOp{{Op: session.StateReplace, Key: "k", Value: json.RawMessage(`"` + large + `"`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {func(context.Context, agent.View) (agent.Reply, error) { return reply, nil }}}))
			w.run(w.process(small), "go")
			s := w.session()
			require.Equal(t, session.StatusFailed, s.Status)
			require.Contains(t, s.Failure.Message, "too large to keep")
			w.checkAtRest()
		})
	}
}

// No more tools of a step run side by side than the configuration says.
func TestStepSize_bounds_how_many_tools_run_at_once(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var inside, most atomic.Int32
		var list []string
		for i := range 9 {
			list = append(list, "wait", fmt.Sprintf(`{"text":"%d"}`, i))
		}
		wait := tool.Define(tool.Spec[textIn]{Name: "wait", Effect: session.ReadOnly}, func(context.Context, *tool.Call, textIn) (string, error) {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			time.Sleep(time.Second)
			return "waited", nil
		})
		w := newWorld(t, made, agent.Agent{Name: "a", Planner: script{"go": {calls(list...), says("bye")}}, Tools: []tool.Tool{wait}})
		w.clock.advance(time.Since(epoch))
		w.run(w.process(func(cfg *runtime.Config) { cfg.Now, cfg.ToolsAtOnce = time.Now, 3 }), "go")
		require.EqualValues(t, 3, most.Load())
		require.Len(t, results(w.session()), 9)
	})
}

// bigState is a tool that changes the state by 0.9 MB, and whose worker dies when its
// ledger says finished, while there is a fuse.
func bigState(name string, finish bool, f **fuse) tool.Tool {
	return tool.Define(tool.Spec[textIn]{Name: name, Finish: finish}, func(_ context.Context, c *tool.Call, _ textIn) (string, error) {
		if *f != nil {
			(*f).mu.Lock()
			(*f).at, (*f).after = (*f).n+1, true
			(*f).mu.Unlock()
		}
		return "did", c.Append("notes", strings.Repeat("x", 900_000))
	})
}

// finishedByMany is a session whose step may bring 1 MiB. Each of so many workers has
// finished one of its calls, which changes the state by 0.9 MB, and died.
func finishedByMany(t *testing.T, workers int) (w *world, p *process) {
	t.Helper()
	made := newEffects()
	var f *fuse
	big := bigState("big", false, &f)
	var list []string
	for range workers + 1 {
		list = append(list, "big", `{"text":"1"}`)
	}
	w = newWorld(t, made, helper(made, script{"go": {calls(list...), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, big) }))
	small := func(cfg *runtime.Config) { cfg.StepBytes, cfg.ToolsAtOnce = 1<<20, 1 }
	w.start(w.process(small), "go")
	seq := int64(2)
	for range workers {
		f = new(fuse)
		_, _ = w.fusedProcess(f, true, 1, small).Deliver(t.Context(), w.wake(seq, journal.WakeStep))
		seq = 3
		w.clock.advance(time.Hour)
	}
	f = nil
	return w, w.process(small)
}

// broughtLast is how much the newest entry changes the state.
func broughtLast(w *world) (size int) {
	entries := w.journal()
	for _, op := range entries[len(entries)-1].StateOps {
		size += len(op.Value)
	}
	return size
}

// TestStepSize_state_of_many_workers: a sixth worker takes in what five have finished.
func TestStepSize_state_of_many_workers(t *testing.T) {
	t.Parallel()
	w, p := finishedByMany(t, 5)
	w.deliver(p, 3, journal.WakeStep)
	require.LessOrEqual(t, broughtLast(w), 1<<20)
	require.Contains(t, string(results(w.session())["c2-2"].Output), "too large to keep")
}

// TestStepSize_state_of_many_workers_when_stopped: so does what obeys a signal in between.
func TestStepSize_state_of_many_workers_when_stopped(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.SignalKind{journal.SignalInterrupt, journal.SignalCancel, journal.SignalAbort} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w, p := finishedByMany(t, 3)
			w.signal(kind)
			w.deliver(p, 3, journal.WakeStep)
			entries := w.journal()
			require.Equal(t, kind, entries[len(entries)-1].Signal.Kind)
			require.NotZero(t, broughtLast(w))
			require.LessOrEqual(t, broughtLast(w), 1<<20)
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			require.Contains(t, string(results(w.session())["c2-2"].Output), "too large to keep")
		})
	}
}

// TestStepSize_finish_tool_whose_state_is_too_large: its result says so, and the task does
// not end with what the result lacks.
func TestStepSize_finish_tool_whose_state_is_too_large(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var f *fuse
	w := newWorld(t, made, helper(made, script{"go": {calls("big", `{"text":"1"}`, "final", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, bigState("big", false, &f), bigState("final", true, &f))
	}))
	small := func(cfg *runtime.Config) { cfg.StepBytes, cfg.ToolsAtOnce = 1<<20, 1 }
	w.start(w.process(small), "go")
	f = new(fuse)
	_, _ = w.fusedProcess(f, true, 1, small).Deliver(t.Context(), w.wake(2, journal.WakeStep))
	f = nil
	w.clock.advance(time.Hour)
	p := w.process(small)
	w.deliver(p, 3, journal.WakeStep)
	require.Contains(t, string(results(w.session())["c2-2"].Output), "too large to keep")
	require.Equal(t, session.StatusRunning, w.session().Status)
	require.NoError(t, p.settle())
	require.Equal(t, "bye", w.session().Messages[len(w.session().Messages)-1].Text())
	w.checkAtRest()
}
