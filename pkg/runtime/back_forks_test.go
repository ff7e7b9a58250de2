package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// A wait of a fork names a call that is open there, also where a sibling has a result.
func TestGoingBack_fork_wait_names_its_call(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, hold))
	w.run(w.process(), "go")
	at := w.suspendedAt()
	_, err := w.answer(w.process(), 0)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Checkpoint: checkpointAt(w, at), Caller: people})
	require.NoError(t, err)
	require.Len(t, forked.Open, 1)
	s := sessionOf(t, w, forked.Key)
	require.Len(t, s.Calls, 1)
	_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: forked.Key, Caller: person, Answer: fill(forked.Open[0], no())})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	s2 := sessionOf(t, w, forked.Key)
	t.Logf("call %s, wait for %s; after the no: %s, open waits %v", s.Calls[0].ID, forked.Open[0].Call, s2.Status, s2.Waits)
	require.Equal(t, s.Calls[0].ID, forked.Open[0].Call)
	require.Equal(t, session.StatusCompleted, s2.Status, "the answer was accepted with 200")
}

// The calls of a fork have ids that no call of its history has.
func TestGoingBack_fork_ids_are_unique(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}, "more": {calls("line", `{"text":"2"}`), says("bye")}}))
	w.run(w.process(), "go")
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Message: llm.TextParts("more"), Caller: people})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	s := sessionOf(t, w, forked.Key)
	t.Log(s.Status, ids(s))
	seen := map[string]bool{}
	for _, id := range ids(s) {
		require.False(t, seen[id], "%s is there twice: %v", id, ids(s))
		seen[id] = true
	}
}

// A call that nobody is asked about is made by the origin, not by its fork.
func TestGoingBack_fork_runs_what_the_origin_runs(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, hold))
	w.run(w.process(), "go")
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
	require.NoError(t, err)
	_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: forked.Key, Caller: person, Answer: fill(forked.Open[0], no())})
	require.NoError(t, err)
	_, err = w.answer(w.process(), 0)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	t.Log(made.all())
	require.Equal(t, 1, made.count("line 1"))
}

// A checkpoint, a session and its forks are those of one tenant.
func TestGoingBack_tenants(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	w.run(w.process(), "go")
	key := session.Key{Tenant: "other", ID: w.key.ID}
	cp := checkpointAt(w, 1)
	_, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: key, Checkpoint: cp, Caller: people})
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	_, err = w.process().Checkpoint(context.Background(), key, cp, "")
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	_, err = w.process().Forks(context.Background(), key)
	require.Equal(t, runtime.CodeSessionNotFound, codeOf(err))
	// another session of the tenant
	w2 := w.another()
	w2.run(w2.process(), "go")
	_, err = w.process().Checkpoint(context.Background(), w.key, cp, checkpointAt(w2, 1))
	require.Equal(t, runtime.CodeCheckpointNotFound, codeOf(err))
	_, err = w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, Checkpoint: checkpointAt(w2, 1), Caller: people})
	require.Equal(t, runtime.CodeCheckpointNotFound, codeOf(err))
	for _, id := range []string{"*", "s*", "", "s1/s2"} {
		_, err = w.process().Forks(context.Background(), session.Key{Tenant: w.key.Tenant, ID: id})
		require.Error(t, err, id)
	}
}

// A fork of a checkpoint at which a verdict is awaited has the outcome as unknown.
func TestGoingBack_fork_of_a_checkpoint_with_an_unknown_wait(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("ask", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
	w.start(w.process(), "go")
	w.drain()
	f := &fuse{at: 5}
	_, err := w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
	t.Log(err, f.ops, made.all())
	w.clock.advance(time.Minute)
	sweepOf(t, w.process())
	require.NoError(t, w.process().settle())
	for _, r := range w.waits() {
		t.Log(r.Wait.Kind, r.Wait.Call)
	}
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
	require.NoError(t, err)
	s := sessionOf(t, w, forked.Key)
	open := map[string]bool{}
	for _, c := range s.Calls {
		open[c.ID] = true
	}
	for _, wt := range forked.Open {
		require.True(t, open[wt.Call], "%s %s", wt.Kind, wt.Call)
	}
}

// A session and its fork may have ids of the greatest length.
func TestGoingBack_fork_of_long_ids(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {says("bye")}}))
	long := ""
	for len(long) < 128 {
		long += "x"
	}
	w.key.ID = long
	w.run(w.process(), "go")
	_, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "y" + long[1:], Caller: people})
	require.NoError(t, err)
	heads, err := w.process().Forks(context.Background(), w.key)
	require.NoError(t, err)
	require.Len(t, heads, 1)
}

// A retry and a fork are crossed by others at each call of the store.
func TestGoingBack_retry_and_fork_crossed(t *testing.T) {
	t.Parallel()
	plan := func() script {
		return script{"go": {calls("line", `{"text":"1"}`), calls("deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), fails(&llm.Error{Class: llm.ClassInvalid}), says("bye")}, "more": {says("again")}}
	}
	run := func(t *testing.T, w *world) {
		w.run(w.process(), "go")
		for i := range 2 {
			_, err := w.answer(w.process(), i)
			require.NoError(t, err)
		}
		require.NoError(t, w.process().settle())
		require.Equal(t, session.StatusFailed, w.session().Status)
	}
	crossings := map[string]func(w *world, p *process) error{
		"retry": func(w *world, p *process) error {
			_, err := p.Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people})
			return err
		},
		"back": func(w *world, p *process) error { _, err := w.goBack(p); return err },
		"retry and work": func(w *world, p *process) error {
			if _, err := p.Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people}); err != nil {
				return err
			}
			return p.work()
		},
		"abort": func(w *world, p *process) error { _, err := w.stop(p, runtime.SignalAbort); return err },
	}
	for what, crosses := range crossings {
		for _, verb := range []string{"retry", "fork"} {
			t.Run(what+"/"+verb, func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				world := newWorld(t, made, helper(made, plan()))
				for at := 0; ; at++ {
					world = world.another()
					w := world
					run(t, w)
					p, over := w.crossed(at, func() {
						if err := crosses(w, w.process()); err != nil {
							require.NotEmpty(t, codeOf(err), "%v", err)
						}
					})
					var err error
					if verb == "retry" {
						_, err = p.Retry(context.Background(), runtime.BackParams{Key: w.key, Caller: people})
					} else {
						_, err = p.Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: w.key.ID + "-f", Checkpoint: checkpointAt(w, w.suspendedAt()), Caller: people})
					}
					if err != nil {
						require.True(t, stoppedCodes[codeOf(err)], "%v", err)
					}
					w.clock.advance(time.Minute)
					require.NoError(t, w.process().settle())
					for what, n := range made.all() {
						require.Equal(t, 1, n, "crossed at %d: %s", at, what)
					}
					w.checkNothingForgotten()
					if over() {
						break
					}
				}
			})
		}
	}
}

// A fork goes back to its beginning, and again: each result belongs to its call.
func TestGoingBack_fork_then_back_ids(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`, "deploy", `{"text":"3"}`), says("bye")}}))
	w.run(w.process(), "go")
	forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
	require.NoError(t, err)
	f := *w
	f.key = forked.Key
	began, err := f.back(f.process(), 1, "")
	require.NoError(t, err)
	t.Log("ids after the way back:", ids(f.session()), "open", len(f.session().Calls))
	for _, wait := range began.Open {
		_, err := f.process().Submit(context.Background(), runtime.SubmitParams{Key: f.key, Caller: person, Answer: fill(wait, yes())})
		require.NoError(t, err)
	}
	require.NoError(t, f.process().settle())
	s := f.session()
	t.Log(s.Status, made.all(), results(s))
	_, err = f.process().Fork(context.Background(), runtime.ForkParams{Origin: f.key, ID: "copy2", Checkpoint: checkpointAt(&f, 2), Caller: people})
	t.Log("fork of the fork:", err)
	params := runtime.BackParams{Key: f.key, Checkpoint: checkpointAt(&f, 2), Caller: people}
	again, err2 := acknowledging(f.process(), &params)
	t.Log("back again:", err2, len(again.Open), again.Effects)
	if err2 == nil {
		s = f.session()
		t.Log(s.Status, ids(s), s.Calls)
		for _, m := range s.Messages {
			for _, part := range m.Parts {
				if part.ToolCall != nil {
					t.Logf("call %s %s", part.ToolCall.ID, part.ToolCall.Arguments)
				}
				if part.ToolResult != nil {
					t.Logf("result of %s: %s", part.ToolResult.CallID, part.ToolResult.Output)
				}
			}
		}
	}
	require.NoError(t, err)
	require.NoError(t, err2)
	require.Equal(t, 1, made.count("deploy 2"))
	require.Equal(t, 1, made.count("deploy 3"))
	w.checkPaired(s)
}
