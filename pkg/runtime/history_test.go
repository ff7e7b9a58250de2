package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
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

// timed is a world whose planner takes 250 ms and says what its model said, and
// whose tool takes 40 ms.
func timed(t *testing.T) (*world, *process) {
	t.Helper()
	made := newEffects()
	var w *world
	asked := func(reply agent.Reply, err error) turn {
		return func(context.Context, agent.View) (agent.Reply, error) {
			w.clock.advance(250 * time.Millisecond)
			return reply, err
		}
	}
	work := func(context.Context, *tool.Call, textIn) (string, error) {
		w.clock.advance(40 * time.Millisecond)
		return "ok", nil
	}
	call := agent.Reply{
		Calls: []agent.Call{{Name: "work", Arguments: json.RawMessage(`{"text":"1"}`)}}, Usage: llm.Usage{Input: 7, Output: 3}, CostMicros: 12,
		Model: "m-2026" + strings.Repeat("x", 500), ResponseID: "resp-1\xff", Finish: llm.StopToolCalls,
	}
	w = newWorld(t, made, helper(made, script{"go": {
		asked(agent.Reply{}, &llm.Error{Class: llm.ClassOverloaded, Message: "busy"}), asked(call, nil), says("bye"),
	}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "work", Approve: tool.Always[textIn]}, work))
	}))
	return w, w.process()
}

// What cannot be told later is in the journal: who began it from where, each call
// of the model, each run of a tool and what it ran with, what was decided on.
func TestHistory(t *testing.T) {
	t.Parallel()
	w, p := timed(t)
	w.start(p, "go")
	require.NoError(t, p.settle())
	edited := yes()
	edited.EditedInput, edited.Digest, edited.Audit = json.RawMessage(`{"text":"2"}`), "a caller's", "a caller's"
	_, err := w.submit(p, session.WaitApproval, edited)
	require.NoError(t, err)

	record := w.items(store.KindWait)[0]
	line, ok := record.Wait.AddAudit(w.key, journal.Audit{Kind: journal.AuditRefused, Who: "bob", At: w.clock.Now(), From: "test"})
	require.True(t, ok)
	_, err = w.store.Update(context.Background(), w.key, record, store.AuditItem(line))
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)

	byKind := map[session.Kind]journal.Entry{}
	for _, e := range w.journal() {
		if _, seen := byKind[e.Kind]; !seen {
			byKind[e.Kind] = e
		}
	}
	started := byKind[session.KindStarted]
	require.Equal(t, []string{person.Who, person.From}, []string{started.By, started.From})
	require.Empty(t, byKind[session.KindResumed].From, "a worker is nowhere a caller is")

	delayed := byKind[session.KindDelayed].Models
	require.Len(t, delayed, 1)
	require.Equal(t, journal.ModelCall{At: delayed[0].At, Millis: 250, Error: "overloaded"}, delayed[0])

	suspended := byKind[session.KindSuspended]
	require.Len(t, suspended.Models, 1)
	m := suspended.Models[0]
	require.Equal(t, suspended.At.Add(-250*time.Millisecond), m.At)
	require.Equal(t, journal.ModelCall{
		Model: ("m-2026" + strings.Repeat("x", 500))[:200], ID: "resp-1", At: m.At, Millis: 250, Finish: llm.StopToolCalls,
	}, m)
	require.Equal(t, llm.Usage{Input: 7, Output: 3}, suspended.Usage, "those of the only call are the entry's")
	require.Equal(t, int64(12), suspended.Used.CostMicros)

	answer := byKind[session.KindResumed].Answers[0]
	require.Equal(t, journal.Digest(json.RawMessage(`{"text":"2"}`)), answer.Digest)
	require.Equal(t, line.Hash(), answer.Audit)
	var lines []journal.Audit
	for _, item := range w.items(store.KindAudit) {
		lines = append(lines, *item.Audit)
	}
	require.NoError(t, journal.CheckAudit(w.key, "w3-1", lines, w.items(store.KindWait)[0].Wait.Audit))
	require.Equal(t, journal.Digest(json.RawMessage(`{"text":"1"}`)), suspended.Waits[0].Digest)

	stepped := byKind[session.KindStepped]
	require.Len(t, stepped.Calls, 1)
	run := stepped.Calls[0]
	require.Equal(t, journal.ToolRun{Call: "c3-1", At: stepped.At.Add(-40 * time.Millisecond), Millis: 40, Digest: answer.Digest}, run)
	require.Empty(t, stepped.Models)
	require.Equal(t, &run, w.items(store.KindTool)[0].Tool.Ran, "the ledger has it too")
	require.Empty(t, byKind[session.KindCompleted].Models, "a planner that asks no model has nothing to tell")
}

// A run whose worker died before its step was committed is told from the ledger.
func TestHistory_of_a_run_found_in_the_ledger(t *testing.T) {
	t.Parallel()
	for at := range 30 {
		w, p := timed(t)
		w.start(p, "go")
		require.NoError(t, p.settle())
		_, err := w.submit(p, session.WaitApproval, yes())
		require.NoError(t, err)
		f := &fuse{at: at + 1}
		if err := w.fusedProcess(f, true, 1).settle(); err == nil {
			require.Greater(t, at, 2)
			return
		}
		require.NoError(t, w.process().settle())
		runs := 0
		for _, e := range w.journal() {
			for _, run := range e.Calls {
				runs++
				require.Equal(t, int64(40), run.Millis)
			}
		}
		if w.session().Messages[2].Parts[0].ToolResult.Status == llm.ResultSuccess {
			require.Equal(t, 1, runs, "died at %d", at+1)
		}
	}
	t.Fatal("it never got through")
}

// A reply whose calls are about to run is no checkpoint: going back to it would
// give its calls fresh ledgers.
func TestReplied_is_no_checkpoint(t *testing.T) {
	t.Parallel()
	made := newEffects()
	var w *world
	var inside string
	var refused error
	look := func(ctx context.Context, _ *tool.Call, _ textIn) (string, error) {
		s := w.session()
		inside = s.Checkpoint().String()
		replied := session.Checkpoint{Session: w.key.ID, Seq: s.Version, Token: s.Newest.Token}
		_, refused = w.process().Resume(ctx, runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Checkpoint: replied.String(), Caller: person})
		return "ok", nil
	}
	w = newWorld(t, made, helper(made, script{"go": {calls("look", `{"text":"1"}`), needs("and?")}}, func(a *agent.Agent) {
		a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "look"}, look))
	}))
	p := w.process()
	w.run(p, "go")
	entries := w.journal()
	require.Equal(t, session.KindReplied, entries[1].Kind)
	require.Equal(t, entries[0].Checkpoint(w.key.ID).String(), inside, "while its calls run the newest checkpoint is the one before")
	require.Equal(t, runtime.CodeInvalidCheckpoint, codeOf(refused))
	require.ErrorContains(t, refused, "entry 2 holds a reply whose calls had not run")

	_, err := p.Resume(context.Background(), runtime.ResumeParams{
		Key: w.key, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("go on"), Checkpoint: entries[1].Checkpoint(w.key.ID).String(), Caller: person,
	})
	require.Equal(t, runtime.CodeInvalidCheckpoint, codeOf(err))
	require.Equal(t, entries[3].Checkpoint(w.key.ID), w.session().Checkpoint())
}
