package runtime_test

import (
	"context"
	"encoding/json"
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

func hold(a *agent.Agent) { a.Policy.HoldBatch = true }

func sessionOf(t *testing.T, w *world, key session.Key) *session.Session {
	t.Helper()
	other := *w
	other.key = key
	return other.session()
}

func ids(s *session.Session) (all []string) {
	for _, m := range s.Messages {
		for _, c := range m.ToolCalls() {
			all = append(all, c.ID)
		}
	}
	return all
}

// F1: wait of a fork names a call that is not there.

// F2: calls of a fork's history have ids that its own calls get again.

// F3: what Once did before the checkpoint is done again, and is not listed.

// F4a: an idempotent call that is open at the checkpoint and has run is run again, under another key.

// F4b: an idempotent call whose worker died is not listed, and runs again under another key.

// F5: what a client has done, and was taken with 200, is not listed.

// F6: a checkpoint with many waits cannot be gone back to.

// F7: a retry from where it failed asks to acknowledge what an earlier way back left, each time.

// F8: a session that was stuck is stuck for ever.

// F11: an answer taken in before the checkpoint counts there.

// F17: a call the model decided on once runs in the origin and in the fork.

// other tenants

// F6b: the way back that cannot be written has closed the calls: what is approved afterwards does not run.

// F12: retries die at every write, or are crossed.

// F10b: the frozen worker ends its call between the list and the entry.

// F13: an input wait that expired, with the outcome fail; back to the entry that took that in.

// F14: an effect of a tool that the program has no more is listed all the same.

// F15: back to the entry that went back lists what that one kept.

// F16: a retry of a task that a dead letter failed.

// F18: long ids.

// F19: retry and fork crossed at every call.

// F20: an effect that happened in a step that was interrupted before its entry, HoldBatch, with results: kept once.

// F21: an answer given to question one before the checkpoint, of a tool that asks twice.

// F2b: a fork goes back to its beginning: a call that is open gets the id of one that has a result.

// F22: a client's result that names the call of before does not count.

// F23: dead letters after a way back and in a fork.

// F24: mail.

// F25: back to the same checkpoint a second time: what ran under the ids of the first way back runs again.

// What Once has remembered of a call is kept where the call is asked anew.
func TestGoingBack_once_is_kept(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pick", "choose"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls(name, `{"text":"1"}`), says("bye")}}))
			w.run(w.process(), "go")
			t.Log(made.all())
			began, err := w.back(w.process(), w.suspendedAt(), "")
			require.NoError(t, err)
			require.Zero(t, began.Effects.Count)
			_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(began.Open[0], session.Answer{Selected: []string{"red"}})})
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			t.Log(w.session().Status, made.all())
			for what, n := range made.all() {
				require.Equal(t, 1, n, what)
			}
		})
	}
	t.Run("fork", func(t *testing.T) {
		t.Parallel()
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": {calls("pick", `{"text":"1"}`), says("bye")}}))
		w.run(w.process(), "go")
		forked, err := w.process().Fork(context.Background(), runtime.ForkParams{Origin: w.key, ID: "copy", Caller: people})
		require.NoError(t, err)
		_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: forked.Key, Caller: person, Answer: fill(forked.Open[0], session.Answer{Selected: []string{"red"}})})
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
		t.Log(made.all())
		require.Equal(t, 1, made.count("prepare 1"))
	})
}

// An idempotent call that is open at the checkpoint, and has run, runs again under the same key.
func TestGoingBack_idempotent_open_at_the_checkpoint(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("put", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, hold))
	w.run(w.process(), "go")
	at := w.suspendedAt()
	_, err := w.answer(w.process(), 0)
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at), Caller: people}
	began, err := acknowledging(w.process(), &params)
	require.NoError(t, err)
	for _, e := range began.Effects.Items {
		t.Logf("%s kept=%v", e.Tool, e.Kept)
	}
	require.NoError(t, w.process().settle())
	t.Log(w.session().Status, made.all())
	puts := 0
	for what := range made.all() {
		if what[:3] == "put" {
			puts++
		}
	}
	require.Equal(t, 1, puts, "made again only if the agent asks for it anew: %v", made.all())
}

// An idempotent call whose worker died runs again under the same key.
func TestGoingBack_idempotent_cut_off(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("put", `{"text":"1"}`), says("bye")}}))
	w.start(w.process(), "go")
	w.drain()
	f := &fuse{at: 4}
	_, err := w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
	t.Log(err, f.ops, made.all(), w.kinds())
	require.Len(t, made.all(), 1)
	w.clock.advance(time.Minute)
	_, err = w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	began, err := w.back(w.process(), len(w.journal()), "")
	require.NoError(t, err, "perhaps it is listed")
	require.NoError(t, w.process().settle())
	t.Log(w.session().Status, made.all(), began.Effects)
	require.Len(t, made.all(), 1, "%v", made.all())
}

// What a client has done is listed, whether or not the session has taken it in.
func TestGoingBack_client_answer_is_listed(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
			p := w.process()
			w.run(p, "go")
			_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"here"`)})
			require.NoError(t, err)
			if taken {
				_, err = w.submit(p, session.WaitApproval, no())
				require.NoError(t, err)
				require.NoError(t, p.settle())
			}
			_, err = w.back(p, w.suspendedAt(), "")
			require.Equal(t, runtime.CodeEffectsNotAcknowledged, codeOf(err), "%v", err)
			brought := runtime.AsError(err).Effects.Items[0]
			require.Equal(t, llm.ResultSuccess, brought.Outcome)
			require.JSONEq(t, `"here"`, string(brought.Result))
			require.False(t, brought.Kept, "the client is asked again")
		})
	}
}

// An answer that was taken in before the checkpoint counts there.
func TestGoingBack_answers_before_the_checkpoint(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`"here"`)})
	require.NoError(t, err)
	_, err = w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	at := 0
	for _, e := range w.journal() {
		if e.Kind == session.KindResumed {
			at = int(e.Seq)
		}
	}
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at), Caller: people}
	began, err := acknowledging(p, &params)
	require.NoError(t, err)
	require.NoError(t, p.settle())
	s := w.session()
	t.Log(began.Status, s.Status, made.all(), s.Waits)
	require.Equal(t, session.StatusCompleted, s.Status)
}

// A call that finishes between the list and the entry makes another list.
func TestGoingBack_zombie_finishes_between_list_and_entry(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}}))
	w.start(w.process(), "go")
	w.drain()
	f := &fuse{at: 5}
	_, err := w.fusedProcess(f, true, 1).Deliver(context.Background(), w.wake(2, journal.WakeStep))
	t.Log(err, f.ops, made.all())
	w.clock.advance(time.Minute)
	_, err = w.stop(w.process(), runtime.SignalCancel)
	require.NoError(t, err)
	_, err = w.back(w.process(), 1, "")
	listed := runtime.AsError(err)
	require.NotNil(t, listed)
	require.NotNil(t, listed.Effects, "%v", err)
	t.Logf("%+v", listed.Effects.Items)
	cross := &storeHook{when: anyCommit}
	p := w.process(func(cfg *runtime.Config) { cross.Store = cfg.Store; cfg.Store = cross })
	cross.happens = func() {
		for _, item := range w.items(store.KindTool) {
			if item.Tool.State == journal.ToolStarted {
				item.Tool.State = journal.ToolFinished
				item.Tool.Result = &llm.ToolResult{CallID: item.ID, Name: "line", Status: llm.ResultSuccess, Output: json.RawMessage(`"did 1"`)}
				w.update(item)
			}
		}
	}
	began, err := w.back(p, 1, listed.Effects.Digest)
	if err != nil {
		require.Equal(t, runtime.CodeEffectsNotAcknowledged, codeOf(err))
		return
	}
	look, err := w.process().Checkpoint(context.Background(), w.key, checkpointAt(w, 1), "")
	require.NoError(t, err)
	require.Equal(t, look.Effects.Digest, began.Effects.Digest, "the list changed before the entry was written, and was acknowledged")
}

// A wait for input that expired is part of the history of the checkpoint.
func TestGoingBack_input_expired_is_in_the_history(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {needs("what?"), says("went on without an answer")}}, func(a *agent.Agent) {
		a.InputExpiry = &tool.Expiry{After: time.Hour, Outcome: session.ExpireFail}
	}))
	w.run(w.process(), "go")
	w.clock.advance(2 * time.Hour)
	require.NoError(t, w.process().settle())
	sweepOf(t, w.process())
	require.NoError(t, w.process().settle())
	t.Log(w.session().Status, w.session().Failure, w.kinds())
	at := 0
	for _, e := range w.journal() {
		if e.Kind == session.KindResumed {
			at = int(e.Seq)
		}
	}
	require.NotZero(t, at)
	_, err := w.back(w.process(), at, "")
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	t.Log(w.session().Status, w.session().Failure, w.session().Messages[len(w.session().Messages)-1].Text())
	require.Equal(t, session.StatusFailed, w.session().Status)
}

// An effect of a tool that the program has no more is listed all the same.
func TestGoingBack_effects_of_a_tool_that_is_gone(t *testing.T) {
	t.Parallel()
	made := newEffects()
	plan := script{"go": {calls("put", `{"text":"1"}`), says("bye")}}
	w := newWorld(t, made, helper(made, plan))
	w.run(w.process(), "go")
	_, err := w.back(w.process(), 1, "")
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, codeOf(err))
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, plan, func(a *agent.Agent) { a.Tools = a.Tools[:4] })}})
	require.NoError(t, err)
	p := w.process(func(cfg *runtime.Config) { cfg.Registry = registry })
	_, err = w.back(p, 1, "")
	require.Equal(t, runtime.CodeEffectsNotAcknowledged, codeOf(err), "put has run, whatever this program has: %v", err)
}

// The entry that went back, as a checkpoint, has in its history what it kept.
func TestGoingBack_back_to_the_way_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, stopScript()))
	backPlaces["completed"](t, w)
	began, err := w.goBack(w.process())
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	_, err = w.back(w.process(), int(began.Seq), "")
	if err != nil {
		for _, e := range runtime.AsError(err).Effects.Items {
			t.Logf("%s %s kept=%v", e.Call, e.Tool, e.Kept)
		}
	}
	require.NoError(t, err, "its history holds their results")
}

// A sibling that ran before a denial keeps its result on the way back.
func TestGoingBack_denied_then_back(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, hold))
	w.run(w.process(), "go")
	at := w.suspendedAt()
	_, err := w.submit(w.process(), session.WaitApproval, no())
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, 1, made.count("line 1"))
	params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at), Caller: people}
	began, err := acknowledging(w.process(), &params)
	require.NoError(t, err)
	require.Len(t, began.Open, 1)
	s := w.session()
	require.Equal(t, s.Calls[0].ID, began.Open[0].Call)
	_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(began.Open[0], yes())})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
	require.Equal(t, 1, made.count("line 1"))
	require.Equal(t, 1, made.count("deploy 2"))
	w.checkPaired(w.session())
}

// A tool that was approved, and asks, is asked the second question alone.
func TestGoingBack_ask_twice_back_to_the_second(t *testing.T) {
	t.Parallel()
	made := newEffects()
	twice := tool.Define(tool.Spec[textIn]{Name: "twice", Approve: tool.Always[textIn]}, func(ctx context.Context, c *tool.Call, _ textIn) (string, error) {
		first, err := c.Ask(ctx, tool.Question{ID: "1", Text: "First?"})
		if err != nil {
			return "", err
		}
		made.add("booked " + first.Text)
		return first.Text, nil
	})
	w := newWorld(t, made, helper(made, script{"go": {calls("twice", `{"text":"1"}`), says("bye")}}, func(a *agent.Agent) { a.Tools = append(a.Tools, twice) }))
	p := w.process()
	w.run(p, "go")
	_, err := w.submit(p, session.WaitApproval, yes())
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusSuspended, w.session().Status)
	began, err := w.back(p, len(w.journal()), "")
	require.NoError(t, err)
	require.Len(t, began.Open, 1)
	_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(began.Open[0], text("x"))})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	s := w.session()
	for _, wt := range s.Waits {
		t.Log(wt.Kind, wt.Call)
	}
	t.Log(s.Status, made.all())
	require.Equal(t, session.StatusCompleted, s.Status, "approved before the checkpoint, answered after it")
}

// A client's result that names the call, or the wait, of before does not count.
func TestGoingBack_late_client_result(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("locate", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	old := w.waits()[0].Wait
	_, err := w.back(p, w.suspendedAt(), "")
	require.NoError(t, err)
	for _, a := range []session.Answer{
		{Kind: session.AnswerClientTool, ToolCallID: old.Call, Result: json.RawMessage(`"late"`)},
		{Kind: session.AnswerClientTool, Wait: old.ID, Result: json.RawMessage(`"late"`)},
	} {
		_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
		t.Log(codeOf(err), err)
		require.Error(t, err)
	}
}

// What ran under the ids of the first way back to a checkpoint is not run again by the second.
func TestGoingBack_back_twice_runs_twice(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, hold))
	w.run(w.process(), "go")
	at := w.suspendedAt()
	for i := range 2 {
		params := runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, at), Caller: people}
		began, err := acknowledging(w.process(), &params)
		require.NoError(t, err)
		for _, e := range began.Effects.Items {
			t.Logf("%d: %s %s kept=%v", i, e.Call, e.Tool, e.Kept)
			require.True(t, e.Kept, "it ran under the id of the way back before, and is taken along")
		}
		require.Len(t, began.Effects.Items, i)
		require.Len(t, began.Open, 1)
		_, err = w.process().Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(began.Open[0], no())})
		require.NoError(t, err)
		require.NoError(t, w.process().settle())
	}
	require.Equal(t, 1, made.count("line 1"), "the model has decided on it once")
}
