package session

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Session is a journal folded up to its newest entry. It is made by the engine
// and by nothing else.
type Session struct {
	Key Key
	// Version is the seq of the newest entry, 0 for a session that does not exist.
	Version int64
	// Newest holds what later decisions need of the newest entry.
	Newest Newest
	// CheckpointSeq and CheckpointToken are those of the newest entry that is a checkpoint.
	CheckpointSeq   int64
	CheckpointToken string

	Status  Status
	Task    int64
	Run     int64
	Step    int64
	Rules   Rules
	RulesAt int64
	Parent  *Parent
	// Metadata that the newest start with some gave; the engine does not read it.
	Metadata map[string]string `json:",omitempty"`
	// Requesters are who asked for a task of the session, or told it something since. They follow from the journal.
	Requesters []string `json:"-"`

	// Used is what the current task has used of its limits.
	Used Amounts
	// Counts are what else its limits count.
	Counts Counts `json:"-"`
	// TaskUsage of the current task.
	TaskUsage llm.Usage
	// RunRecord of the current run, as of the newest entry.
	RunRecord Run
	// RunUsed is what the current run has used of the limits.
	RunUsed Amounts `json:"-"`

	Messages []llm.Message
	// MessagesSize is about how many bytes the messages take in memory, with those held.
	MessagesSize int `json:"-"`
	State        State
	Children     []Child

	// Calls of the newest reply that have no result yet, in order. ReplySeq is the
	// seq of the entry that holds that reply.
	Calls    []Call
	ReplySeq int64
	// Waits the journal opened and has not taken in.
	Waits []Wait
	// Permissions that people gave in this session and that no later entry has made void, oldest first.
	// They follow from the journal; whether one is over or revoked does not.
	Permissions []Permission `json:"-"`
	// Held messages came while calls were open; they follow when the last result is in.
	Held []llm.Message
	// Mail ids taken in.
	Mail map[string]bool
	// Delays holds, for each delayed entry of the task, how many messages there
	// were; Failures counts those since the last reply.
	Delays   []int
	Failures int

	// InputExpired is the expiry of an input wait without an answer; the next step handles it.
	InputExpired *Answer

	Output  json.RawMessage
	Failure *Failure
}

// Newest is what is kept of the newest entry.
type Newest struct {
	Kind       Kind
	At         time.Time
	Attempt    Attempt
	KeepsLease bool
	Hash       string
	Token      string
	Until      *time.Time
	// Stopped is who stopped the task with it; nil of any other entry.
	Stopped *StoppedBy `json:"-"`
}

// Call is one call of a reply that has no result yet.
type Call struct {
	ID string
	// First is the id that the call had first, where going back has given it another one; else it
	// is empty. It follows from the journal.
	First      string `json:"-"`
	ProviderID string
	Name       string
	Arguments  json.RawMessage
	// Answers taken in for this call, oldest first.
	Answers []Answer
	// Waits of this call that were answered or are open, by id.
	Waits []Wait
}

// FirstID returns the id that the call had first. A call that is asked anew is the same one.
func (c Call) FirstID() string {
	if c.First != "" {
		return c.First
	}
	return c.ID
}

// Size returns about how many bytes the session takes in memory.
func (s *Session) Size() int {
	const bare = 4 << 10 // a session of which nothing has been said
	return bare + s.MessagesSize + s.State.Size()
}

// Left returns what is left of the task's limits.
func (s *Session) Left() Limits { return s.Rules.Limits.Left(s.Used) }

// Checkpoint returns the newest place to come back to: that of the newest entry
// that is one (see [journal.Entry.IsCheckpoint]).
func (s *Session) Checkpoint() Checkpoint {
	return Checkpoint{Session: s.Key.ID, Seq: s.CheckpointSeq, Token: s.CheckpointToken}
}

// Next returns the seq of the entry to be written next.
func (s *Session) Next() int64 { return s.Version + 1 }

// Attempt says which try of which worker wrote an entry.
type Attempt struct {
	// ID is random for each claim or call of a verb: an entry that is found to
	// carry our own id is a write of ours whose answer was lost.
	ID string `json:"id"`
	// N counts the claims of this seq, from 1; 0 for entries written by verbs.
	N int64 `json:"n,omitempty"`
	// For is the seq of the message the writer worked for; 0 for verbs.
	For int64 `json:"for,omitempty"`
	// Message distinguishes that message from others for the same seq: the end of the queue's id
	// for it, the same at every receipt. Empty where it was not known.
	Message string `json:"message,omitempty"`
}

// Parent names the session and wait a child answers to.
type Parent struct {
	Session string `json:"session"`
	Call    string `json:"call,omitempty"`
	Wait    string `json:"wait,omitempty"`
	Root    string `json:"root"`
	Depth   int    `json:"depth"`
}

// Fork says from which checkpoint of which session a fork began.
type Fork struct {
	Session    string `json:"session"`
	Checkpoint string `json:"checkpointId"`
}

// Child is a sub-agent's session, as recorded in its parent.
type Child struct {
	Name    string `json:"name"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Call    string `json:"call,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Status  Status `json:"status"`
}

// CustomEvent is an event that a tool sent to the clients that follow the session.
type CustomEvent struct {
	Call string          `json:"call,omitempty"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// EventApprovalMismatch names the event of an entry that gives up a call because its arguments are not
// those that were shown to somebody. Its data names the call and the tool; unlike the events of tools
// it belongs to no call.
const EventApprovalMismatch = "approval_mismatch"

// MismatchEvent returns the event for a call.
func MismatchEvent(c Call) CustomEvent {
	data, _ := json.Marshal(struct { // of two texts
		Call string `json:"call"`
		Tool string `json:"tool"`
	}{c.ID, c.Name})
	return CustomEvent{Name: EventApprovalMismatch, Data: data}
}

// FailureAborted is the type of the failure of a task that was aborted, which is for good.
const FailureAborted = "aborted"

// Aborted reports whether f says that a task was aborted. No failure does not.
func (f *Failure) Aborted() bool { return f != nil && f.Type == FailureAborted }

// Failure is a recorded failure. It reads the same on the first run and on
// every later one: it never carries a Go error.
type Failure struct {
	// Type is a stable code: limit_reached, model_rate_limited, planner_failed, …
	Type    string `json:"type"`
	Message string `json:"message"`
	// Retryable says that a retry may go better.
	Retryable bool            `json:"retryable,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}
