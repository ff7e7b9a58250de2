package runtime_test

import (
	"context"
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

// twice is a store whose client repeats each write of a ledger by itself, because the
// answer to the first was lost: then the repeated one is refused and shows the first.
func twice(s store.Store) store.Store {
	return &hook{Store: s, update: func(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
		if items[0].Kind == store.KindTool {
			if out, err := s.Update(ctx, key, items...); err != nil {
				return out, err
			}
		}
		return s.Update(ctx, key, items...)
	}}
}

// A ledger that shows what this worker wanted to write was written by it.
func TestLedger_knows_its_own_writes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"line", "retry", "ask", "probe", "pick"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls(name, `{"text":"1"}`), says("bye")}}))
			p := w.process(func(cfg *runtime.Config) { cfg.Store = twice(cfg.Store) })
			w.run(p, "go")
			if name == "pick" {
				_, err := w.submit(p, session.WaitQuestion, session.Answer{Selected: []string{"red"}})
				require.NoError(t, err)
				require.NoError(t, p.work())
			}
			require.Equal(t, session.StatusCompleted, w.session().Status, "%v", w.kinds())
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			for what, n := range made.all() {
				require.Equal(t, 1, n, what)
			}
			w.checkAtRest()
		})
	}
}

// remembering is a session with one call of a tool that remembers which run it was,
// stopped in the middle of its first run until a second worker has got somewhere.
func remembering(t *testing.T, spec tool.Spec[textIn], second func(w *world, run int)) *world {
	t.Helper()
	made := newEffects()
	var w *world
	spec.Name = "remembers"
	remembers := tool.Define(spec, func(ctx context.Context, c *tool.Call, _ textIn) (int, error) {
		made.add("run")
		run := made.count("run")
		return tool.Once(ctx, c, "k", func(context.Context) (int, error) {
			second(w, run)
			return run, nil
		})
	})
	w = newWorld(t, made, helper(made, script{"go": {calls("remembers", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, remembers) }))
	first := w.process(patiently)
	w.start(first, "go")
	require.Equal(t, acknowledged, w.deliver(first, 2, journal.WakeStep))
	return w
}

func patiently(cfg *runtime.Config) { cfg.WatchEvery, cfg.ToolGrace = time.Hour, time.Hour }

// What two workers remember of a call that may run twice is what the first of them
// wrote, though it died then: the other, whose value is another one, stands back.
func TestOnce_first_value_counts(t *testing.T) {
	t.Parallel()
	w := remembering(t, tool.Spec[textIn]{Effect: session.Idempotent}, func(w *world, run int) {
		if run > 1 {
			return
		}
		w.clock.advance(time.Hour)
		second := w.fusedProcess(&fuse{at: 2, after: true}, true, 1, patiently)
		_, _ = second.Deliver(context.Background(), w.wake(3, journal.WakeStep))
	})
	require.Equal(t, map[string]int{"run": 2}, w.effects.all())
	require.JSONEq(t, `2`, string(w.items(store.KindTool)[0].Tool.Memo["k"]))
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
	require.NoError(t, w.process().settle())
	require.JSONEq(t, `2`, string(results(w.session())["c2-1"].Output))
	w.checkAtRest()
}

// A worker that was overtaken in the middle of what it remembers writes nothing into
// the ledger, which is the next one's.
func TestOnce_of_an_overtaken_worker(t *testing.T) {
	t.Parallel()
	inTool, leave, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	w := remembering(t, tool.Spec[textIn]{OnUnknown: session.UnknownRetry, Timeout: time.Hour}, func(w *world, run int) {
		if run > 1 {
			close(inTool)
			<-leave
			return
		}
		w.clock.advance(5 * time.Hour)
		second := w.process(patiently)
		go func() {
			_, err := second.Deliver(context.Background(), w.wake(3, journal.WakeStep))
			over <- err
		}()
		<-inTool
	})
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
	require.Empty(t, w.items(store.KindTool)[0].Tool.Memo)
	close(leave)
	require.NoError(t, <-over)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied, session.KindStepped}, w.kinds())
	require.JSONEq(t, `2`, string(results(w.session())["c2-1"].Output))
	require.NoError(t, w.process().settle())
	w.checkAtRest()
}

// A tool that was left behind when its time was over may still remember something while
// the worker goes on with the call. The race detector judges: what lies between the two is
// time alone, for a channel would put them in order.
func TestOnce_of_a_tool_that_was_left_behind(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	made := newEffects()
	late := tool.Define(tool.Spec[textIn]{
		Name: "late", OnUnknown: tool.UnknownProbe, Timeout: 50 * time.Millisecond,
		Probe: func(context.Context, *tool.Call, textIn) (any, bool, error) {
			<-ended
			return "found", true, nil
		},
	}, func(ctx context.Context, c *tool.Call, _ textIn) (int, error) {
		defer close(ended)
		return tool.Once(ctx, c, "k", func(context.Context) (int, error) {
			time.Sleep(2 * time.Second) // far longer than the worker takes to give the tool up
			return 1, nil
		})
	})
	w := newWorld(t, made, helper(made, script{"go": {calls("late", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, late) }))
	p := w.process(func(cfg *runtime.Config) { cfg.ToolGrace = time.Millisecond })
	w.start(p, "go")
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.JSONEq(t, `"found"`, string(results(w.session())["c2-1"].Output))
}
