package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestBounds: whatever people send, up to what is taken of it, the session can be
// written, read again by a process that has not seen it, and ends. A character of
// these texts takes six in JSON.
func TestBounds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const stepBytes = 1 << 20
	large := func(size int) string { return strings.Repeat("<", size) }
	resume := func(w *world, p *process, params runtime.ResumeParams) {
		params.Key, params.Caller = w.key, person
		_, err := p.Resume(ctx, params)
		require.NoError(w.t, err)
	}
	for name, c := range map[string]struct {
		lines script
		input string
		do    func(w *world, p *process)
	}{
		"input": {script{large(runtime.MaxInput): {says("bye")}}, large(runtime.MaxInput), func(*world, *process) {}},
		"a message after an interruption, beside large answers": {script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`, "locate", `{"text":"3"}`)}, large(runtime.MaxInput / 4): {says("bye")}}, "go", func(w *world, p *process) {
			for i, record := range w.waits()[:2] {
				a := no()
				a.Reason = large(10 << 10)
				_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, a)})
				require.NoError(w.t, err, i)
			}
			w.interrupt()
			resume(w, p, runtime.ResumeParams{Mode: runtime.ResumeWithMessage, Message: llm.TextParts(large(runtime.MaxInput / 4))})
		}},
		"an answer to what the agent asked": {script{"go": {needs("where?"), says("bye")}}, "go", func(w *world, p *process) {
			_, err := w.submit(p, session.WaitInput, session.Answer{Message: llm.TextParts(large(20 << 10))})
			require.NoError(w.t, err)
		}},
		"a reason for many": {script{"go": {many("deploy", session.MaxWaits), says("bye")}}, "go", func(w *world, p *process) {
			_, err := p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, RejectAll: true, Reason: large(600)})
			require.NoError(w.t, err)
			_, err = p.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, RejectAll: true, Reason: large(2 << 20)})
			require.Error(w.t, err)
		}},
		"edited input": {script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}, "go", func(w *world, p *process) {
			a := yes()
			a.EditedInput = json.RawMessage(fmt.Sprintf(`{"text":%q}`, large(stepBytes/8)))
			_, err := w.submit(p, session.WaitApproval, a)
			require.NoError(w.t, err)
		}},
		"mail": {script{"go": {calls("echo", `{"text":"1"}`), says("bye")}}, "go", func(w *world, _ *process) {
			for i := range 12 {
				w.mail(fmt.Sprintf("m%02d", i), fmt.Sprint(i)+large(30<<10))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, c.lines))
			p := w.process(func(cfg *runtime.Config) { cfg.StepBytes = stepBytes })
			w.start(p, c.input)
			if name == "mail" {
				c.do(w, p)
				require.NoError(t, p.work())
			} else {
				require.NoError(t, p.work())
				c.do(w, p)
			}
			require.NoError(t, p.settle())
			require.Equal(t, session.StatusCompleted, w.session().Status)
			told := 0
			for i, e := range w.journal() {
				raw, err := json.Marshal(e)
				require.NoError(t, err)
				most := 2 * stepBytes // what a step brings, and as much beside it
				for _, m := range e.Messages {
					if m.Role == llm.RoleUser {
						told++
					}
				}
				if name == "input" && i == 0 || e.Kind == session.KindResumed {
					most += 6 * runtime.MaxInput // a message has a bound of its own
				}
				require.Less(t, len(raw), most, "entry %d, %s", e.Seq, e.Kind)
			}
			if name == "mail" {
				require.Equal(t, 13, told, "all of it, once")
			}
			w.checkAtRest()
		})
	}
}

// many is a reply with so many calls of one tool.
func many(tool string, n int) turn {
	var list []string
	for i := range n {
		list = append(list, tool, fmt.Sprintf(`{"text":"%d"}`, i))
	}
	return calls(list...)
}

// TestSubmit_by_call_late: a result that is sent again by its call, long after, reads
// the entries of that call and not every wait there was.
func TestSubmit_by_call_late(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var turns []turn
	for range 60 {
		turns = append(turns, calls("locate", `{"text":"1"}`))
	}
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": append(turns, says("bye"))}))
	p := w.process()
	w.run(p, "go")
	first := session.Answer{Kind: session.AnswerClientTool, ToolCallID: w.open(session.WaitClientTool).Wait.Call, Result: json.RawMessage(`1`)}
	for range 60 {
		_, err := w.submit(p, session.WaitClientTool, session.Answer{Result: json.RawMessage(`1`)})
		require.NoError(t, err)
		require.NoError(t, p.work())
	}
	require.Equal(t, session.StatusCompleted, w.session().Status)
	m := &metered{Store: w.store, t: t}
	late := w.process(func(cfg *runtime.Config) { cfg.Store = m })
	out, err := late.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: first})
	require.NoError(t, err)
	require.True(t, out.Repeated)
	require.LessOrEqual(t, m.items.Load(), int64(6))
	require.LessOrEqual(t, m.entries.Load(), int64(4))
	first.Result = json.RawMessage(`2`)
	_, err = late.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: first})
	require.Equal(t, runtime.CodeAlreadyAnswered, codeOf(err))
	for _, call := range []string{"c1-1", "c2-2", "c9000-1", "c-1", "c", "x2-1", "w2-1"} {
		before := m.entries.Load()
		first.ToolCallID = call
		_, err = late.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: first})
		require.Equal(t, runtime.CodeWaitNotFound, codeOf(err), call)
		require.LessOrEqual(t, m.entries.Load()-before, int64(64), call)
	}
}

// TestDecide_at_a_checkpoint_of_what_was_interrupted_often: it costs what it costs
// without any interruption, and is about the same waits.
func TestDecide_at_a_checkpoint_of_what_was_interrupted_often(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := interruptedWaiting(t)
	for range 40 {
		w.interrupt()
		_, err := w.goOn(p)
		require.NoError(t, err)
		w.drain()
	}
	checkpoint := w.session().Checkpoint().String()
	m := &metered{Store: w.store, t: t}
	often := w.process(func(cfg *runtime.Config) { cfg.Store = m })
	_, err := often.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Checkpoint: checkpoint, ApproveAll: true})
	require.NoError(t, err)
	require.LessOrEqual(t, m.entries.Load(), int64(8))
	require.NoError(t, p.settle())
	require.Equal(t, 1, w.effects.count("deploy 1"))
	out, err := often.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Checkpoint: checkpoint, ApproveAll: true})
	require.NoError(t, err)
	require.True(t, out.Repeated, "it is about the same waits when they are taken")
	last := w.session().Checkpoint().String()
	_, err = often.Decide(ctx, runtime.DecideParams{Key: w.key, Caller: person, Checkpoint: last, ApproveAll: true})
	require.Equal(t, runtime.CodeNothingToDecide, codeOf(err), "nothing waited there")
}
