package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestStart(t *testing.T) {
	t.Parallel()
	st := begin(t)
	m := st.last
	require.True(t, m.MovesHead)
	require.True(t, m.RunIsNew)
	require.Equal(t, session.Run{ID: 1, Task: 1, Trigger: session.TriggerStart, Status: session.StatusRunning, StartedAt: m.Entry.At, FirstEntry: 1}, *m.Run)
	require.Equal(t, journal.NewWake(key, 2, journal.WakeStep), *m.Wake)
	require.Equal(t, "refund A-1", m.Title)
	require.Equal(t, taskRules(), st.s.Rules)
	require.Equal(t, taskRules().Limits, st.s.Left())

	st.says("done").do(engine.Start(st.s, taskRules(), llm.User("next"), st.stamp()))
	require.EqualValues(t, 2, st.s.Task)
	require.EqualValues(t, 2, st.s.Run)
	require.EqualValues(t, 1, st.last.Run.PreviousRun)
	require.Zero(t, st.s.Step)
	require.Empty(t, st.last.Title, "the title is that of the first turn")
	require.Len(t, st.s.Messages, 3, "history is kept")
	require.Equal(t, taskRules().Limits, st.s.Left(), "limits belong to the task")
}

func TestStart_title(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"  a\n\tb  ":                   "a b",
		strings.Repeat("x", 80):        strings.Repeat("x", 80),
		strings.Repeat("ü", 5000):      strings.Repeat("ü", 79) + "…",
		"a\xffb":                       "ab",
		strings.Repeat(" ", 639) + "ü": "",
		"":                             "",
	} {
		s := &session.Session{Key: key}
		require.Equal(t, want, engine.Start(s, taskRules(), llm.User(text), engine.Stamp{Now: t0}).Title, "%.20q", text)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	call := func(st *story) engine.StepOutcome { return engine.StepOutcome{Reply: st.reply(toolCall("echo"))} }
	text := func(st *story) engine.StepOutcome { return engine.StepOutcome{Reply: st.reply(llm.Text("hi"))} }
	with := func(base func(*story) engine.StepOutcome, change func(*engine.StepOutcome)) func(*story) engine.StepOutcome {
		return func(st *story) engine.StepOutcome { out := base(st); change(&out); return out }
	}
	done := func(out *engine.StepOutcome) { out.Results = []llm.ToolResult{success("c2-1", "echo", `1`)} }
	late := func(out *engine.StepOutcome) {
		out.LateMail, out.LateMailMessages = []string{"m1"}, []llm.Message{llm.User("hurry")}
	}
	wait := func(out *engine.StepOutcome) { out.Waits = []session.Wait{{Kind: session.WaitApproval, Call: "c2-1"}} }
	fail := func(out *engine.StepOutcome) { out.Failure = &session.Failure{Type: "planner_failed"} }
	for name, c := range map[string]struct {
		out  func(*story) engine.StepOutcome
		kind session.Kind
		wake bool
		open int
	}{
		"text_completes":                     {text, session.KindCompleted, false, 0},
		"text_that_needs_input_suspends":     {with(text, func(o *engine.StepOutcome) { o.NeedsInput = true }), session.KindSuspended, false, 0},
		"calls_with_results_step":            {with(call, done), session.KindStepped, true, 0},
		"calls_that_need_input_only_step":    {with(with(call, done), func(o *engine.StepOutcome) { o.NeedsInput = true }), session.KindStepped, true, 0},
		"output_completes":                   {with(with(call, done), func(o *engine.StepOutcome) { o.Output = json.RawMessage(`null`) }), session.KindCompleted, false, 0},
		"waits_suspend":                      {with(call, wait), session.KindSuspended, false, 1},
		"waits_win_over_output":              {with(with(call, wait), func(o *engine.StepOutcome) { o.Output = json.RawMessage(`1`) }), session.KindSuspended, false, 1},
		"late_mail_keeps_text_going":         {with(text, late), session.KindStepped, true, 0},
		"late_mail_keeps_needed_input_going": {with(with(text, func(o *engine.StepOutcome) { o.NeedsInput = true }), late), session.KindStepped, true, 0},
		"late_mail_keeps_output_going":       {with(with(with(call, done), late), func(o *engine.StepOutcome) { o.Output = json.RawMessage(`1`) }), session.KindStepped, true, 0},
		"late_mail_answers_a_wait_for_input": {with(with(call, done), func(o *engine.StepOutcome) { late(o); o.Waits = []session.Wait{{Kind: session.WaitInput}} }), session.KindStepped, true, 0},
		"late_mail_does_not_undo_waits":      {with(with(call, wait), late), session.KindSuspended, false, 1},
		"failure_closes_what_is_open":        {with(call, fail), session.KindFailed, false, 0},
		"failure_wins_over_waits":            {with(with(call, wait), fail), session.KindFailed, false, 0},
		"failure_without_a_reply":            {with(func(*story) engine.StepOutcome { return engine.StepOutcome{} }, fail), session.KindFailed, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := begin(t)
			st.do(engine.Close(st.s, c.out(st), st.stamp()))
			require.Equal(t, c.kind, st.s.Newest.Kind)
			require.Equal(t, c.wake, st.last.Wake != nil)
			require.Equal(t, !c.wake, st.last.MovesHead)
			require.Equal(t, !c.wake, st.last.Run != nil)
			require.Len(t, st.s.Calls, c.open)
			if !c.wake {
				require.False(t, st.last.RunIsNew)
				run := st.s.RunRecord
				run.Used = st.s.RunUsed
				require.Equal(t, run, *st.last.Run)
				require.EqualValues(t, 2, st.last.Run.LastEntry)
			}
			require.Equal(t, c.kind == session.KindCompleted && strings.HasPrefix(name, "output"), st.s.Output != nil)
			requireFolds(t, st)
		})
	}
}

func TestClose_goes_on_only_while_running(t *testing.T) {
	t.Parallel()
	st := begin(t)
	m := engine.Close(st.s, engine.StepOutcome{Reply: st.reply(llm.Text("hi"))}, st.keepsLease())
	require.False(t, m.Entry.KeepsLease)
	m = engine.Close(st.s, engine.StepOutcome{Reply: st.reply(toolCall("echo")), Results: []llm.ToolResult{success("c2-1", "echo", `1`)}}, st.keepsLease())
	require.True(t, m.Entry.KeepsLease)
	require.Nil(t, m.Wake, "the writer goes on itself")
}

func TestClose_waits(t *testing.T) {
	t.Parallel()
	st := begin(t)
	var parts []llm.Part
	for range 100 {
		parts = append(parts, toolCall("refund"))
	}
	out := engine.StepOutcome{Reply: st.reply(parts...)}
	expiry := &engine.Expiry{After: time.Hour, Outcome: session.ExpireDefault, Value: json.RawMessage(`true`)}
	for _, c := range out.Reply.ToolCalls() {
		out.Waits = append(out.Waits, session.Wait{Kind: session.WaitApproval, Call: c.ID, Deadline: expiry.Deadline(time.Time{})})
	}
	out.Waits[1] = session.Wait{Kind: session.WaitClientTool, Call: "c2-2"}
	st.step(out)
	require.Len(t, st.last.Waits, session.MaxWaits)
	nonces := map[string]bool{}
	for i, w := range st.s.Waits {
		require.Equal(t, fmt.Sprintf("w2-%d", i+1), w.ID)
		require.Equal(t, fmt.Sprintf("c2-%d", i+1), w.Call)
		require.Equal(t, st.s.Newest.At, w.OpenedAt)
		record := st.last.Waits[i]
		require.Equal(t, journal.WaitRecord{Wait: w, State: session.WaitOpen, Agent: "support", Due: record.Due}, record)
		if i == 1 {
			require.Empty(t, w.Nonce)
			require.Nil(t, record.Due)
			continue
		}
		nonces[w.Nonce] = true
		require.Equal(t, session.Deadline{At: w.OpenedAt.Add(time.Hour), Outcome: session.ExpireDefault, Value: json.RawMessage(`true`), After: time.Hour}, *w.Deadline)
		require.Equal(t, w.Deadline.At, *record.Due)
	}
	require.Len(t, nonces, session.MaxWaits-1)
	require.Empty(t, out.Waits[0].ID, "what was handed in is not changed")
	require.Len(t, st.s.Calls, 100, "the calls of the others are planned again")
}

func TestSpending(t *testing.T) {
	t.Parallel()
	st := begin(t)
	use := engine.Used{Usage: llm.Usage{Input: 100, Output: 20}, Active: 1500 * time.Millisecond, CostMicros: 9}
	st.do(engine.Replied(st.s, engine.StepOutcome{Reply: st.reply(toolCall("a")), Used: use}, st.stamp()))
	require.True(t, st.s.Newest.KeepsLease)
	want := taskRules().Limits
	want.Steps, want.Tokens, want.ActiveMillis = 9, 880, 58_500
	require.Equal(t, want, st.s.Left())
	st.step(engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "a", `1`)}, Used: engine.Used{Active: time.Second}})
	want.ActiveMillis = 57_500
	require.Equal(t, want, st.s.Left(), "the step was counted with its reply")
	st.do(engine.Delayed(st.s, session.Failure{Type: "x"}, t0.Add(time.Hour), engine.Used{}, st.keepsLease()))
	want.Steps = 8
	require.Equal(t, want, st.s.Left(), "failed model calls are counted")
	require.Nil(t, st.last.Wake, "no queue takes it: HEAD is due then")
	require.False(t, st.s.Newest.KeepsLease)
	st.stopped(journal.SignalInterrupt, engine.StepOutcome{Used: engine.Used{Active: 24 * time.Hour}})
	require.Zero(t, st.s.Left().ActiveMillis)
	require.Equal(t, "activeMillis", st.s.Left().Exhausted())
	require.Equal(t, llm.Usage{Input: 100, Output: 20}, st.s.TaskUsage)
	require.Equal(t, llm.Usage{Input: 100, Output: 20}, st.last.Run.Usage)
}

func TestResumed_trigger(t *testing.T) {
	t.Parallel()
	for kind, want := range map[session.AnswerKind]session.Trigger{
		session.AnswerApproval: session.TriggerSubmit, session.AnswerClientTool: session.TriggerSubmit, session.AnswerReply: session.TriggerSubmit,
		session.AnswerVerdict: session.TriggerSubmit, session.AnswerExpiry: session.TriggerExpiry, session.AnswerChild: session.TriggerChild,
		session.AnswerMessage: session.TriggerMessage,
	} {
		st := begin(t).asks(session.WaitApproval, "a", "b")
		st.resumed(st.answer(0, session.AnswerApproval, nil), st.answer(1, kind, nil))
		require.Equal(t, want, st.s.RunRecord.Trigger, kind)
		require.EqualValues(t, 2, st.s.Run)
		require.Nil(t, st.last.Wake)
		require.Empty(t, st.s.Waits)
		require.Len(t, st.s.Calls[1].Answers, 1)
	}
	st := begin(t).asks(session.WaitApproval, "a").resumed()
	require.Equal(t, session.TriggerResume, st.s.RunRecord.Trigger)
}

// An answer that was accepted counts, even if the task goes on with a message or ends.
func TestStopping_keeps_accepted_answers(t *testing.T) {
	t.Parallel()
	waiting := func(t *testing.T) (*story, []session.Answer, []llm.ToolResult) {
		st := begin(t).asks(session.WaitClientTool, "locate", "append", "refund", "open")
		answers := []session.Answer{
			st.answer(0, session.AnswerClientTool, func(a *session.Answer) { a.Result = json.RawMessage(`1`) }),
			st.answer(1, session.AnswerVerdict, func(a *session.Answer) { a.Verdict = session.VerdictHappened }), st.approval(2, false),
		}
		var closed []llm.ToolResult
		for i, c := range st.s.Calls {
			status := llm.ResultCancelled
			if i == 1 {
				status = llm.ResultUnknown
			}
			closed = append(closed, engine.Result(c, status, ""))
		}
		return st, answers, closed
	}
	want := []string{"c2-1 success", "c2-2 success", "c2-3 denied", "c2-4 cancelled"}
	message := llm.User("never mind")

	st, answers, closed := waiting(t)
	st.do(engine.Resumed(st.s, answers, &message, closed, st.stamp()))
	require.Equal(t, want, results(st.s))
	require.Equal(t, message, st.s.Messages[len(st.s.Messages)-1], "the message follows the answers")
	require.Equal(t, session.TriggerMessage, st.s.RunRecord.Trigger)
	require.NotNil(t, st.last.Wake)

	for _, kind := range []journal.SignalKind{journal.SignalCancel, journal.SignalAbort} {
		st, answers, _ = waiting(t)
		st.stopped(kind, engine.StepOutcome{Answers: answers})
		require.Equal(t, want, results(st.s), kind)
		require.Empty(t, st.s.Waits)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	st := begin(t).asks(session.WaitApproval, "refund").stopped(journal.SignalInterrupt, engine.StepOutcome{})
	require.Equal(t, session.StatusInterrupted, st.s.Status)
	require.Len(t, st.s.Waits, 1, "open waits stay answerable")
	require.Len(t, st.s.Calls, 1)
	require.Nil(t, st.last.Run, "the run ended when it suspended")
	require.Equal(t, session.StatusSuspended, st.s.RunRecord.Status)
	require.Equal(t, "ana", st.last.Entry.Signal.Who)

	st.stopped(journal.SignalAbort, engine.StepOutcome{})
	require.Equal(t, session.Failure{Type: "aborted", Message: "Aborted by ana."}, *st.s.Failure, "for good")
	signal := st.signal(journal.SignalAbort)
	signal.Reason = "wrong order"
	m := engine.Stopped(begin(t).s, signal, engine.StepOutcome{}, st.stamp())
	require.Equal(t, "Aborted by ana: wrong order", m.Entry.Failure.Message)

	for _, kind := range []journal.SignalKind{journal.SignalCancel, journal.SignalAbort} {
		st = begin(t)
		reply := st.reply(toolCall("look"), toolCall("look"))
		calls := reply.ToolCalls()
		st.stopped(kind, engine.StepOutcome{Reply: reply, Results: []llm.ToolResult{success(calls[1].ID, "look", `"seen"`)}, Mail: []string{"m1"}, MailMessages: []llm.Message{llm.User("and")}})
		require.Equal(t, llm.User("and"), st.s.Messages[1])
		require.Equal(t, *reply, st.s.Messages[2], "a reply whose tools only read is kept")
		require.Equal(t, llm.ResultCancelled, st.s.Messages[3].Parts[0].ToolResult.Status)
		require.Equal(t, success(calls[1].ID, "look", `"seen"`), *st.s.Messages[3].Parts[1].ToolResult)
		require.Empty(t, st.s.Calls)
		require.True(t, st.s.Mail["m1"])
		require.EqualValues(t, 1, st.last.Entry.Used.Steps)
	}
	for kind, reply := range map[journal.SignalKind]llm.Part{journal.SignalInterrupt: toolCall("look"), journal.SignalCancel: llm.Text("half a word")} {
		st = begin(t)
		st.stopped(kind, engine.StepOutcome{Reply: st.reply(reply), Mail: []string{"m1"}, MailMessages: []llm.Message{llm.User("and")}})
		require.Equal(t, llm.User("and"), st.s.Messages[1], "the reply is given up, not the mail")
		require.True(t, st.s.Mail["m1"])
		require.Zero(t, st.last.Entry.Used.Steps)
	}

	st = begin(t).stopped(journal.SignalCancel, engine.StepOutcome{LateMail: []string{"m1"}, LateMailMessages: []llm.Message{llm.User("and")}})
	require.Equal(t, []llm.Message{llm.User("and"), llm.Assistant(engine.TextClosing)}, st.s.Messages[1:])
	require.True(t, st.s.Mail["m1"])
	require.Nil(t, st.last.Wake)
}

// A user's word that came while calls were open stands before the closing message.
func TestHeld_messages_keep_their_place(t *testing.T) {
	t.Parallel()
	st := begin(t)
	journals()["mail_while_waiting"](st)
	var roles []llm.Role
	for _, m := range st.s.Messages {
		roles = append(roles, m.Role)
	}
	require.Equal(t, []llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleTool, llm.RoleUser, llm.RoleAssistant}, roles)
	require.True(t, st.s.Mail["m1"])
}

func TestGoing_back_gives_open_calls_a_new_chance(t *testing.T) {
	t.Parallel()
	st := begin(t)
	goBack(st)
	seven, err := engine.Fold(key, st.entries[:6])
	require.NoError(t, err)
	require.Equal(t, "c6-1", seven.Calls[0].ID)
	require.Empty(t, seven.Calls[0].Answers, "what was decided elsewhere does not count here")
	require.Equal(t, seven.Calls[1].ID, seven.Messages[1].ToolCalls()[1].ID)
	notes, ok := st.s.State.Get("k")
	require.True(t, ok, "a compaction keeps the state")
	require.JSONEq(t, `1`, string(notes))
	require.Equal(t, []llm.Message{llm.User("two refunds"), llm.Assistant("done")}, st.s.Messages)
}

// TestDelayed: a retry is put off for a bounded time, and moves HEAD: what stops the
// task does not wait for it.
func TestDelayed(t *testing.T) {
	t.Parallel()
	st := begin(t)
	for until, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 10 * journal.MaxDelay: journal.MaxDelay} {
		stamp := st.keepsLease()
		m := engine.Delayed(st.s, session.Failure{Type: "x"}, stamp.Now.Add(until), engine.Used{}, stamp)
		require.Equal(t, stamp.Now.Add(want).UTC(), *m.Entry.Until)
		require.True(t, m.MovesHead)
		require.False(t, m.Entry.KeepsLease)
		require.NoError(t, engine.Check(st.s, &m.Entry))
	}
}

// The default of a call's deadline is an answer to the call, and never a message of a user.
func TestResumed_default_of_a_call_is_no_message(t *testing.T) {
	t.Parallel()
	st := begin(t).asks(session.WaitQuestion, "a")
	before := len(st.s.Messages)
	st.resumed(st.answer(0, session.AnswerExpiry, func(a *session.Answer) { a.Outcome, a.Result = session.ExpireDefault, json.RawMessage(`"red"`) }))
	require.Len(t, st.s.Messages, before)
	require.Empty(t, st.s.Held)
}

// The usage of a task begins anew with it.
func TestStart_of_the_next_turn_has_used_nothing(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.do(engine.Close(st.s, engine.StepOutcome{Reply: st.reply(llm.Part{Kind: llm.PartText, Text: "done"}), Used: engine.Used{Usage: llm.Usage{Input: 7}}}, st.stamp()))
	require.Equal(t, session.StatusCompleted, st.s.Status)
	st.do(engine.Start(st.s, taskRules(), llm.User("more"), st.stamp()))
	require.Zero(t, st.s.TaskUsage)
}

// Results that several entries brought stand in the order of the calls.
func TestClose_results_of_several_entries_are_in_the_order_of_the_calls(t *testing.T) {
	t.Parallel()
	st := begin(t)
	st.do(engine.Replied(st.s, engine.StepOutcome{Reply: st.reply(toolCall("a"), toolCall("b"))}, st.stamp()))
	st.do(engine.Close(st.s, engine.StepOutcome{Results: []llm.ToolResult{success("c2-2", "b", `2`)}}, st.stamp()))
	st.do(engine.Close(st.s, engine.StepOutcome{Results: []llm.ToolResult{success("c2-1", "a", `1`)}}, st.stamp()))
	last := st.s.Messages[len(st.s.Messages)-1]
	require.Equal(t, "c2-1", last.Parts[0].ToolResult.CallID)
}
