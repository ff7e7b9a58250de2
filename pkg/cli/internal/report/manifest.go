package report

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Manifest is what a command prints of a session: the form of the RFC "Async
// Agent Pause and Resume", in its snake_case.
type Manifest struct {
	Outcome      session.Outcome `json:"outcome"`
	SessionID    string          `json:"session_id,omitempty"`
	Agent        string          `json:"agent,omitempty"`
	CheckpointID string          `json:"checkpoint_id,omitempty"`
	PauseReason  *PauseReason    `json:"pause_reason,omitempty"`
	AgentMessage string          `json:"agent_message,omitempty"`
	FinalMessage string          `json:"final_message,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	// ResumeHint is a command that works when pasted into a shell; a word in capitals
	// stands for what only a person or a client knows, and is refused until it is replaced.
	ResumeHint string `json:"resume_hint,omitempty"`
	// Allowed are the verbs that the session takes as it stands.
	Allowed []session.Verb `json:"allowed,omitempty"`
	// Rules are what a caller asked of the task, and ForkedFrom says of a fork what it is a copy of,
	// as the API has them.
	Rules      *session.TaskRules `json:"rules,omitempty"`
	ForkedFrom *session.Fork      `json:"forked_from,omitempty"`
	// Stopped is who stopped the task, as the API has it.
	Stopped    *session.StoppedBy `json:"stopped,omitempty"`
	StepsTaken int64              `json:"steps_taken"`
	Usage      *ManifestUsage     `json:"usage,omitempty"`
	Error      *ManifestError     `json:"error,omitempty"`
}

// PauseReason lists what is pending. Items that are tool calls are under
// pending_tool_calls, as the RFC has it; all others under pending. Every item carries its kind.
type PauseReason struct {
	Type             session.PauseType `json:"type"`
	PendingToolCalls []PendingItem     `json:"pending_tool_calls,omitempty"`
	Pending          []PendingItem     `json:"pending,omitempty"`
	// Decided counts the approvals of this pause that are decided already, by somebody or
	// by their deadline. A decision on several is about them too: it names them as they
	// were decided.
	Decided int `json:"decided,omitempty"`
}

// PendingItem is one thing a paused session waits for.
type PendingItem struct {
	// ID is the call's id, as the RFC has it, or the wait's where there is no call.
	// An answer names WaitID.
	ID         string           `json:"id"`
	Kind       session.WaitKind `json:"kind"`
	WaitID     string           `json:"wait_id"`
	ApprovalID string           `json:"approval_id,omitempty"`
	Name       string           `json:"name,omitempty"`
	Arguments  json.RawMessage  `json:"arguments,omitempty"`
	Digest     string           `json:"arguments_digest,omitempty"`
	// Preview is what the tool shows of the call, as the API has it, and Claim what the agent says of it.
	Preview    *session.Preview        `json:"preview,omitempty"`
	Claim      string                  `json:"claim,omitempty"`
	Question   *session.Question       `json:"question,omitempty"`
	Text       string                  `json:"text,omitempty"`
	Deadline   *time.Time              `json:"deadline,omitempty"`
	OnDeadline session.DeadlineOutcome `json:"on_deadline,omitempty"`
	// DeadlineValue is the answer of the outcome default: of an approval true or false.
	DeadlineValue json.RawMessage `json:"deadline_value,omitempty"`
	// Escalate is what comes at the deadline in place of the outcome, as the API has it.
	Escalate *session.Escalation `json:"escalate,omitempty"`
	Session  string              `json:"session_id,omitempty"`
	// Who may answer; left out means everyone who may see the session.
	Who []string `json:"who,omitempty"`
	// Roles may answer, too. Need people must approve, Noes end it (left out, one), and not who asked
	// for the task where NotRequester says so.
	Roles        []string          `json:"roles,omitempty"`
	Need         int               `json:"need,omitempty"`
	Noes         int               `json:"noes,omitempty"`
	NotRequester bool              `json:"not_requester,omitempty"`
	Requesters   []string          `json:"requesters,omitempty"`
	Assurance    session.Assurance `json:"assurance,omitempty"`
	// Votes there are, how many more must approve, and who is named and may still vote, as the API has
	// them.
	Votes        []session.Vote `json:"votes,omitempty"`
	VotesMissing int            `json:"votes_missing,omitempty"`
	MayVote      []string       `json:"may_vote,omitempty"`
}

// newPendingItem returns an open wait in the words of the manifest.
func newPendingItem(w client.Wait) PendingItem {
	item := PendingItem{
		ID: w.CallID, Kind: w.Kind, WaitID: w.WaitID, ApprovalID: w.ApprovalID, Name: w.Tool, Arguments: w.Arguments,
		Digest: w.Digest, Preview: w.Preview, Claim: w.Claim, Question: w.Question, Text: w.Text, Session: w.ChildSessionID, Who: w.Who,
		Requesters: w.Requesters, Votes: w.Votes, VotesMissing: w.VotesMissing, MayVote: w.MayVote,
	}
	if r := w.Rule; r != nil {
		item.Roles, item.Need, item.Noes, item.NotRequester, item.Assurance = r.Roles, r.Need, r.Noes, r.NotRequester, r.Assurance
	}
	if item.ID == "" {
		item.ID = w.WaitID
	}
	if w.Deadline != nil {
		item.Deadline, item.OnDeadline, item.DeadlineValue = &w.Deadline.At, w.Deadline.Outcome, w.Deadline.Value
		item.Escalate = w.Deadline.Escalate
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

// ManifestError is a failure or a refusal with its stable code.
type ManifestError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
	// Effects that were done, of effects_not_acknowledged, as the API lists them.
	Effects *session.EffectsDone `json:"effects,omitempty"`
}

// NewManifest returns the manifest of a session.
func NewManifest(v View) Manifest {
	s := v.Session
	m := Manifest{
		Outcome: s.Outcome, SessionID: s.ID, Agent: s.Agent, CheckpointID: s.CheckpointID, StepsTaken: s.Step, Output: s.Output,
		ResumeHint: v.ResumeHint, Allowed: s.Allowed, Rules: s.Rules, ForkedFrom: s.ForkedFrom, Stopped: s.Stopped,
		Usage: &ManifestUsage{
			InputTokens: s.Usage.InputTokens, OutputTokens: s.Usage.OutputTokens, TotalTokens: s.Usage.TotalTokens,
			CacheReadTokens: s.Usage.CacheReadTokens, CacheWriteTokens: s.Usage.CacheWriteTokens, ReasoningTokens: s.Usage.ReasoningTokens,
		},
	}
	switch s.Status {
	case session.StatusRunning:
	case session.StatusCompleted, session.StatusCancelled:
		m.FinalMessage = s.Text
	case session.StatusSuspended, session.StatusInterrupted, session.StatusFailed:
		m.AgentMessage = s.Text
	}
	if s.Failure != nil {
		m.Error = &ManifestError{Code: s.Failure.Code, Message: s.Failure.Message, Data: s.Failure.Data}
	}
	if s.Pause == nil {
		return m
	}
	m.PauseReason = &PauseReason{Type: s.Pause.Type, Decided: s.Pause.Decided}
	calls, others := split(s)
	for _, w := range calls {
		m.PauseReason.PendingToolCalls = append(m.PauseReason.PendingToolCalls, newPendingItem(w))
	}
	for _, w := range others {
		m.PauseReason.Pending = append(m.PauseReason.Pending, newPendingItem(w))
	}
	return m
}
