package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func used(tokens int64) engine.Used {
	return engine.Used{Usage: llm.Usage{Input: tokens, Output: 5}, Active: 30 * time.Millisecond}
}

// journals tells one story per golden file.
func journals() map[string]func(*story) {
	reply := func(st *story, names ...string) *story {
		var parts []llm.Part
		for _, name := range names {
			parts = append(parts, toolCall(name))
		}
		return st.do(engine.Replied(st.s, engine.StepOutcome{Reply: st.reply(parts...), Used: used(20)}, st.stamp()))
	}
	return map[string]func(*story){
		"plain": func(st *story) {
			out := engine.StepOutcome{Reply: st.reply(llm.Text("let me see"), toolCall("echo")), Used: used(10)}
			out.Results = []llm.ToolResult{success("c2-1", "echo", `"hi"`)}
			out.StateOps = []session.StateOp{{Op: session.StateAppend, Key: "notes", Value: json.RawMessage(`1`)}}
			out.Events = []session.CustomEvent{{Call: "c2-1", Name: "progress"}}
			st.step(out).says("done")
		},
		"approved": func(st *story) {
			st.asks(session.WaitApproval, "refund").resumed(st.approval(0, true))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "refund", `{"id":1}`)}}).says("done")
		},
		"denied": func(st *story) {
			st.asks(session.WaitApproval, "refund").resumed(st.approval(0, false))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{engine.Result(st.s.Calls[0], llm.ResultDenied, engine.TextDenied)}}).says("then not")
		},
		"dismissed": func(st *story) {
			st.asks(session.WaitApproval, "refund").resumed(st.answer(0, session.AnswerDismissal, func(a *session.Answer) { a.Reason, a.For = "not needed", "ann" }))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{engine.Result(st.s.Calls[0], llm.ResultDenied, engine.TextDismissed)}}).says("then not")
		},
		"two_questions_of_one_call": func(st *story) {
			st.asks(session.WaitQuestion, "pick").resumed(st.answer(0, session.AnswerReply, func(a *session.Answer) { a.Selected = []string{"r"} }))
			st.step(engine.StepOutcome{Waits: []session.Wait{{Kind: session.WaitQuestion, Call: "c2-1", Question: &session.Question{ID: "size", Kind: session.QuestionText}}}})
			st.resumed(st.answer(0, session.AnswerReply, func(a *session.Answer) { a.Text = new(string) }))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "pick", `["r",""]`)}}).says("done")
		},
		"client_tool": func(st *story) {
			st.asks(session.WaitClientTool, "locate").resumed(st.answer(0, session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`null`) }))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "locate", `null`)}}).says("nowhere")
		},
		"side_effects": func(st *story) {
			reply(st, "append", "append", "append")
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-2", "append", `2`), success("c2-1", "append", `1`)}, Waits: []session.Wait{{Kind: session.WaitUnknown, Call: "c2-3"}}})
			st.resumed(st.answer(0, session.AnswerVerdict, func(a *session.Answer) { a.Verdict = session.VerdictHappened }))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-3", "append", `3`)}}).says("done")
		},
		"delayed": func(st *story) {
			for range 2 {
				now := st.stamp().Now
				st.do(engine.Delayed(st.s, session.Failure{Type: "model_overloaded", Message: "529", Retryable: true}, now.Add(time.Second), engine.Used{}, st.stamp()))
			}
			st.says("done")
		},
		"cancelled_before_the_model": func(st *story) { st.stopped(journal.SignalCancel, engine.StepOutcome{}) },
		"cancelled_while_it_streams": func(st *story) { st.stopped(journal.SignalCancel, engine.StepOutcome{Used: used(10)}) },
		"cancelled_before_any_tool":  func(st *story) { reply(st, "append", "append").stopped(journal.SignalCancel, engine.StepOutcome{}) },
		"cancelled_between_tools": func(st *story) {
			reply(st, "append", "append").stopped(journal.SignalCancel, engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "append", `1`)}})
		},
		"aborted": func(st *story) {
			st.asks(session.WaitApproval, "refund").stopped(journal.SignalAbort, engine.StepOutcome{})
		},
		"interrupted_and_resumed": func(st *story) {
			reply(st, "append", "append").stopped(journal.SignalInterrupt, engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "append", `1`)}})
			st.resumed()
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-2", "append", `2`)}}).says("done")
		},
		"interrupted_and_told": func(st *story) {
			reply(st, "append").stopped(journal.SignalInterrupt, engine.StepOutcome{})
			message := llm.User("do something else")
			closed := []llm.ToolResult{engine.Result(st.s.Calls[0], llm.ResultCancelled, engine.TextCancelled)}
			st.do(engine.Resumed(st.s, nil, &message, closed, st.stamp())).says("else")
		},
		"next_turn": func(st *story) {
			st.says("done")
			st.do(engine.Start(st.s, taskRules(), llm.User("and A-2"), st.stamp())).says("done too")
		},
		"limit": func(st *story) {
			st.step(engine.StepOutcome{Reply: st.reply(toolCall("echo")), Results: []llm.ToolResult{success("c2-1", "echo", `1`)}, Used: used(5000)})
			st.step(engine.StepOutcome{Failure: engine.LimitFailure(*st.s.Exhausted(), st.s.Rules)})
		},
		"limits_of_calls_and_session": func(st *story) {
			st.says("done")
			rules := taskRules()
			rules.Limits.ToolCalls, rules.Limits.RepeatedCalls, rules.Limits.StateBytes, rules.SessionLimits.Steps = 5, 9, 900, 9
			rules.Needs = append(rules.Limits.Needs(), session.NeedsSessionLimits)
			st.do(engine.Start(st.s, rules, llm.User("and A-2"), st.stamp()))
			st.step(engine.StepOutcome{
				Reply:   st.reply(toolCall("echo"), toolCall("echo"), toolCall("echo"), toolCall("echo")),
				Results: []llm.ToolResult{success("c4-1", "echo", `1`), success("c4-2", "echo", `1`), success("c4-3", "echo", `1`), success("c4-4", "echo", `1`)},
			})
			limit := st.s.ExhaustedBy(2)
			st.step(engine.StepOutcome{Reply: st.reply(toolCall("echo"), toolCall("echo")), Failure: engine.LimitFailure(*limit, st.s.Rules)})
			require.EqualValues(st.t, 3, st.s.Counts.All.Steps)
			require.Equal(st.t, []session.LimitUse{{Limit: "toolCalls", Used: 4, Of: 5}}, st.s.Counts.Warnings)
		},
		"retention_and_deleted": func(st *story) {
			st.says("done")
			rules := taskRules()
			rules.Retention = 30 * 24 * time.Hour
			st.do(engine.Start(st.s, rules, llm.User("and A-2"), st.stamp()))
			st.asks(session.WaitApproval, "refund")
			st.do(engine.Deleted(st.s, st.stamp()))
			require.Equal(st.t, session.StatusSuspended, st.s.Status)
		},
		"finish": func(st *story) {
			st.step(engine.StepOutcome{Reply: st.reply(toolCall("__finish__")), Results: []llm.ToolResult{success("c2-1", "__finish__", `{"total":1}`)}, Output: json.RawMessage(`{"total":1}`)})
		},
		"input_expired": func(st *story) {
			st.step(engine.StepOutcome{Reply: st.reply(llm.Text("which?")), NeedsInput: true, InputExpiry: &engine.Expiry{After: time.Hour, Outcome: session.ExpireReask}})
			st.resumed(st.expiry(0, session.ExpireReask, ""))
		},
		"input_default": func(st *story) {
			st.step(engine.StepOutcome{Reply: st.reply(llm.Text("which?")), NeedsInput: true})
			st.resumed(st.expiry(0, session.ExpireDefault, `"the first"`)).says("the first then")
		},
		"approval_expired": func(st *story) {
			st.asks(session.WaitApproval, "refund").resumed(st.expiry(0, session.ExpireDeny, ""))
			st.step(engine.StepOutcome{Results: []llm.ToolResult{engine.Result(st.s.Calls[0], llm.ResultTimedOut, engine.TextExpired)}}).says("too late")
		},
		"mail_while_waiting": func(st *story) {
			out := engine.StepOutcome{Reply: st.reply(toolCall("refund")), LateMail: []string{"m1"}, LateMailMessages: []llm.Message{llm.User("hurry")}}
			out.Waits = []session.Wait{{Kind: session.WaitApproval, Call: "c2-1"}}
			st.step(out).stopped(journal.SignalCancel, engine.StepOutcome{})
		},
		"voted": func(st *story) {
			rule := session.AnswerRule{Roles: []string{"finance"}, Need: 2, NotRequester: true}
			wait := session.Wait{Kind: session.WaitApproval, Call: "c2-1", Tool: "refund", Arguments: json.RawMessage(`{}`), Digest: journal.Digest([]byte(`{}`)), Policy: "d1"}
			wait.Hold(&rule, st.s.Requesters)
			st.step(engine.StepOutcome{Reply: st.reply(toolCall("refund")), Waits: []session.Wait{wait}, LateMail: []string{"m1"}, LateMailMessages: []llm.Message{llm.User("hurry")}, Requesters: []string{"bob"}})
			answer := st.approval(0, true)
			for _, who := range []string{"cyd", "dan"} {
				answer.Votes = append(answer.Votes, session.Vote{Who: who, When: t0, From: "test", Approved: true, Digest: wait.Digest})
			}
			st.resumed(answer)
			st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "refund", `1`)}}).says("done")
		},
		"went_back_and_compacted": func(st *story) { goBack(st) },
		"two_timelines":           twoTimelines,
	}
}

// goBack writes restored, a compaction, deleted.
func goBack(st *story) {
	st.asks(session.WaitApproval, "refund", "refund").resumed(st.approval(0, false), st.approval(1, false))
	st.step(engine.StepOutcome{Results: []llm.ToolResult{engine.Result(st.s.Calls[0], llm.ResultDenied, ""), engine.Result(st.s.Calls[1], llm.ResultDenied, "")}})
	st.says("then not")
	rules := taskRules()
	e := st.entry(session.KindRestored, session.StatusRunning)
	e.Task, e.Run, e.Trigger, e.Rules, e.RulesAt, e.Used = 2, 3, session.TriggerRetry, &rules, e.Seq, journal.Used{}
	e.Base = &journal.Base{Seq: 2}
	st.raw(e)
	st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c6-1", "refund", `1`), success("c6-2", "refund", `2`)}, StateOps: []session.StateOp{
		{Op: session.StateReplace, Key: "k", Value: json.RawMessage(`1`)},
	}})
	e = st.entry(session.KindStepped, session.StatusRunning)
	e.Base = &journal.Base{Seq: 7, Messages: []llm.Message{llm.User("two refunds")}}
	st.raw(e).says("done")
	st.raw(st.entry(session.KindDeleted, session.StatusCompleted))
}

// cut is the entry that twoTimelines goes back to.
const cut = 2

// twoTimelines goes back to where two calls were asked about. One of them has run since, and a call with
// an effect that only the abandoned timeline has; the other one is asked anew, and run this time.
func twoTimelines(st *story) {
	ran := func(e *journal.Entry, call string) {
		e.Calls = []journal.ToolRun{{Call: call, Digest: "args", At: e.At, Millis: 7}}
	}
	st.asks(session.WaitApproval, "refund", "refund").resumed(st.approval(0, true), st.approval(1, false))
	m := engine.Close(st.s, engine.StepOutcome{
		Results:  []llm.ToolResult{success("c2-1", "refund", `{"id":1}`), engine.Result(st.s.Calls[1], llm.ResultDenied, engine.TextDenied)},
		StateOps: []session.StateOp{{Op: session.StateReplace, Key: "refunded", Value: json.RawMessage(`1`)}},
	}, st.stamp())
	ran(&m.Entry, "c2-1")
	st.do(m)
	m = engine.Replied(st.s, engine.StepOutcome{Reply: st.reply(toolCall("append"))}, st.stamp())
	st.do(m)
	m = engine.Close(st.s, engine.StepOutcome{Results: []llm.ToolResult{success("c5-1", "append", `"a letter"`)}}, st.stamp())
	ran(&m.Entry, "c5-1")
	st.do(m).says("the second one not")

	to, err := engine.Fold(key, st.entries[:cut])
	require.NoError(st.t, err)
	m = engine.Restored(st.s, engine.GoingBack{
		To: to, Rules: taskRules(), Trigger: session.TriggerResume,
		Results:  []llm.ToolResult{success("c2-1", "refund", `{"id":1}`)},
		StateOps: []session.StateOp{{Op: session.StateReplace, Key: "refunded", Value: json.RawMessage(`1`)}},
	}, st.stamp())
	require.NoError(st.t, engine.Check(st.s, &m.Entry))
	st.raw(m.Entry)
	require.Equal(st.t, session.StatusSuspended, st.s.Status)
	st.resumed(st.approval(0, true))
	m = engine.Close(st.s, engine.StepOutcome{Results: []llm.ToolResult{success("c8-2", "refund", `{"id":2}`)}}, st.stamp())
	ran(&m.Entry, "c8-2")
	st.do(m).says("both")
}

// TestGoldenJournals_two_timelines: what a reader finds in the stored journal of a session that was sent
// back: which calls were made after the cut, with what became of them, the history of the new task,
// which has none of the abandoned one, and each timeline as it was.
func TestGoldenJournals_two_timelines(t *testing.T) {
	t.Parallel()
	entries := readJournal(t, "testdata/v1/two_timelines.jsonl")
	abandoned, err := engine.Fold(key, entries[:7])
	require.NoError(t, err)
	require.Equal(t, session.StatusCompleted, abandoned.Status)
	require.Equal(t, "the second one not", abandoned.Messages[len(abandoned.Messages)-1].Text())
	s, err := engine.Fold(key, entries)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Task)
	said, calls := "", []string{}
	for _, m := range s.Messages {
		said += m.Text()
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				calls = append(calls, p.ToolResult.CallID+" "+string(p.ToolResult.Status))
			}
		}
	}
	require.Equal(t, "refund A-1both", said)
	require.Equal(t, []string{"c8-1 success", "c8-2 success"}, calls)

	var left strings.Builder
	for _, upTo := range []int{7, len(entries)} {
		made, err := engine.LeftBehind(key, entries[:upTo], cut)
		require.NoError(t, err)
		fmt.Fprintf(&left, "entries %d to %d\n", cut+1, upTo)
		for _, m := range made {
			fmt.Fprintf(&left, "  %s %s %s, open after entry %d, ran: %t, %s: %s\n", m.Call.ID, m.Call.Name, m.Call.Arguments, m.Entry, m.Run != nil, m.Result.Status, m.Result.Output)
		}
	}
	goldentest.File(t, "testdata/v1/two_timelines.left.txt", []byte(left.String()))
}

func readJournal(t *testing.T, path string) (entries []journal.Entry) {
	t.Helper()
	stored, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range bytes.Lines(stored) {
		e, err := journal.Decode(bytes.TrimSpace(line))
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

func (st *story) entry(kind session.Kind, status session.Status) journal.Entry {
	stamp := st.stamp()
	return journal.Entry{
		V: journal.Format, Seq: st.s.Next(), Kind: kind, At: stamp.Now, By: stamp.By, Attempt: stamp.Attempt, Token: stamp.Token, Prev: st.s.Newest.Hash,
		Task: st.s.Task, Run: st.s.Run, Step: st.s.Step, RulesAt: st.s.RulesAt, Status: status, Used: journal.Used{Task: st.s.Used},
	}
}

// raw writes an entry as it is, and folds the whole if it goes back.
func (st *story) raw(e journal.Entry) *story {
	st.t.Helper()
	stored, err := journal.Encode(&e)
	require.NoError(st.t, err)
	e, err = journal.Decode(stored)
	require.NoError(st.t, err)
	st.entries = append(st.entries, e)
	err = engine.Apply(st.s, &e)
	if errors.Is(err, engine.ErrNeedsHistory) {
		st.s, err = engine.Fold(key, st.entries)
	}
	require.NoError(st.t, err)
	return st
}

func TestGoldenJournals(t *testing.T) {
	t.Parallel()
	for name, tell := range journals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			tell(st)
			requireFolds(t, st)
			var written bytes.Buffer
			for _, e := range st.entries {
				text, err := json.Marshal(e)
				require.NoError(t, err)
				written.Write(append(text, '\n'))
			}
			path := filepath.Join("testdata/v1", name)
			stored := goldentest.File(t, path+".jsonl", written.Bytes())

			var entries []journal.Entry
			for line := range bytes.Lines(stored) {
				e, err := journal.Decode(bytes.TrimSpace(line))
				require.NoError(t, err)
				entries = append(entries, e)
			}
			folded, err := engine.Fold(key, entries)
			require.NoError(t, err)
			goldentest.File(t, path+".fold.json", []byte(view(t, folded))) // old sessions mean what they meant
		})
	}
}

func TestGoldenJournals_every_file_has_its_story(t *testing.T) {
	t.Parallel()
	goldentest.Complete(t, "testdata/v1", ".jsonl", journals())
}
