package report_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/goldentest"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

var (
	at    = time.Date(2026, 3, 4, 5, 6, 7, 890123456, time.UTC)
	later = at.Add(90 * time.Minute)
	prev  = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
)

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// TestGolden: what commands print as JSON, and leave in the pause file, keeps its form.
func TestGolden(t *testing.T) {
	t.Parallel()
	const dir = "testdata/v1"
	for name, value := range manifests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goldentest.JSON(t, filepath.Join(dir, name+".json"), value)
		})
	}
	goldentest.Complete(t, dir, ".json", manifests())
	var all bytes.Buffer
	require.NoError(t, json.NewEncoder(&all).Encode(manifests()))
	for _, o := range []session.Outcome{
		session.OutcomeCompleted, session.OutcomePaused, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeInterrupted, session.OutcomeRunning, session.OutcomeError,
	} {
		require.Contains(t, all.String(), `"outcome":"`+string(o)+`"`)
	}
	for _, p := range []session.PauseType{
		session.PauseToolApproval, session.PauseInput, session.PauseClientTool, session.PauseQuestion, session.PauseChildren, session.PauseUnknownOutcome, session.PauseMixed,
	} {
		require.Contains(t, all.String(), `"type":"`+string(p)+`"`)
	}
}

func manifests() map[string]any {
	base := func(outcome session.Outcome) report.Manifest {
		return report.Manifest{Outcome: outcome, SessionID: "s1", Agent: "support", CheckpointID: "czEuNC50b2tlbg", StepsTaken: 3}
	}
	item := func(kind session.WaitKind) report.PendingItem {
		return report.PendingItem{ID: "c4-1", Kind: kind, WaitID: "w4-1", Name: "refund"}
	}
	pause := func(typ session.PauseType, calls, others []report.PendingItem) report.Manifest {
		m := base(session.OutcomePaused)
		m.AgentMessage, m.ResumeHint = "I need your yes.", "adjourn resume s1 --approve c4-1"
		m.PauseReason = &report.PauseReason{Type: typ, PendingToolCalls: calls, Pending: others}
		return m
	}
	approval := report.PendingItem{
		ID: "c4-1", Kind: session.WaitApproval, WaitID: "w4-1", ApprovalID: "bm9uY2U", Name: "refund", Arguments: raw(`{"amount":500}`), Digest: prev,
		Deadline: new(later), OnDeadline: session.ExpireDeny, Session: "s1-agent-clerk",
	}
	question := item(session.WaitQuestion)
	question.Question = &session.Question{ID: "color", Kind: session.QuestionChoice, Text: "Which?", Choices: []session.Choice{{ID: "r", Label: "red"}}}
	guarded := approval
	guarded.Who = []string{"ada", "bob"}
	byItself := approval
	byItself.OnDeadline, byItself.DeadlineValue = session.ExpireDefault, raw(`true`)
	input := report.PendingItem{ID: "w4-4", Kind: session.WaitInput, WaitID: "w4-4", Text: "Which region?"}

	completed, failed, refused := base(session.OutcomeCompleted), base(session.OutcomeFailed), report.Manifest{Outcome: session.OutcomeError}
	completed.FinalMessage, completed.Output = "All refunded.", raw(`{"total":620.50}`)
	completed.Usage = &report.ManifestUsage{InputTokens: 1200, CacheReadTokens: 1000, CacheWriteTokens: 100, OutputTokens: 300, ReasoningTokens: 200, TotalTokens: 1500}
	failed.Error = &report.ManifestError{Code: "limit_reached", Message: "The task used up its limit of steps.", Data: raw(`{"limit":"steps"}`)}
	refused.Error = &report.ManifestError{Code: "unknown_agent", Message: "no agent is called x"}
	forked := base(session.OutcomeRunning)
	forked.Rules = &session.TaskRules{Limits: session.AskedLimits{Steps: 20}, Model: "openai:gpt-5-mini", AllowedTools: []string{"refund"}, HoldBatch: new(true), PauseOnApproval: new(false)}
	forked.ForkedFrom = &session.Fork{Session: "s0", Checkpoint: "czAuMy50b2tlbg"}
	list := func(items ...report.PendingItem) []report.PendingItem { return items }
	return map[string]any{
		"manifest_completed": completed, "manifest_failed": failed, "manifest_error": refused,
		"manifest_cancelled": base(session.OutcomeCancelled), "manifest_interrupted": base(session.OutcomeInterrupted), "manifest_running": base(session.OutcomeRunning), "manifest_fork_with_rules": forked,
		"manifest_paused_tool_approval_required": pause(session.PauseToolApproval, list(approval), nil),
		"manifest_paused_input_required":         pause(session.PauseInput, nil, list(input)),
		"manifest_paused_client_tool_required":   pause(session.PauseClientTool, list(item(session.WaitClientTool)), nil),
		"manifest_paused_question":               pause(session.PauseQuestion, nil, list(question)),
		"manifest_paused_children":               pause(session.PauseChildren, nil, list(item(session.WaitChild))),
		"manifest_paused_unknown_outcome":        pause(session.PauseUnknownOutcome, list(item(session.WaitUnknown)), nil),
		"manifest_paused_who":                    pause(session.PauseToolApproval, list(guarded), nil),
		"manifest_paused_default":                pause(session.PauseToolApproval, list(byItself), nil),
		"manifest_paused_mixed":                  pause(session.PauseMixed, list(approval), list(question, input)),
	}
}

// TestManifest: a session holds all that a manifest says.
func TestManifest(t *testing.T) {
	t.Parallel()
	approval := client.Wait{WaitID: "w2-1", Kind: session.WaitApproval, ApprovalID: "n", CallID: "c2-1", Tool: "deploy", Arguments: json.RawMessage(`{}`), Digest: "d"}
	question := client.Wait{WaitID: "w2-2", Kind: session.WaitQuestion, CallID: "c2-2", Question: &session.Question{ID: "q", Text: "Which?"}, Deadline: &session.Deadline{At: at, Outcome: session.ExpireDeny}}
	usage := client.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, CacheReadTokens: 4, CacheWriteTokens: 2, ReasoningTokens: 1}
	s := client.Session{
		ID: "s", Agent: "a", Status: session.StatusSuspended, Outcome: session.OutcomePaused, CheckpointID: "cp", Step: 3, Text: "hm", Output: json.RawMessage(`1`),
		Usage: usage, Pause: &client.Pause{Type: session.PauseMixed, Pending: []client.Wait{approval, question}},
	}
	want := report.Manifest{
		Outcome: session.OutcomePaused, SessionID: "s", Agent: "a", CheckpointID: "cp", AgentMessage: "hm", Output: json.RawMessage(`1`), StepsTaken: 3,
		Usage: &report.ManifestUsage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15, CacheReadTokens: 4, CacheWriteTokens: 2, ReasoningTokens: 1},
		PauseReason: &report.PauseReason{
			Type:             session.PauseMixed,
			PendingToolCalls: []report.PendingItem{{ID: "c2-1", Kind: session.WaitApproval, WaitID: "w2-1", ApprovalID: "n", Name: "deploy", Arguments: json.RawMessage(`{}`), Digest: "d"}},
			Pending:          []report.PendingItem{{ID: "c2-2", Kind: session.WaitQuestion, WaitID: "w2-2", Question: question.Question, Deadline: new(at), OnDeadline: session.ExpireDeny}},
		},
	}
	require.Equal(t, want, report.NewManifest(report.View{Session: s}))

	s.Pause, want.PauseReason = nil, nil
	for _, status := range session.Statuses() {
		s.Status, want.AgentMessage, want.FinalMessage = status, "", ""
		switch status {
		case session.StatusRunning:
		case session.StatusCompleted, session.StatusCancelled:
			want.FinalMessage = "hm"
		case session.StatusSuspended, session.StatusInterrupted, session.StatusFailed:
			want.AgentMessage = "hm"
		}
		require.Equal(t, want, report.NewManifest(report.View{Session: s}), status)
	}
	s.Failure = &client.Failure{Code: "planner_failed", Message: "no plan", Retryable: true, Data: json.RawMessage(`{}`)}
	require.Equal(t, &report.ManifestError{Code: "planner_failed", Message: "no plan", Data: json.RawMessage(`{}`)}, report.NewManifest(report.View{Session: s}).Error)
}

func TestPendingItem(t *testing.T) {
	t.Parallel()
	item := func(w client.Wait) report.PendingItem {
		m := report.NewManifest(report.View{Session: client.Session{Pause: &client.Pause{Pending: []client.Wait{w}}}})
		return slices.Concat(m.PauseReason.PendingToolCalls, m.PauseReason.Pending)[0]
	}
	approval := client.Wait{
		WaitID: "w4-1", Kind: session.WaitApproval, ApprovalID: "bm9uY2U", CallID: "c4-1", Tool: "refund", Arguments: raw(`{"amount":500}`), Digest: prev,
		Deadline: &session.Deadline{At: later, Outcome: session.ExpireDefault, Value: raw(`false`)}, Who: []string{"ana"},
	}
	require.Equal(t, report.PendingItem{
		ID: "c4-1", Kind: session.WaitApproval, WaitID: "w4-1", ApprovalID: "bm9uY2U", Name: "refund", Arguments: approval.Arguments, Digest: prev,
		Deadline: &later, OnDeadline: session.ExpireDefault, DeadlineValue: raw(`false`), Who: approval.Who,
	}, item(approval))
	votes := []session.Vote{{Who: "bob", Approved: true, When: later, From: "cli", Digest: prev}}
	require.Equal(t, report.PendingItem{
		ID: "c4-1", Kind: session.WaitApproval, WaitID: "w4-1", Roles: []string{"finance"}, Need: 2, Noes: 3, NotRequester: true, Assurance: session.AssuranceSignedIn,
		Requesters: []string{"ana"}, Votes: votes, VotesMissing: 1, MayVote: []string{"cyd"},
	}, item(client.Wait{
		WaitID: "w4-1", Kind: session.WaitApproval, CallID: "c4-1", Requesters: []string{"ana"}, Votes: votes, VotesMissing: 1, MayVote: []string{"cyd"},
		Rule: &session.AnswerRule{Roles: []string{"finance"}, Need: 2, Noes: 3, NotRequester: true, Assurance: session.AssuranceSignedIn},
	}))
	require.Equal(t, report.PendingItem{ID: "w4-4", Kind: session.WaitInput, WaitID: "w4-4", Text: "Which?"},
		item(client.Wait{WaitID: "w4-4", Kind: session.WaitInput, Text: "Which?"}))
}
