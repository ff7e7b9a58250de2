package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestWaitOver: of each wait it is told once how it ended, and how long it took from asking to the answer,
// however much later the answer is taken in.
func TestWaitOver(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	submit := func(kind session.WaitKind, a session.Answer) func(*world, *process) {
		return func(w *world, p *process) {
			_, err := w.submit(p, kind, a)
			require.NoError(w.t, err)
		}
	}
	edit := yes()
	edit.EditedInput = json.RawMessage(`{"text":"2"}`)
	red := session.Answer{Selected: []string{"red"}}
	for name, c := range map[string]struct {
		call    string
		ends    func(*world, *process)
		kind    session.WaitKind
		tool    string
		outcome journal.WaitOutcome
		took    time.Duration
	}{
		"approved":      {"deploy", submit(session.WaitApproval, yes()), session.WaitApproval, "deploy", journal.WaitApproved, minute},
		"edited":        {"deploy", submit(session.WaitApproval, edit), session.WaitApproval, "deploy", journal.WaitEdited, minute},
		"rejected":      {"deploy", submit(session.WaitApproval, no()), session.WaitApproval, "deploy", journal.WaitRejected, minute},
		"a reply":       {"pick", submit(session.WaitQuestion, red), session.WaitQuestion, "pick", journal.WaitReplied, minute},
		"a client":      {"locate", submit(session.WaitClientTool, session.Answer{Result: json.RawMessage(`"here"`)}), session.WaitClientTool, "locate", journal.WaitReplied, minute},
		"an error":      {"locate", submit(session.WaitClientTool, session.Answer{Error: "lost"}), session.WaitClientTool, "locate", journal.WaitReplied, minute},
		"a message":     {"", submit(session.WaitInput, session.Answer{Message: llm.TextParts("more")}), session.WaitInput, "", journal.WaitReplied, minute},
		"dismissed":     {"deploy", func(w *world, p *process) { w.dismisses(p) }, session.WaitApproval, "deploy", journal.WaitDismissed, minute},
		"expired":       {"urgent", func(w *world, _ *process) { w.clock.advance(time.Hour); w.sweep() }, session.WaitApproval, "urgent", journal.WaitOverdue, minute + time.Hour},
		"by a deadline": {"silence", func(w *world, _ *process) { w.clock.advance(time.Hour); w.sweep() }, session.WaitApproval, "silence", journal.WaitOverdue, minute + time.Hour},
		"cancelled": {"deploy", func(w *world, p *process) {
			_, err := w.stop(p, runtime.SignalCancel)
			require.NoError(w.t, err)
		}, session.WaitApproval, "deploy", journal.WaitAbandoned, minute},
		"deleted": {"deploy", func(w *world, p *process) {
			_, err := w.delete(p)
			require.NoError(w.t, err)
		}, session.WaitApproval, "deploy", journal.WaitAbandoned, minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			first := needs("which?")
			if c.call != "" {
				first = calls(c.call, `{"text":"1"}`)
			}
			w := newWorld(t, made, helper(made, script{"go": {first, says("bye")}}, func(a *agent.Agent) {
				for tool, outcome := range map[string]*tool.Expiry{
					"urgent": {After: time.Hour, Outcome: session.ExpireDeny}, "silence": {After: time.Hour, Outcome: session.ExpireDefault, Value: true},
				} {
					a.Tools = append(a.Tools, waitsUntil(tool, outcome))
				}
			}))
			var told []journal.WaitOver
			w.cfg.OnWait = func(_ session.Key, over journal.WaitOver) { told = append(told, over) }
			var log bytes.Buffer
			w.cfg.Log = slog.New(slog.NewJSONHandler(&log, nil))
			w.start(w.process(), "go")
			require.NoError(t, w.process().work())
			require.Empty(t, told, "it waits")
			w.clock.advance(w.waits()[0].Wait.OpenedAt.Add(minute).Sub(w.clock.Now()))
			c.ends(w, w.process())
			w.clock.advance(3 * time.Second) // what was answered is taken in later
			if name != "deleted" {
				require.NoError(t, w.process().settle())
				require.True(t, w.session().Status.Ended() || name == "a message")
			}
			require.Len(t, told, 1)
			require.Equal(t, []any{c.kind, c.tool, c.outcome, "a"}, []any{told[0].Kind, told[0].Tool, told[0].Outcome, told[0].Agent})
			require.InDelta(t, c.took, told[0].Took, float64(200*time.Millisecond))
			lines := overLines(t, &log)
			require.Len(t, lines, 1)
			shown := c.tool
			if shown == "" {
				shown = "none"
			}
			require.Equal(t, []any{shown, string(c.kind), string(c.outcome), float64(told[0].Took.Milliseconds())}, []any{lines[0]["tool"], lines[0]["kind"], lines[0]["outcome"], lines[0]["millis"]})
		})
	}
}

func waitsUntil(name string, expiry *tool.Expiry) tool.Tool {
	return tool.Define(tool.Spec[textIn]{Name: name, Approve: tool.Always[textIn], Expiry: expiry},
		func(context.Context, *tool.Call, textIn) (string, error) { return "did", nil })
}

func (w *world) dismisses(p *process) {
	w.t.Helper()
	_, err := p.Act(w.t.Context(), runtime.ActParams{Key: w.key, Wait: w.waits()[0].Wait.ID, Caller: person, Kind: session.ActDismissed, Reason: "no"})
	require.NoError(w.t, err)
}

// overLines are the lines of a log that tell that a wait is over.
func overLines(t *testing.T, log *bytes.Buffer) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		if fields["msg"] == "wait over" {
			lines = append(lines, fields)
		}
	}
	return lines
}

// TestWaitOver_once: a process that dies at any of its writes, messages that come again and answers that are
// repeated tell of no wait twice.
func TestWaitOver_once(t *testing.T) {
	t.Parallel()
	for at := 1; at < 12; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, after), func(t *testing.T) {
				t.Parallel()
				made := newEffects()
				w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
				told := map[string]int{}
				w.cfg.OnWait = func(_ session.Key, over journal.WaitOver) { told[over.Wait]++ }
				w.run(w.process(), "go")
				first, second := w.waits()[0].Wait, w.waits()[1].Wait
				f := &fuse{at: at, after: after}
				dying := w.fusedProcess(f, true, 1)
				for range 2 {
					for _, wait := range []session.Wait{first, second} {
						_, _ = dying.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait, yes())})
					}
				}
				_ = dying.settle()
				heir := w.process()
				for _, wait := range []session.Wait{first, second} {
					_, err := heir.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait, yes())})
					require.NoError(t, err)
				}
				require.NoError(t, heir.settle())
				require.Equal(t, session.StatusCompleted, w.session().Status)
				_, _ = heir.Deliver(t.Context(), w.wake(2, journal.WakeStep))
				_, err := heir.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(first, yes())})
				require.NoError(t, err)
				for wait, n := range told {
					require.Equal(t, 1, n, wait)
				}
				if !f.blown() {
					require.Len(t, told, 2)
				}
			})
		}
	}
}

// TestWaitOver_of_a_tool_that_is_gone: names that this program does not have make no metric of their own.
func TestWaitOver_of_a_tool_that_is_gone(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("ship", `{"text":"1"}`), says("bye")}}, lenient(made)))
	w.run(w.process(), "go")
	var log bytes.Buffer
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, script{"go": {says("no"), says("bye")}})}})
	require.NoError(t, err)
	old := w.process(func(cfg *runtime.Config) {
		cfg.Registry, cfg.Log = registry, slog.New(slog.NewJSONHandler(&log, nil))
	})
	_, err = w.submit(old, session.WaitApproval, no())
	require.NoError(t, err)
	require.NoError(t, old.settle())
	lines := overLines(t, &log)
	require.Len(t, lines, 1)
	require.Equal(t, "other", lines[0]["tool"])
}
