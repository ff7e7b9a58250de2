package journal_test

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func deadline(outcome session.DeadlineOutcome, value string) *session.Deadline {
	d := &session.Deadline{At: later, Outcome: outcome, After: 90 * time.Minute}
	if value != "" {
		d.Value = raw(value)
	}
	return d
}

func waits() map[string]any {
	question := func(kind session.QuestionKind, choices ...session.Choice) session.Wait {
		return session.Wait{
			ID: "w4-3", Kind: session.WaitQuestion, Call: "c4-3", Tool: "pick", Arguments: raw(`{}`), Digest: prev, OpenedAt: at,
			Question: &session.Question{ID: "color", Kind: kind, Text: "Which one?", Choices: choices},
		}
	}
	approval := session.Wait{
		ID: "w4-1", Kind: session.WaitApproval, Nonce: "bm9uY2U", Call: "c4-1", Tool: "refund", Arguments: raw(`{"order":"A-3","amount":500}`),
		Digest: prev, OpenedAt: at, Deadline: deadline(session.ExpireDeny, ""), Who: []string{"ana", "role:finance"}, Policy: prev,
		Origin: &session.Origin{Session: "s1-agent-clerk", Wait: "w2-1"},
	}
	client := session.Wait{
		ID: "w4-2", Kind: session.WaitClientTool, Call: "c4-2", Tool: "locate", Arguments: raw(`{"fast":true}`), Digest: prev, OpenedAt: at,
		Deadline: deadline(session.ExpireDefault, `null`),
	}
	choice := question(session.QuestionChoice, session.Choice{ID: "r", Label: "red"}, session.Choice{ID: "b"})
	choice.Deadline = deadline(session.ExpireDefault, `["r"]`)
	ruled := approval
	ruled.Needs, ruled.Requesters = []string{session.NeedsAnswerRule}, []string{"zoe"}
	ruled.Rule = &session.AnswerRule{Roles: []string{"finance"}, Need: 2, Noes: 3, NotRequester: true, Assurance: session.AssuranceSignedIn}
	escalating := approval
	escalating.Needs = []string{session.NeedsEscalation}
	escalating.Deadline = deadline(session.ExpireDeny, "")
	escalating.Deadline.Remind = []time.Duration{time.Hour, time.Minute}
	escalating.Deadline.Escalate = &session.Escalation{Who: []string{"eve"}, Roles: []string{"chief"}, After: 2 * time.Hour}
	return map[string]any{
		"wait_approval_ruled":      ruled,
		"wait_approval_escalating": escalating,
		"wait_approval":            approval, "wait_client_tool": client, "wait_question": choice,
		"wait_question_multi": question(session.QuestionMultiChoice, session.Choice{ID: "x"}), "wait_question_text": question(session.QuestionText),
		"wait_input": session.Wait{ID: "w4-4", Kind: session.WaitInput, Text: "Which region?", OpenedAt: at, Deadline: deadline(session.ExpireReask, "")},
		"wait_child": session.Wait{ID: "w4-5", Kind: session.WaitChild, Call: "c4-5", Tool: "delegate", Child: "s1-agent-clerk", OpenedAt: at},
		"wait_unknown": session.Wait{
			ID: "w4-6", Kind: session.WaitUnknown, Call: "c4-6", Tool: "append_line", Arguments: raw(`{}`), Digest: prev,
			Text: "Did it happen?", OpenedAt: at, Deadline: deadline(session.ExpireFail, ""),
		},
	}
}

var votes = []session.Vote{
	{Who: "bob", When: at, From: "cli", Reason: "too much", Digest: prev}, {Who: "ana", When: at, From: "https://app.example.org", Approved: true, Digest: prev},
}

func answers() map[string]any {
	answer := func(wait string, kind session.AnswerKind, change func(*session.Answer)) session.Answer {
		a := session.Answer{Wait: wait, Kind: kind, ToolCallID: "c" + wait[1:], Who: "ana", When: at, From: "https://app.example.org"}
		change(&a)
		return a
	}
	approval := func(approved bool, change func(*session.Answer)) session.Answer {
		return answer("w4-1", session.AnswerApproval, func(a *session.Answer) { a.ApprovalID, a.Approved = "bm9uY2U", &approved; change(a) })
	}
	reply := func(change func(*session.Answer)) session.Answer {
		return answer("w4-3", session.AnswerReply, func(a *session.Answer) { a.QuestionID = "color"; change(a) })
	}
	verdict := func(v session.Verdict, change func(*session.Answer)) session.Answer {
		return answer("w4-6", session.AnswerVerdict, func(a *session.Answer) { a.Verdict = v; change(a) })
	}
	expiry := func(o session.DeadlineOutcome, value string) session.Answer {
		return answer("w4-1", session.AnswerExpiry, func(a *session.Answer) {
			a.Outcome, a.Who, a.From = o, "deadline", "sweep"
			if value != "" {
				a.Result = raw(value)
			}
		})
	}
	all := map[string]any{
		"answer_approved": approval(true, func(a *session.Answer) { a.Digest = prev }),
		"answer_approved_edited": approval(true, func(a *session.Answer) {
			a.Reason, a.EditedInput, a.Digest = "half", raw(`{"order":"A-3","amount":250}`), token
		}),
		"answer_voted":     approval(true, func(a *session.Answer) { a.Digest, a.Votes = prev, votes }),
		"answer_escalated": approval(true, func(a *session.Answer) { a.Digest, a.Who, a.Escalated = prev, "eve", true }),
		"answer_standing": approval(true, func(a *session.Answer) {
			a.Digest, a.For = prev, "ben"
			a.Standing = &session.Standing{For: "2h", Until: later, Conditions: []session.Condition{
				{Field: "/order", Equal: raw(`"A-3"`)}, {Field: "/note", Prefix: ptr("re: ")}, {Field: "/amount", AtMost: raw(`500`)},
			}}
		}),
		"answer_denied":        approval(false, func(a *session.Answer) { a.Reason = "too much" }),
		"answer_dismissed":     answer("w4-1", session.AnswerDismissal, func(a *session.Answer) { a.Reason, a.For = "not needed", "ben" }),
		"answer_client_error":  answer("w4-2", session.AnswerClientTool, func(a *session.Answer) { a.Error = "no GPS" }),
		"answer_client_result": answer("w4-2", session.AnswerClientTool, func(a *session.Answer) { a.Result = raw(`{"lat":52.5}`) }),
		"answer_choice":        reply(func(a *session.Answer) { a.Selected = []string{"r"} }),
		"answer_choice_none":   reply(func(a *session.Answer) { a.Selected = []string{} }),
		"answer_text":          reply(func(a *session.Answer) { a.Text = ptr("Ada & <Co>") }),
		"answer_text_empty":    reply(func(a *session.Answer) { a.Text = ptr("") }),
		"answer_message_parts": answer("w4-4", session.AnswerMessage, func(a *session.Answer) {
			a.ToolCallID, a.Message = "", []llm.Part{
				llm.Text("this one"),
				{Kind: llm.PartImage, File: &llm.FileRef{MediaType: "image/png", URL: "https://example.org/a.png"}},
				{Kind: llm.PartFile, File: &llm.FileRef{MediaType: "text/csv", Name: "a.csv", Data: []byte("a,b\n")}},
			}
		}),
		"answer_message":        answer("w4-4", session.AnswerMessage, func(a *session.Answer) { a.ToolCallID, a.Message = "", llm.TextParts("eu-central-1") }),
		"answer_child":          answer("w4-5", session.AnswerChild, func(a *session.Answer) { a.Result, a.Status = raw(`"done"`), session.StatusCompleted }),
		"answer_child_failed":   answer("w4-5", session.AnswerChild, func(a *session.Answer) { a.Error, a.Status = "limit_reached", session.StatusFailed }),
		"answer_child_paused":   answer("w4-5", session.AnswerChild, func(a *session.Answer) { a.Status = session.StatusSuspended }),
		"answer_happened":       verdict(session.VerdictHappened, func(a *session.Answer) { a.Result = raw(`{"id":"r-1"}`) }),
		"answer_not_happened":   verdict(session.VerdictNotHappened, func(a *session.Answer) { a.Reason = "not in the books" }),
		"answer_expiry_deny":    expiry(session.ExpireDeny, ""),
		"answer_expiry_default": expiry(session.ExpireDefault, `false`),
		"answer_expiry_fail":    expiry(session.ExpireFail, ""),
		"answer_expiry_reask":   expiry(session.ExpireReask, ""),
	}
	// Each of these is a result.
	for name, value := range map[string]string{"null": `null`, "false": `false`, "zero": `0`, "empty_string": `""`, "empty_list": `[]`} {
		all["answer_client_result_"+name] = answer("w4-2", session.AnswerClientTool, func(a *session.Answer) { a.Result = raw(value) })
	}
	return all
}

func records() map[string]any {
	head := journal.Head{
		Key: session.Key{Tenant: "default", ID: "s1"}, Status: session.StatusRunning, Agent: "support", Title: "Refund A-1", Task: 1, StatusSeq: 1,
		Due: new(later), CreatedAt: at, UpdatedAt: at,
	}
	leased, signalled, child, tombstone := head, head, head, head
	leased.Lease = journal.Lease{Owner: "pid-4711@boot-1", Seq: 7, N: 2, Until: later}
	leased.MailCount, leased.Resent, leased.ResentAfter = 3, 2, 6
	signalled.Signal = signal(journal.SignalCancel)
	child.Parent = &session.Parent{Session: "s0", Call: "c2-1", Wait: "w2-1", Root: "s0", Depth: 1}
	tombstone.Status, tombstone.Deleted, tombstone.Due = session.StatusCancelled, true, nil

	run := session.Run{ID: 1, Task: 1, Trigger: session.TriggerStart, Status: session.StatusRunning, StartedAt: at, FirstEntry: 1}
	ended := session.Run{
		ID: 2, Task: 1, Trigger: session.TriggerSubmit, Status: session.StatusCompleted, StartedAt: at, EndedAt: new(later), FirstEntry: 5, LastEntry: 9, PreviousRun: 1,
		Usage: llm.Usage{Input: 10, Output: 5},
	}
	wait, _ := waits()["wait_approval"].(session.Wait)
	ruled, _ := waits()["wait_approval_ruled"].(session.Wait)
	approved, _ := answers()["answer_approved"].(session.Answer)
	standing, _ := answers()["answer_standing"].(session.Answer)
	escalated, _ := waits()["wait_approval_escalating"].(session.Wait)
	to := escalated.Deadline.Escalate
	escalated.Escalate(later)
	permitted := wait
	permitted.Needs = []string{session.NeedsStanding}
	expired, _ := answers()["answer_expiry_deny"].(session.Answer)
	tool := func(state journal.ToolState, change func(*journal.ToolRecord)) journal.ToolRecord {
		r := journal.ToolRecord{Call: "c4-1", State: state, Attempt: "a2", At: at}
		change(&r)
		return r
	}
	memo := map[string]json.RawMessage{"once:pay": raw(`{"id":"r-1"}`), "node": raw(`null`)}
	all := map[string]any{
		"head": head, "head_leased": leased, "head_signalled": signalled, "head_child": child, "head_tombstone": tombstone,
		"run": run, "run_ended": ended,
		"waitrecord_open":     journal.WaitRecord{Wait: wait, State: session.WaitOpen, Agent: "support", Due: new(later)},
		"waitrecord_answered": journal.WaitRecord{Wait: wait, State: session.WaitAnswered, Answer: &approved, Held: true, Agent: "support", Due: new(later)},
		"waitrecord_voted":    journal.WaitRecord{Wait: ruled, State: session.WaitOpen, Votes: votes, Agent: "support", Due: new(later)},
		"waitrecord_expired":  journal.WaitRecord{Wait: wait, State: session.WaitExpired, Answer: &expired, Agent: "support", Due: new(later)},
		"waitrecord_taken":    journal.WaitRecord{Wait: wait, State: session.WaitTaken, Answer: &approved, Audit: journal.AuditTip{Count: 2, Hash: prev}, Agent: "support", TakenBy: 5},
		"waitrecord_acts": journal.WaitRecord{Wait: wait, State: session.WaitOpen, Agent: "support", Due: new(later), Acts: []session.WaitAct{
			{Kind: session.ActExtended, Who: "ana", At: at, From: "cli", Reason: "away", Deadline: new(later)},
			{Kind: session.ActDelegated, Who: "ana", At: at, From: "cli", To: "ben"},
		}},
		"waitrecord_stood_in": journal.WaitRecord{Wait: wait, State: session.WaitOpen, Agent: "support", Due: new(later), Acts: []session.WaitAct{
			{Kind: session.ActStoodIn, Who: "ben", At: at, From: "cli", Reason: "on holiday", For: "ana", Until: new(later)},
		}},
		"waitrecord_escalated": journal.WaitRecord{Wait: escalated, State: session.WaitOpen, Agent: "support", Due: new(escalated.Deadline.At), Acts: []session.WaitAct{
			{Kind: session.ActReminded, Who: "deadline", At: at, From: "sweep"},
			{Kind: session.ActEscalated, Who: "deadline", At: later, From: "sweep", Deadline: new(escalated.Deadline.At), Escalation: to},
		}},
		"waitrecord_revoked": journal.WaitRecord{Wait: permitted, State: session.WaitTaken, Answer: &standing, Agent: "support", TakenBy: 5, Revoked: &session.Revocation{
			Who: "bob", At: later, From: "cli", Reason: "too much",
		}},
		"waitrecord_closed": journal.WaitRecord{Wait: wait, State: session.WaitClosed, TakenBy: 5},
		"tool_started":      tool(journal.ToolStarted, func(*journal.ToolRecord) {}),
		"tool_finished": tool(journal.ToolFinished, func(r *journal.ToolRecord) {
			r.Memo, r.Result = memo, result("c4-1", "refund", llm.ResultSuccess, `{"id":"r-1"}`).ToolResult
			r.StateOps = []session.StateOp{{Op: session.StateAppend, Key: "notes", Value: raw(`1`)}}
			r.Events = []session.CustomEvent{{Call: "c4-1", Name: "paid"}}
			r.Ran = &journal.ToolRun{Call: "c4-1", At: at, Millis: 250, Digest: prev}
		}),
		"tool_asking": tool(journal.ToolAsking, func(r *journal.ToolRecord) { r.Memo = memo }),
		"tool_closed": tool(journal.ToolClosed, func(*journal.ToolRecord) {}),
		"tool_memo":   tool(journal.ToolMemo, func(r *journal.ToolRecord) { r.Memo, r.Attempt = memo, "" }),
		"mail":        journal.Mail{ID: "01JNM5Z7", Message: llm.User("and hurry"), Who: "ana", At: at, From: "cli"},
		"audit":       journal.Audit{ID: "0000000004-01-0002", Wait: "w4-1", N: 2, Kind: journal.AuditRefused, Who: "bob", At: at, From: "cli", Data: raw(`{"code":"not_allowed"}`), Prev: prev},
		"audit_full":  journal.Audit{ID: "0000000004-01-0100", Wait: "w4-1", N: 100, Kind: journal.AuditFull, Who: "bob", At: at, From: "cli", Prev: prev},
		"notice": journal.Notice{ID: journal.EntryNotice(4), Type: journal.NoticeSuspended, At: at, Agent: "support", Seq: 4, Waits: []journal.NoticeWait{
			{ID: "w4-1", Kind: session.WaitApproval, Tool: "refund", Who: wait.Who, Deadline: wait.Deadline},
		}, Sends: []journal.NoticeSend{{Channel: "webhook", State: journal.NoticePending}}, Due: new(later)},
		"notice_sent": journal.Notice{ID: journal.DecisionNotice("w4-1"), Type: journal.NoticeAnswered, At: at, Agent: "support", Seq: 4, Waits: []journal.NoticeWait{
			{ID: "w4-1", Kind: session.WaitApproval, Tool: "refund", Decision: journal.DecisionApproved, By: "ana", When: new(at)},
		}, Sends: []journal.NoticeSend{
			{Channel: "webhook", State: journal.NoticeSent, Tries: 2, TriedAt: new(later)},
			{Channel: "slack", State: journal.NoticeGivenUp, Tries: 10, TriedAt: new(later), Error: "the server answered 500"},
		}},
		"notice_failed":      journal.Notice{ID: journal.EntryNotice(9), Type: journal.NoticeFailed, At: at, Seq: 9, Failure: "limit_reached", Sends: []journal.NoticeSend{{Channel: "slack", State: journal.NoticeSent, Tries: 1, Reference: raw(`{"ts":"1"}`)}}},
		"waitrecord_noticed": journal.WaitRecord{Wait: wait, State: session.WaitAnswered, Answer: &approved, Noticed: true, Agent: "support"},
		"notice_delegated": journal.Notice{ID: journal.ActNotice("w4-1", 1), Type: journal.NoticeDelegated, At: at, Agent: "support", Seq: 4, Waits: []journal.NoticeWait{
			{ID: "w4-1", Kind: session.WaitApproval, Who: []string{"ada", "ben"}, By: "ada", When: new(at), To: "ben"},
		}, Sends: []journal.NoticeSend{{Channel: "slack", State: journal.NoticePending}}, Due: new(later)},
		"waitrecord_acts_noticed": journal.WaitRecord{Wait: wait, State: session.WaitOpen, ActsNoticed: 1, Agent: "support", Acts: []session.WaitAct{
			{Kind: session.ActDelegated, Who: "ada", From: "cli", At: at, To: "ben"},
		}},
		"idempotency": journal.Idempotency{Key: "k-1", Digest: prev, Session: "s1", Seq: 1, Answer: raw(`{"session":"s1"}`), ExpiresAt: later},
		"wake_step":   journal.NewWake(session.Key{Tenant: "default", ID: "s1"}, 2, journal.WakeStep),
		"wake_resume": journal.NewWake(session.Key{Tenant: "acme", ID: "s2"}, 10_000_000_000, journal.WakeResume),
	}
	for i, trigger := range []session.Trigger{session.TriggerResume, session.TriggerRetry, session.TriggerChild, session.TriggerExpiry, session.TriggerMessage} {
		r := run
		r.ID, r.Trigger, r.PreviousRun = int64(i+3), trigger, int64(i+2)
		all["run_"+string(trigger)] = r
	}
	return all
}
