package client

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// Session says where a session stands.
type Session struct {
	ID     string         `json:"id"`
	Agent  string         `json:"agent"`
	Status session.Status `json:"status"`
	// Outcome is the status for who waits: a suspended session whose answers are
	// all in is running, one that waits for somebody is paused.
	Outcome session.Outcome `json:"outcome"`
	// Title is the beginning of the first message.
	Title string `json:"title,omitempty"`
	Task  int64  `json:"task"`
	Run   int64  `json:"run"`
	// Step counts the planner's replies of the task.
	Step int64 `json:"step"`
	// Version is the number of the newest entry, CheckpointID the newest checkpoint:
	// that entry's, unless it is a reply whose calls are about to run.
	Version      int64  `json:"version"`
	CheckpointID string `json:"checkpointId"`
	// Text is the agent's last message.
	Text string `json:"text,omitempty"`
	// Output of a task with an output schema or a finish tool.
	Output json.RawMessage `json:"output,omitempty"`
	// Pause says what a paused session waits for.
	Pause *Pause `json:"pause,omitempty"`
	// Failure of a session that failed.
	Failure *Failure `json:"failure,omitempty"`
	// Allowed are the verbs that the session takes as it stands; who asks, and with what, may
	// still be refused.
	Allowed []session.Verb `json:"allowed"`
	// Rules are what a caller asked of the task.
	Rules *session.TaskRules `json:"rules,omitempty"`
	// ProgramPolicy is the policy of tools of the program that began the task.
	ProgramPolicy *session.ToolPolicy `json:"programPolicy,omitempty"`
	// Stopped is who stopped the task, of a session that was interrupted, cancelled or aborted.
	Stopped *session.StoppedBy `json:"stopped,omitempty"`
	// Tags of the newest start that gave any, and StartedBy the caller that started the session.
	Tags      []string `json:"tags,omitempty"`
	StartedBy string   `json:"startedBy,omitempty"`
	// Metadata that a start gave.
	Metadata map[string]string `json:"metadata,omitempty"`
	// ForkedFrom says of a fork what it is a copy of.
	ForkedFrom *session.Fork `json:"forkedFrom,omitempty"`
	// Warnings are the limits of which the task has used four fifths.
	Warnings []session.LimitUse `json:"warnings,omitempty"`
	// Usage of the current task.
	Usage Usage `json:"usage"`
	// Parent of a sub-agent's session.
	Parent    *session.Parent `json:"parent,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	// CancelAt is when the task is cancelled, unless it has ended by then; nil is never.
	CancelAt *time.Time `json:"cancelAt,omitempty"`
	// ExpiresAt is when a session that has ended is gone; nil is never.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// CanResume says whether a resume that brings nothing would be taken now, and the
	// session go on; ResumeCode is the code it would be refused with, or says that this
	// program has not the agent; ResumeReason says why in words.
	CanResume    bool   `json:"canResume"`
	ResumeCode   string `json:"resumeCode,omitempty"`
	ResumeReason string `json:"resumeReason"`
	// Halted is the halt for which a session that is running does no step now.
	Halted *Halt `json:"halted,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Pause is what a paused session waits for, in the order it was opened.
type Pause struct {
	Type    session.PauseType `json:"type"`
	Pending []Wait            `json:"pending"`
	// Decided counts the approvals of this pause that are decided already.
	Decided int `json:"decided,omitempty"`
}

// Failure is why a session failed.
type Failure struct {
	// Code is stable: limit_reached, model_rate_limited, planner_failed, …
	Code      string          `json:"code"`
	Message   string          `json:"message"`
	Retryable bool            `json:"retryable,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Usage counts tokens. Input holds its cached part, Output its reasoning.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	TotalTokens      int64 `json:"totalTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"`
}

// Wait is one thing a session waits or waited for, with what became of it. What
// is shown is what an answer counts for: of an approval the tool, the arguments
// and their digest, with the approvalId that has to come back.
type Wait struct {
	SessionID string `json:"sessionId"`
	WaitID    string `json:"waitId"`
	// Kind is left out of a wait that is left out (see [LeftOut]).
	Kind  session.WaitKind  `json:"kind,omitempty"`
	State session.WaitState `json:"state"`
	// Agent of the session, where known.
	Agent string `json:"agent,omitempty"`

	CallID     string          `json:"callId,omitempty"`
	ApprovalID string          `json:"approvalId,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	// Digest of the arguments.
	Digest string `json:"digest,omitempty"`
	// Preview is what the tool shows of the call. Claim is what the agent said when it proposed it:
	// text, not to be rendered as anything else. ShownDigest is the digest of both.
	Preview     *session.Preview  `json:"preview,omitempty"`
	Claim       string            `json:"claim,omitempty"`
	ShownDigest string            `json:"shownDigest,omitempty"`
	Question    *session.Question `json:"question,omitempty"`
	Text        string            `json:"text,omitempty"`
	// ChildSessionID is the sub-agent's session waited for.
	ChildSessionID string `json:"childSessionId,omitempty"`

	OpenedAt time.Time         `json:"openedAt"`
	Deadline *session.Deadline `json:"deadline,omitempty"`
	// Who may answer; left out, without roles in the rule, means everyone who may see the session.
	Who []string `json:"who,omitempty"`
	// Rule says who else may answer, and how many must. Requesters asked for the task, and may not
	// answer where the rule says so.
	Rule       *session.AnswerRule `json:"rule,omitempty"`
	Requesters []string            `json:"requesters,omitempty"`
	// Votes of an approval that needs several people. Of one that is open, VotesMissing is how many
	// more must approve, and MayVote are those by name who have not voted and may; left out where
	// roles, or everybody, may.
	Votes        []session.Vote `json:"votes,omitempty"`
	VotesMissing int            `json:"votesMissing,omitempty"`
	MayVote      []string       `json:"mayVote,omitzero"`

	Policy string          `json:"policy,omitempty"`
	Origin *session.Origin `json:"origin,omitempty"`

	// Answer once there is one; Held says that it was only stored.
	Answer *session.Answer `json:"answer,omitempty"`
	Held   bool            `json:"held,omitempty"`
	// Acts are what people did to it without deciding it: Deadline and Who are those that count now.
	Acts []session.WaitAct `json:"acts,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent. An approval whose
	// arguments are in this list was not shown: it is not to be approved by what is.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}
