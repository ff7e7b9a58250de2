package journal

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// Format is the version of the entries this program writes, and the newest it reads.
const Format = 1

// Entry is one line of a session's journal, format 1 (docs/design/format-1.md).
// It is written once or not at all and never changed.
type Entry struct {
	V    int          `json:"v"`
	Seq  int64        `json:"seq"`
	Kind session.Kind `json:"kind"`
	// Needs names the features that a reader must support to act on the entry. A program that
	// does not support one of them refuses the session; other unknown fields are ignored.
	Needs []string  `json:"needs,omitempty"`
	At    time.Time `json:"at"`
	// By is the caller of the verb that wrote it, or "step" for a worker.
	By string `json:"by,omitempty"`
	// From is where the caller of a verb was: an address, a program.
	From    string          `json:"from,omitempty"`
	Attempt session.Attempt `json:"attempt"`
	// KeepsLease says that the same invocation writes the next entry too, so that
	// this entry does not close its lease (docs/design/chain.md).
	KeepsLease bool `json:"goesOn,omitempty"`
	// Prev is the hash of the entry before: base64url of its SHA-256. Empty on entry 1.
	Prev string `json:"prev,omitempty"`
	// Token is 96 random bits in base64url; with session and seq it makes the checkpoint id.
	Token string `json:"token"`

	Task int64 `json:"task"`
	Run  int64 `json:"run"`
	Step int64 `json:"step"`
	// Trigger is what began the run; set on the first entry of a run.
	Trigger session.Trigger `json:"trigger,omitempty"`
	// RulesAt is the seq of the entry that holds the task's Rules; that entry has Rules set.
	RulesAt int64          `json:"rulesAt"`
	Rules   *session.Rules `json:"rules,omitempty"`
	Status  session.Status `json:"status"`
	// Parent is set on the first entry of a child.
	Parent *session.Parent `json:"parent,omitempty"`
	// Requesters asked for the task beside By: those of the session a fork is a copy of, those of a
	// child's parent, and who sent the mail that the entry takes in.
	Requesters []string `json:"requesters,omitempty"`
	// Tags a start, or a fork, gave, by which sessions are found.
	Tags []string `json:"tags,omitempty"`
	// Metadata a start gave, for the caller's own use.
	Metadata map[string]string `json:"metadata,omitempty"`

	Messages []llm.Message         `json:"messages,omitempty"`
	StateOps []session.StateOp     `json:"stateOps,omitempty"`
	Events   []session.CustomEvent `json:"events,omitempty"`
	// Waits this entry opens; Answers it takes in; Mail ids it takes in.
	Waits   []session.Wait   `json:"waits,omitempty"`
	Answers []session.Answer `json:"answers,omitempty"`
	Mail    []string         `json:"mail,omitempty"`
	// Signal is the signal this entry carries out: HEAD drops it, and its author, time and
	// origin have to be kept.
	Signal   *Signal         `json:"signal,omitempty"`
	Children []session.Child `json:"children,omitempty"`

	// Used of the task's limits.
	Used  Used      `json:"used,omitzero"`
	Usage llm.Usage `json:"usage,omitzero"`
	// Models are the calls of a model that led to the entry. Calls are the runs of
	// tools that ended with it; the calls a reply asked for are in its Messages.
	Models []ModelCall `json:"models,omitempty"`
	Calls  []ToolRun   `json:"calls,omitempty"`
	// Output of a task with an output schema or a finish tool.
	Output  json.RawMessage  `json:"output,omitempty"`
	Failure *session.Failure `json:"failure,omitempty"`
	// Until is when a delayed entry's retry is due.
	Until *time.Time `json:"until,omitempty"`
	Base  *Base      `json:"base,omitempty"`

	// Hash of this entry, set by [Encode] and [Decode]; the next entry's Prev.
	Hash string `json:"-"`
}

// ForWake returns the attempt of a worker with an id of its own that works for a message.
func ForWake(id string, w Wake) session.Attempt {
	const enough = 12 // of one session's messages for one seq
	return session.Attempt{ID: id, For: w.Seq, Message: w.Message[max(0, len(w.Message)-enough):]}
}

// AnswersWake reports whether an entry of an attempt was written for a message, whose
// worker sends for the entry after it. Of messages for the same seq only one is that:
// where they have no names each counts as it.
func AnswersWake(a session.Attempt, w Wake) bool {
	asked := ForWake("", w)
	return a.For == asked.For && (a.Message == asked.Message || a.Message == "" || asked.Message == "")
}

// Base says that history up to this entry is not that of the entry before. It
// is that of an earlier entry (Seq alone: going back), a copy of what another
// session held at Seq (Session, Messages and State: a fork), or a shorter text
// (Messages: a compaction). No messages and an empty history are different
// things, and so are no state, which keeps what was, and an empty one.
//
// Calls that the base leaves open get ids of this entry, c<seq>-<i>: after going back they may
// run again, so nothing that is recorded under their old ids may count.
type Base struct {
	Session  string                     `json:"session,omitempty"`
	Seq      int64                      `json:"seq"`
	Messages []llm.Message              `json:"messages,omitzero"`
	State    map[string]json.RawMessage `json:"state,omitzero"`
}

// Used is what an entry says about its task's limits. What is left is no field:
// it follows from the rules and this.
type Used struct {
	// Amounts this entry used.
	session.Amounts
	// Task is what the task has used up to and with this entry.
	Task session.Amounts `json:"task,omitzero"`
}

// IsCheckpoint reports whether one may come back to the entry. Not to a reply
// whose calls are about to run: its calls would get fresh ledgers and repeat their
// effects. Nor to the end of a session that was deleted.
func (e *Entry) IsCheckpoint() bool {
	return e.Kind != session.KindReplied && e.Kind != session.KindDeleted
}

// Checkpoint returns the id of an entry of the given session, which is that of a
// checkpoint if the entry is one.
func (e *Entry) Checkpoint(sessionID string) session.Checkpoint {
	return session.Checkpoint{Session: sessionID, Seq: e.Seq, Token: e.Token}
}
