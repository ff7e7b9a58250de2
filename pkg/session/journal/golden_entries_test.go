package journal_test

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func entry(seq int64, kind session.Kind, status session.Status) journal.Entry {
	return journal.Entry{
		V: 1, Seq: seq, Kind: kind, At: at, By: "worker-1/4711", Attempt: session.Attempt{ID: "a1", N: 1, For: seq}, Prev: prev, Token: token,
		Task: 1, Run: 1, Step: 1, RulesAt: 1, Status: status,
		Used: journal.Used{
			Amounts: session.Amounts{Steps: 1, Tokens: 1500, ActiveMillis: 2100, CostMicros: 420},
			Task:    session.Amounts{Steps: 3, Tokens: 4500, ActiveMillis: 7300, CostMicros: 1260},
		},
	}
}

func signal(kind journal.SignalKind) *journal.Signal {
	return &journal.Signal{ID: "sig-1", Task: 1, Kind: kind, Reason: "wrong order", Who: "ana", At: at, From: "cli"}
}

// entries has one of every kind, each with all that kind can hold, now or later.
func entries() map[string]any {
	started := entry(1, session.KindStarted, session.StatusRunning)
	started.By, started.From, started.Attempt, started.Prev, started.Step = "ana", "http 192.0.2.7", session.Attempt{ID: "req-1"}, "", 0
	started.Trigger = session.TriggerStart
	started.Rules = &session.Rules{
		Agent: "support", Digest: prev, Model: "openai:gpt-5", Limits: session.DefaultLimits(), Tools: []string{"locate", "refund"},
		Policy: session.Policy{TextNeedsInput: true, HoldBatch: true, AbandonOnMessage: true, OnChange: session.ChangeReask},
	}
	started.Parent = &session.Parent{Session: "s0", Call: "c2-1", Wait: "w2-1", Root: "s0", Depth: 1}
	started.Messages = []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{
		llm.Text("Grüße: <refund> A-1 & A-2"),
		{Kind: llm.PartImage, File: &llm.FileRef{MediaType: "image/png", URL: "https://example.org/a.png"}},
	}}}

	replied := entry(2, session.KindReplied, session.StatusRunning)
	replied.KeepsLease = true
	replied.Messages = []llm.Message{llm.User("and hurry"), {Role: llm.RoleAssistant, Parts: []llm.Part{
		{Kind: llm.PartReasoning, Text: "Two orders.", Provider: "anthropic", Opaque: []byte{0, 0xff, 1}},
		llm.Text("I refund both."), call("c2-1", "refund", `{"order":"A-1","amount":120.50}`), call("c2-2", "refund", `{"order":"A-2"}`),
	}}}
	replied.Mail = []string{"01JNM5Z7"}
	replied.StateOps = []session.StateOp{{Op: session.StateReplace, Key: "flow", Value: raw(`{"node":"refund","visits":[1]}`)}}
	replied.Usage = llm.Usage{Input: 1200, CacheRead: 1000, CacheWrite: 100, Output: 300, Reasoning: 200}
	replied.Models = []journal.ModelCall{{
		Model: "gpt-5-2026-01-01", ID: "chatcmpl-7", At: at, Millis: 2100, Finish: llm.StopToolCalls, Usage: replied.Usage, CostMicros: 420,
	}}

	stepped := entry(3, session.KindStepped, session.StatusRunning)
	stepped.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{
		result("c2-1", "refund", llm.ResultSuccess, `{"id":"r-1"}`), result("c2-2", "refund", llm.ResultError, `"no such order"`),
	}}}
	stepped.StateOps = []session.StateOp{
		{Op: session.StateAppend, Key: "notes", Value: raw(`"<a>"`)}, {Op: session.StateReplace, Key: "done", Value: raw(`null`)},
	}
	stepped.Events = []session.CustomEvent{{Call: "c2-1", Name: "progress", Data: raw(`{"percent":50}`)}, {Name: "bare"}}
	stepped.Calls = []journal.ToolRun{{Call: "c2-1", At: at, Millis: 250, Digest: prev}, {Call: "c2-2", At: at, Millis: 0, Digest: prev}}
	stepped.Children = []session.Child{
		{Name: "clerk", Session: "s1-agent-clerk", Agent: "clerk", Call: "c2-1", Mode: "background", Status: session.StatusRunning},
	}

	unasked := stepped
	unasked.Calls = []journal.ToolRun{{Call: "c2-1", At: at, Digest: prev, Permission: "w1-1"}, {Call: "c2-2", At: at, Digest: prev, ByPolicy: true}}
	held := started
	held.Rules = &session.Rules{
		Agent: "support", Digest: prev, Tools: []string{"refund"}, Needs: []string{session.NeedsPolicyPause, session.NeedsProgramPolicy},
		ProgramPolicy: &session.ToolPolicy{Tools: map[string]session.ToolMode{"refund": session.ToolAuto}, Default: session.ToolNever, Never: session.NeverPause},
	}

	suspended := entry(4, session.KindSuspended, session.StatusSuspended)
	suspended.Messages = []llm.Message{{Role: llm.RoleAssistant, Parts: []llm.Part{call("c4-1", "refund", `{"order":"A-3","amount":500}`)}}}
	suspended.Step = 2
	for _, kind := range session.WaitKinds() {
		if w, ok := waits()["wait_"+string(kind)].(session.Wait); ok {
			suspended.Waits = append(suspended.Waits, w)
		}
	}
	suspended.Children = []session.Child{{Name: "clerk", Session: "s1-agent-clerk", Agent: "clerk", Status: session.StatusSuspended}}

	resumed := entry(5, session.KindResumed, session.StatusRunning)
	resumed.Run, resumed.Trigger, resumed.KeepsLease = 2, session.TriggerSubmit, true
	resumed.Attempt = session.Attempt{ID: "a2", N: 3, For: 5}
	for _, name := range []string{"answer_approved_edited", "answer_client_result", "answer_choice", "answer_message", "answer_child", "answer_happened", "answer_expiry_deny"} {
		if a, ok := answers()[name].(session.Answer); ok {
			a.Audit = token
			resumed.Answers = append(resumed.Answers, a)
		}
	}
	resumed.Messages = []llm.Message{
		{Role: llm.RoleTool, Parts: []llm.Part{result("c4-1", "refund", llm.ResultCancelled, `"Tool execution cancelled"`)}}, llm.User("do it by hand"),
	}

	delayed := entry(6, session.KindDelayed, session.StatusRunning)
	delayed.Failure = &session.Failure{Type: "model_rate_limited", Message: "429: slow down", Retryable: true, Data: raw(`{"retryAfter":30}`)}
	delayed.Until = new(later)
	delayed.Models = []journal.ModelCall{{Model: "openai:gpt-5", At: at, Millis: 30, Error: "rate_limited"}}

	interrupted := entry(7, session.KindInterrupted, session.StatusInterrupted)
	interrupted.Signal = signal(journal.SignalInterrupt)
	interrupted.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{result("c6-1", "append_line", llm.ResultUnknown, `"not known"`)}}}

	cancelled := entry(8, session.KindCancelled, session.StatusCancelled)
	cancelled.Signal = signal(journal.SignalCancel)
	cancelled.Messages = []llm.Message{
		{Role: llm.RoleTool, Parts: []llm.Part{result("c7-1", "refund", llm.ResultCancelled, `"Tool execution cancelled"`)}}, llm.Assistant("Cancelled by user"),
	}

	completed := entry(9, session.KindCompleted, session.StatusCompleted)
	completed.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{result("c8-1", "__finish__", llm.ResultSuccess, `{"total":620.50}`)}}}
	completed.Output = raw(`{"total":620.50}`)

	failed := entry(10, session.KindFailed, session.StatusFailed)
	failed.Signal = signal(journal.SignalAbort)
	failed.Failure = &session.Failure{Type: "aborted", Message: "Aborted by ana: wrong order"}

	all := map[string]any{
		"entry_started_program_policy": held, "entry_stepped_unasked": unasked,
		"entry_started": started, "entry_replied": replied, "entry_stepped": stepped, "entry_suspended": suspended, "entry_resumed": resumed,
		"entry_delayed": delayed, "entry_interrupted": interrupted, "entry_cancelled": cancelled, "entry_completed": completed, "entry_failed": failed,
	}
	for name, e := range laterEntries() {
		all[name] = e
	}
	return all
}

// laterEntries are of kinds, and have fields, that nothing writes yet.
func laterEntries() map[string]any {
	restored := entry(11, session.KindRestored, session.StatusSuspended)
	restored.Task, restored.Run, restored.Trigger, restored.RulesAt = 2, 3, session.TriggerRetry, 11
	restored.Rules = &session.Rules{Agent: "support", Digest: prev, Limits: session.DefaultLimits(), Policy: session.Policy{OnChange: session.ChangeFail}}
	restored.Base = &journal.Base{Seq: 4}
	restored.Messages = []llm.Message{llm.User("once more, with feeling")}
	restored.Waits = []session.Wait{{ID: "w11-1", Kind: session.WaitApproval, Call: "c11-1", Nonce: "n2", OpenedAt: at}}

	forked := entry(1, session.KindForked, session.StatusInterrupted)
	forked.Prev, forked.Trigger = "", session.TriggerRetry
	forked.Rules = &session.Rules{Agent: "support", Digest: prev, Limits: session.DefaultLimits(), Policy: session.Policy{OnChange: session.ChangeGoOn}}
	forked.Base = &journal.Base{
		Session: "s1", Seq: 4, Messages: []llm.Message{llm.User("refund A-1"), llm.Assistant("which one?")},
		State: map[string]json.RawMessage{"notes": raw(`["a"]`), "flow": raw(`{"node":"ask"}`)},
	}

	compacted := entry(12, session.KindStepped, session.StatusRunning)
	compacted.Base = &journal.Base{Seq: 11, Messages: []llm.Message{llm.User("Summary: two refunds were asked for.")}}
	compacted.Messages = []llm.Message{{Role: llm.RoleAssistant, Parts: []llm.Part{call("c12-1", "echo", `{}`)}}}

	emptied := entry(13, session.KindStepped, session.StatusRunning)
	emptied.Base = &journal.Base{Messages: []llm.Message{}, State: map[string]json.RawMessage{}}

	childEnded := entry(14, session.KindResumed, session.StatusRunning)
	childEnded.Run, childEnded.Trigger = 4, session.TriggerChild
	childEnded.Children = []session.Child{{Name: "clerk", Session: "s1-agent-clerk", Agent: "clerk", Mode: "supervised", Status: session.StatusCompleted}}

	deleted := entry(15, session.KindDeleted, session.StatusCancelled)
	deleted.By, deleted.Attempt = "ana", session.Attempt{ID: "req-9"}

	minimal := journal.Entry{V: 1, Seq: 1, Kind: session.KindStepped, At: time.Unix(0, 0).UTC(), Status: session.StatusRunning}
	return map[string]any{
		"entry_restored": restored, "entry_forked": forked, "entry_stepped_compacted": compacted, "entry_stepped_emptied": emptied,
		"entry_resumed_child": childEnded, "entry_deleted": deleted, "entry_minimal": minimal,
	}
}
