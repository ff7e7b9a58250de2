package session

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Format is the version of the entries this program writes, and the newest it reads.
const Format = 1

// Kind says what an entry records.
type Kind string

// The kinds of entry.
const (
	KindStarted     Kind = "started"
	KindReplied     Kind = "replied"
	KindStepped     Kind = "stepped"
	KindSuspended   Kind = "suspended"
	KindResumed     Kind = "resumed"
	KindDelayed     Kind = "delayed"
	KindInterrupted Kind = "interrupted"
	KindCancelled   Kind = "cancelled"
	KindCompleted   Kind = "completed"
	KindFailed      Kind = "failed"
	KindRestored    Kind = "restored"
	KindForked      Kind = "forked"
	KindDeleted     Kind = "deleted"
)

// Kinds lists every kind of format 1.
func Kinds() []Kind {
	return []Kind{
		KindStarted, KindReplied, KindStepped, KindSuspended, KindResumed, KindDelayed, KindInterrupted,
		KindCancelled, KindCompleted, KindFailed, KindRestored, KindForked, KindDeleted,
	}
}

// Entry is one line of a session's journal, format 1 (design section 3.1).
// It is written once or not at all and never changed.
type Entry struct {
	V    int   `json:"v"`
	Seq  int64 `json:"seq"`
	Kind Kind  `json:"kind"`
	// Needs names what a reader must understand to act on the entry. A program
	// that does not know a word of it refuses the session; fields it does not know
	// it ignores.
	Needs []string  `json:"needs,omitempty"`
	At    time.Time `json:"at"`
	// By is the caller of the verb that wrote it, or "step" for a worker.
	By string `json:"by,omitempty"`
	// From is where the caller of a verb was: an address, a program.
	From    string  `json:"from,omitempty"`
	Attempt Attempt `json:"attempt"`
	// KeepsLease says that the same invocation writes the next entry too, so that
	// this entry does not close its lease (design section 4.1).
	KeepsLease bool `json:"goesOn,omitempty"`
	// Prev is the hash of the entry before: base64url of its SHA-256. Empty on entry 1.
	Prev string `json:"prev,omitempty"`
	// Token is 96 random bits in base64url; with session and seq it makes the checkpoint id.
	Token string `json:"token"`

	Task int64 `json:"task"`
	Run  int64 `json:"run"`
	Step int64 `json:"step"`
	// Trigger is what began the run; set on the first entry of a run.
	Trigger Trigger `json:"trigger,omitempty"`
	// RulesAt is the seq of the entry that holds the task's Rules; that entry has Rules set.
	RulesAt int64  `json:"rulesAt"`
	Rules   *Rules `json:"rules,omitempty"`
	Status  Status `json:"status"`
	// Parent is set on the first entry of a child.
	Parent *Parent `json:"parent,omitempty"`
	// Tags a start gave, by which sessions are found.
	Tags []string `json:"tags,omitempty"`

	Messages []llm.Message `json:"messages,omitempty"`
	StateOps []StateOp     `json:"stateOps,omitempty"`
	Events   []CustomEvent `json:"events,omitempty"`
	// Waits this entry opens; Answers it takes in; Mail ids it takes in.
	Waits   []Wait   `json:"waits,omitempty"`
	Answers []Answer `json:"answers,omitempty"`
	Mail    []string `json:"mail,omitempty"`
	// Signal is the signal this entry obeys: HEAD forgets it, and who sent it
	// when and from where has to be remembered.
	Signal   *Signal `json:"signal,omitempty"`
	Children []Child `json:"children,omitempty"`

	// Used of the task's limits.
	Used  Used      `json:"used,omitzero"`
	Usage llm.Usage `json:"usage,omitzero"`
	// Models are the calls of a model that led to the entry. Calls are the runs of
	// tools that ended with it; the calls a reply asked for are in its Messages.
	Models []ModelCall `json:"models,omitempty"`
	Calls  []ToolRun   `json:"calls,omitempty"`
	// Output of a task with an output schema or a finish tool.
	Output  json.RawMessage `json:"output,omitempty"`
	Failure *Failure        `json:"failure,omitempty"`
	// Until is when a delayed entry's retry is due.
	Until *time.Time `json:"until,omitempty"`
	Base  *Base      `json:"base,omitempty"`

	// Hash of this entry, set by [Encode] and [Decode]; the next entry's Prev.
	Hash string `json:"-"`
}

// Attempt says which try of which worker wrote an entry.
type Attempt struct {
	// ID is random for each claim or call of a verb: an entry that is found to
	// carry our own id is a write of ours whose answer was lost.
	ID string `json:"id"`
	// N counts the claims of this seq, from 1; 0 for entries written by verbs.
	N int64 `json:"n,omitempty"`
	// For is the seq of the message the writer worked for; 0 for verbs.
	For int64 `json:"for,omitempty"`
	// Message tells that message from others for the same seq: the end of what its
	// queue calls it, the same at every receipt. Empty where nobody knew.
	Message string `json:"message,omitempty"`
}

// ForWake returns the attempt of a worker with an id of its own that works for a message.
func ForWake(id string, w Wake) Attempt {
	const enough = 12 // of one session's messages for one seq
	return Attempt{ID: id, For: w.Seq, Message: w.Message[max(0, len(w.Message)-enough):]}
}

// Answers reports whether an entry of this attempt was written for a message, whose
// worker sends for the entry after it. Of messages for the same seq only one is that:
// where they have no names each counts as it.
func (a Attempt) Answers(w Wake) bool {
	asked := ForWake("", w)
	return a.For == asked.For && (a.Message == asked.Message || a.Message == "" || asked.Message == "")
}

// Parent names the session and wait a child answers to.
type Parent struct {
	Session string `json:"session"`
	Call    string `json:"call,omitempty"`
	Wait    string `json:"wait,omitempty"`
	Root    string `json:"root"`
	Depth   int    `json:"depth"`
}

// Child is a sub-agent's session as its parent knows it.
type Child struct {
	Name    string `json:"name"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Call    string `json:"call,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Status  Status `json:"status"`
}

// CustomEvent is an event a tool sent to whoever watches.
type CustomEvent struct {
	Call string          `json:"call,omitempty"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Base says that history up to this entry is not that of the entry before. It
// is that of an earlier entry (Seq alone: going back), a copy of what another
// session held at Seq (Session, Messages and State: a fork), or a shorter text
// (Messages: a compaction). No messages and an empty history are different
// things, and so are no state, which keeps what was, and an empty one.
//
// Calls that the base leaves open get ids of this entry, c<seq>-<i>: going back is
// a new chance to run, so nothing their old ids stand for may count again.
type Base struct {
	Session  string                     `json:"session,omitempty"`
	Seq      int64                      `json:"seq"`
	Messages []llm.Message              `json:"messages,omitzero"`
	State    map[string]json.RawMessage `json:"state,omitzero"`
}

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
