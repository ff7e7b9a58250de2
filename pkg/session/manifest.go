package session

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Outcome says how a command that drove a session ended.
type Outcome string

// The outcomes of a manifest.
const (
	OutcomeCompleted   Outcome = "completed"
	OutcomePaused      Outcome = "paused"
	OutcomeFailed      Outcome = "failed"
	OutcomeCancelled   Outcome = "cancelled"
	OutcomeInterrupted Outcome = "interrupted"
	OutcomeRunning     Outcome = "running"
	// OutcomeError is a command that was refused: Error says why.
	OutcomeError Outcome = "error"
)

// Manifest is what a command prints of a session: the form of the RFC "Async
// Agent Pause and Resume", in its snake_case.
type Manifest struct {
	Outcome      Outcome         `json:"outcome"`
	SessionID    string          `json:"session_id,omitempty"`
	Agent        string          `json:"agent,omitempty"`
	CheckpointID string          `json:"checkpoint_id,omitempty"`
	PauseReason  *PauseReason    `json:"pause_reason,omitempty"`
	AgentMessage string          `json:"agent_message,omitempty"`
	FinalMessage string          `json:"final_message,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	// ResumeHint is a command that works when pasted into a shell; a word in capitals
	// stands for what only a person or a client knows, and is refused until it is replaced.
	ResumeHint string         `json:"resume_hint,omitempty"`
	StepsTaken int64          `json:"steps_taken"`
	Usage      *ManifestUsage `json:"usage,omitempty"`
	Error      *ManifestError `json:"error,omitempty"`
}

// PauseType sums up what a paused session waits for.
type PauseType string

// The types of pause.
const (
	PauseToolApproval   PauseType = "tool_approval_required"
	PauseInput          PauseType = "input_required"
	PauseClientTool     PauseType = "client_tool_required"
	PauseQuestion       PauseType = "question"
	PauseChildren       PauseType = "children"
	PauseUnknownOutcome PauseType = "unknown_outcome"
	PauseMixed          PauseType = "mixed"
)

// PauseReason lists what is pending. Items that are tool calls are under
// pending_tool_calls, as the RFC has it; all others under pending. Every item carries its kind.
type PauseReason struct {
	Type             PauseType     `json:"type"`
	PendingToolCalls []PendingItem `json:"pending_tool_calls,omitempty"`
	Pending          []PendingItem `json:"pending,omitempty"`
	// Decided counts the approvals of this pause that are decided already, by somebody or
	// by their deadline. A decision on several is about them too: it names them as they
	// were decided.
	Decided int `json:"decided,omitempty"`
}

// PendingItem is one thing a paused session waits for.
type PendingItem struct {
	// ID is the call's id, as the RFC has it, or the wait's where there is no call.
	// An answer names WaitID.
	ID         string          `json:"id"`
	Kind       WaitKind        `json:"kind"`
	WaitID     string          `json:"wait_id"`
	ApprovalID string          `json:"approval_id,omitempty"`
	Name       string          `json:"name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Digest     string          `json:"arguments_digest,omitempty"`
	Question   *Question       `json:"question,omitempty"`
	Text       string          `json:"text,omitempty"`
	Deadline   *time.Time      `json:"deadline,omitempty"`
	OnDeadline DeadlineOutcome `json:"on_deadline,omitempty"`
	Session    string          `json:"session_id,omitempty"`
	// Who may answer; left out means everyone who may see the session.
	Who []string `json:"who,omitempty"`
}

// NewPendingItem returns an open wait in the words of the manifest.
func NewPendingItem(w Wait) PendingItem {
	item := PendingItem{
		ID: w.Call, Kind: w.Kind, WaitID: w.ID, ApprovalID: w.Nonce, Name: w.Tool, Arguments: w.Arguments,
		Digest: w.Digest, Question: w.Question, Text: w.Text, Session: w.Child, Who: w.Who,
	}
	if item.ID == "" {
		item.ID = w.ID
	}
	if w.Deadline != nil {
		item.Deadline, item.OnDeadline = &w.Deadline.At, w.Deadline.Outcome
	}
	return item
}

// ManifestUsage counts the tokens of the task.
type ManifestUsage struct {
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"`
}

// NewManifestUsage returns usage in the words of the manifest.
func NewManifestUsage(u llm.Usage) *ManifestUsage {
	return &ManifestUsage{
		InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total(),
		CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite, ReasoningTokens: u.Reasoning,
	}
}

// ManifestError is a failure or a refusal with its stable code.
type ManifestError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}
