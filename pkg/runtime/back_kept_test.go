package runtime_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// With the outcome of a call that is kept go its changes of the state and its events.
func TestBack_keeps_what_a_call_changed(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}, hold))
	w.run(w.process(), "go")
	call := w.session().Calls[0].ID
	w.update(ranUnnoticed(w, call))
	began, err := w.goBack(w.process())
	require.NoError(t, err)
	require.Len(t, began.Open, 1)
	require.Len(t, began.Effects.Items, 1)
	done := began.Effects.Items[0]
	require.Equal(t, llm.ResultSuccess, done.Outcome, "its ledger says so, and no entry")
	require.JSONEq(t, `"did 1"`, string(done.Result))
	require.True(t, done.Kept)
	s := w.session()
	require.JSONEq(t, `1`, string(s.State.Snapshot()["lines"]))
	newest := w.journal()[began.Seq-1]
	require.Len(t, newest.StateOps, 1)
	require.Len(t, newest.Events, 1)
	require.Equal(t, "written", newest.Events[0].Name)
}

// So it is where a message goes on past a call that has run.
func TestResume_with_message_keeps_what_a_call_changed(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}, "more": {says("so")}}, hold))
	w.run(w.process(), "go")
	call := w.session().Calls[0].ID
	w.update(ranUnnoticed(w, call))
	_, err := w.stop(w.process(), runtime.SignalInterrupt)
	require.NoError(t, err)
	_, err = w.process().Resume(context.Background(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("more"), Caller: person})
	require.NoError(t, err)
	require.NoError(t, w.process().settle())
	s := w.session()
	require.Equal(t, session.StatusCompleted, s.Status)
	require.Equal(t, llm.ResultSuccess, results(s)[call].Status)
	require.JSONEq(t, `1`, string(s.State.Snapshot()["lines"]))
	require.True(t, slices.ContainsFunc(w.journal(), func(e journal.Entry) bool { return len(e.Events) == 1 && e.Events[0].Name == "written" }))
	require.Zero(t, made.count("line 1"), "nobody ran it again")
}

// ranUnnoticed is the ledger of a call as a worker leaves it that has run it, and died before its entry.
func ranUnnoticed(w *world, call string) store.Item {
	return store.ToolItem(journal.ToolRecord{
		Call: call, State: journal.ToolFinished, At: w.clock.Now(),
		Result:   &llm.ToolResult{CallID: call, Name: "line", Status: llm.ResultSuccess, Output: json.RawMessage(`"did 1"`)},
		StateOps: []session.StateOp{{Op: session.StateReplace, Key: "lines", Value: json.RawMessage(`1`)}},
		Events:   []session.CustomEvent{{Call: call, Name: "written"}},
	}, 0)
}

// A task that was retried without a message is the one that it went on with: from the start means from
// the start of that. With a message the retry is a beginning of its own.
func TestRetry_from_the_start_of_a_retry(t *testing.T) {
	t.Parallel()
	for _, said := range []bool{false, true} {
		made := newEffects()
		fail := fails(&llm.Error{Class: llm.ClassInvalid})
		w := newWorld(t, made, helper(made, script{"go": {calls("echo", `{"text":"1"}`), fail}, "more": {fail}}))
		w.run(w.process(), "go")
		params := runtime.BackParams{Key: w.key, Caller: people}
		want := int64(1)
		for range 2 {
			if said {
				params.Message = llm.TextParts("more")
			}
			began, err := w.process().Retry(context.Background(), params)
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			require.Equal(t, session.StatusFailed, w.session().Status)
			if said {
				want = began.Seq
			}
		}
		began, err := w.process().Retry(context.Background(), runtime.BackParams{Key: w.key, FromStart: true, Caller: people})
		require.NoError(t, err)
		require.Equal(t, want, w.journal()[began.Seq-1].Base.Seq, "a message was given: %t", said)
	}
}

// A call that a frozen worker begins after the list of effects was made, and before its ledger is
// closed, is on the next list: it is not gone back over unseen, wherever it comes.
func TestBack_call_begins_after_the_list_everywhere(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("line", `{"text":"1"}`), says("bye")}})).withMarksApart()
	for at := 0; ; at++ {
		w = w.another()
		w.start(w.process(), "go")
		w.drain()
		// A worker commits the reply and is frozen before its call.
		w.dies(2)
		w.clock.advance(time.Minute)
		_, err := w.stop(w.process(), runtime.SignalInterrupt)
		require.NoError(t, err)
		require.Equal(t, session.StatusInterrupted, w.session().Status)
		call := w.session().Calls[0].ID
		var begins error
		p, over := w.crossed(at, func() {
			_, begins = w.store.Update(context.Background(), w.key, store.ToolItem(journal.ToolRecord{Call: call, State: journal.ToolStarted, Attempt: "frozen", At: w.clock.Now()}, 0))
		})
		_, err = p.GoBack(context.Background(), runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: people})
		if over() {
			require.NoError(t, err)
			return
		}
		if err == nil {
			require.ErrorIs(t, begins, store.ErrConflict, "crossed at call %d: it began, and nobody was shown it", at)
			continue
		}
		refused := runtime.AsError(err)
		require.Equal(t, runtime.CodeEffectsNotAcknowledged, refused.Code, "crossed at call %d: %v", at, err)
		require.Equal(t, call, refused.Effects.Items[0].Call)
	}
}

// What a session is said to take is what it takes.
func TestView_allows_a_message(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []turn
		hears bool
	}{
		"asked for input":       {[]turn{needs("which?"), says("bye")}, true},
		"waits for an approval": {[]turn{calls("deploy", `{"text":"1"}`), says("bye")}, false},
		"works":                 {[]turn{calls("line", `{"text":"1"}`), says("bye")}, true},
	} {
		made := newEffects()
		w := newWorld(t, made, helper(made, script{"go": c.lines}))
		w.start(w.process(), "go")
		if name != "works" {
			require.NoError(t, w.process().work())
		}
		view, err := w.process().View(context.Background(), w.key)
		require.NoError(t, err)
		require.Equal(t, c.hears, slices.Contains(view.Allowed, session.VerbSend), name)
		_, err = w.send(w.process())
		require.Equal(t, c.hears, err == nil, "%s: %v", name, err)
	}
}
