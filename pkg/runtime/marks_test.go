package runtime_test

import (
	"context"
	"fmt"
	"sync"
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

// durableWrites notes the writes of a worker that are synced to the disk.
type durableWrites struct {
	store.Store
	mu  sync.Mutex
	ops []string
}

func (d *durableWrites) note(op string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op)
}

func (d *durableWrites) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	d.note(string(p.Entry.Kind))
	return d.Store.Commit(ctx, p)
}

func (d *durableWrites) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	d.note(updating(items))
	return d.Store.Update(ctx, key, items...)
}

// A step with one side effect is two durable writes where marks go with entries, and four where
// they do not.
func TestMarks_go_with_the_entries(t *testing.T) {
	t.Parallel()
	lines := script{"go": {calls("line", `{"text":"1"}`), says("bye")}}
	for name, tt := range map[string]struct {
		change func(*world) *world
		want   []string
	}{
		"with the entries": {func(w *world) *world { return w }, []string{"replied", "stepped", "completed"}},
		"apart":            {(*world).withMarksApart, []string{"replied", "update tool", "update tool", "stepped", "completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := tt.change(newWorld(t, made, helper(made, lines)))
			d := &durableWrites{Store: w.store}
			p := w.process(func(cfg *runtime.Config) { cfg.Store = d })
			w.start(w.process(), "go")
			require.NoError(t, p.work())
			require.Equal(t, tt.want, d.ops)
			ledger := w.items(store.KindTool)[0].Tool
			require.Equal(t, journal.ToolFinished, ledger.State)
			require.Equal(t, llm.ResultSuccess, ledger.Result.Status)
			require.NotNil(t, ledger.Ran)
			require.Equal(t, map[string]int{"line 1": 1}, made.all())
			w.checkAtRest()
		})
	}
}

// Of calls that run side by side the last one's finish mark goes with the entry: what the others
// did must not wait for it.
func TestMarks_of_calls_side_by_side(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := newEffects()
		var w *world
		slow := tool.Define(tool.Spec[textIn]{Name: "slow"}, func(context.Context, *tool.Call, textIn) (string, error) {
			time.Sleep(time.Second) // of the bubble's time: until the other call is over
			states := map[string]journal.ToolState{}
			for _, item := range w.items(store.KindTool) {
				states[item.ID] = item.Tool.State
			}
			require.Equal(t, map[string]journal.ToolState{"c2-1": journal.ToolStarted, "c2-2": journal.ToolFinished}, states)
			return "did", nil
		})
		w = newWorld(t, made, helper(made, script{"go": {calls("slow", `{"text":"1"}`, "line", `{"text":"2"}`), says("bye")}}, func(a *agent.Agent) {
			a.Tools = append(a.Tools, slow)
		}))
		w.clock.advance(time.Since(epoch))
		d := &durableWrites{Store: w.store}
		p := w.process(func(cfg *runtime.Config) { cfg.Store, cfg.Now = d, time.Now })
		w.start(w.process(), "go")
		require.NoError(t, p.work())
		require.Equal(t, []string{"replied", "update tool", "stepped", "completed"}, d.ops)
		for _, item := range w.items(store.KindTool) {
			require.Equal(t, journal.ToolFinished, item.Tool.State, item.ID)
		}
		w.checkAtRest()
	})
}

// A signal that is there when the reply is committed finds a call that is marked and has not
// begun. It is closed, or given free for the worker that goes on: its outcome is never unknown.
func TestMarks_of_a_call_that_did_not_begin(t *testing.T) {
	t.Parallel()
	for _, kind := range []journal.SignalKind{journal.SignalInterrupt, journal.SignalCancel, journal.SignalAbort} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
			p := w.process(func(cfg *runtime.Config) {
				cfg.WatchEvery = time.Hour
				cfg.Store = &storeHook{Store: w.store, when: commits(session.KindReplied), happens: func() { w.signal(kind) }}
			})
			w.start(p, "go")
			w.deliver(p, 2, journal.WakeStep)
			require.Empty(t, made.all())
			state := w.items(store.KindTool)[0].Tool.State
			if kind != journal.SignalInterrupt {
				require.Equal(t, journal.ToolClosed, state)
				require.Equal(t, llm.ResultCancelled, results(w.session())["c2-1"].Status)
				w.checkAtRest()
				return
			}
			require.Equal(t, journal.ToolMemo, state)
			require.Equal(t, session.StatusInterrupted, w.session().Status)
			_, err := w.goOn(w.process())
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			require.Equal(t, map[string]int{"line 1": 1}, made.all())
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			w.checkAtRest()
		})
	}
}

// A program that ends between the reply and its calls gives them free.
func TestMarks_of_a_program_that_ends(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
	ctx, end := context.WithCancel(context.Background())
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &storeHook{Store: w.store, when: commits(session.KindReplied), happens: end}
	})
	w.start(p, "go")
	_, err := p.Deliver(ctx, w.wake(2, journal.WakeStep))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, made.all())
	require.Equal(t, journal.ToolMemo, w.items(store.KindTool)[0].Tool.State)
	require.NoError(t, w.process().settle())
	require.Equal(t, map[string]int{"line 1": 1}, made.all())
	require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
	w.checkAtRest()
}

// A worker is frozen when its tool has returned, and another one tells the outcome as unknown:
// the finish mark that was to go with the refused entry is written alone.
func TestMarks_of_a_refused_entry(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &storeHook{Store: w.store, when: commits(session.KindStepped), happens: func() {
			w.clock.advance(time.Hour)
			w.deliver(w.process(), 3, journal.WakeStep)
		}}
	})
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, journal.ToolFinished, w.items(store.KindTool)[0].Tool.State)
	require.NoError(t, w.process().settle())
	require.Equal(t, llm.ResultUnknown, results(w.session())["c2-1"].Status, "as the owner of the lease told it")
	require.Equal(t, map[string]int{"line 1": 1}, made.all())
	w.checkAtRest()
}

// Another worker has taken the call over when its tool returns: neither the result nor the mark
// of the first counts.
func TestMarks_of_a_call_that_was_taken_over(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("retry", `{"text":"1"}`), says("bye")}}))
	var there store.Item
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery = time.Hour
		cfg.Store = &storeHook{Store: w.store, when: commits(session.KindStepped), happens: func() {
			there = w.items(store.KindTool)[0]
			there.Tool.Attempt = "another"
			there = w.update(there)
		}}
	})
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, []session.Kind{session.KindStarted, session.KindReplied}, w.kinds())
	require.Equal(t, there, w.items(store.KindTool)[0])
}

// Mail that comes while a tool runs is taken in with the entry, and the finish mark goes with that
// entry; a signal finds it written.
func TestMarks_when_head_moves(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]func(w *world){
		"mail": func(w *world) { w.mail("m1", "and this") }, "cancel": func(w *world) { w.signal(journal.SignalCancel) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			asks := calls("line", `{"text":"1"}`, "locate", `{"text":"2"}`)
			w := newWorld(t, made, helper(made, script{"go": {asks, says("bye")}, "and this": {says("bye")}}))
			d := &durableWrites{Store: w.store}
			p := w.process(func(cfg *runtime.Config) {
				cfg.WatchEvery = time.Hour
				cfg.Store = &storeHook{Store: d, when: commits(session.KindSuspended), happens: func() { comes(w) }}
			})
			w.start(w.process(), "go")
			w.deliver(p, 2, journal.WakeStep)
			require.Equal(t, journal.ToolFinished, w.items(store.KindTool)[0].Tool.State, d.ops)
			require.Equal(t, llm.ResultSuccess, results(w.session())["c2-1"].Status)
			require.Equal(t, map[string]int{"line 1": 1}, made.all())
		})
	}
}

// A suspension of as many items as one write takes has room for the finish mark too: the ledgers
// of calls that asked, which do not fit beside it, are written before.
func TestMarks_of_a_suspension_that_is_full(t *testing.T) {
	t.Parallel()
	const many = session.MaxWaits + 30
	var list []string
	for range many {
		list = append(list, "pick", `{"text":"1"}`)
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls(append(list, "line", `{"text":"2"}`)...), says("bye")}}))
	items, finished := 0, false
	p := w.process(func(cfg *runtime.Config) {
		cfg.WatchEvery, cfg.ToolsAtOnce = time.Hour, 1
		cfg.Store = &hook{Store: w.store, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			if p.Entry.Kind == session.KindSuspended {
				items = 1 + len(p.Items)
				for _, item := range p.Items {
					finished = finished || item.Kind == store.KindTool && item.Tool.State == journal.ToolFinished
				}
			}
			return w.store.Commit(ctx, p)
		}}
	})
	w.start(p, "go")
	w.deliver(p, 2, journal.WakeStep)
	require.Equal(t, session.StatusSuspended, w.session().Status)
	require.True(t, finished, "it goes with the entry")
	require.Equal(t, store.MaxItems-1, items, "a notice has room beside them")
	require.Len(t, w.waits(), session.MaxWaits)
	require.Equal(t, llm.ResultSuccess, results(w.session())[fmt.Sprintf("c2-%d", many+1)].Status)
	for _, item := range w.items(store.KindTool) {
		if item.ID != fmt.Sprintf("c2-%d", many+1) {
			require.Equal(t, journal.ToolAsking, item.Tool.State, item.ID)
		}
	}
}
