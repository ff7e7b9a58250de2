package client

import (
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Summary is one line of a list of sessions.
type Summary struct {
	ID     string         `json:"id"`
	Agent  string         `json:"agent"`
	Status session.Status `json:"status"`
	Title  string         `json:"title,omitempty"`
	Task   int64          `json:"task"`
	// StatusSeq is the number of the entry that last moved the status. The version of a
	// [Session] is another one: that of its newest entry.
	StatusSeq int64           `json:"version"`
	Parent    *session.Parent `json:"parent,omitempty"`
	// ForkedFrom says of a fork what it is a copy of.
	ForkedFrom *session.Fork `json:"forkedFrom,omitempty"`
	StartedBy  string        `json:"startedBy,omitempty"`
	Tags       []string      `json:"tags,omitempty"`
	CreatedAt  time.Time     `json:"createdAt"`
	UpdatedAt  time.Time     `json:"updatedAt"`
}

// Sessions is a page of GET /sessions, the last moved first. Cursor is that of
// the next page; left out when there is none.
type Sessions struct {
	Items  []Summary `json:"items"`
	Cursor string    `json:"cursor,omitempty"`
}

// Messages is a page of GET /sessions/{id}/messages, the oldest first.
type Messages struct {
	Items  []llm.Message `json:"items"`
	Cursor string        `json:"cursor,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Run is one stretch of work of a session.
type Run struct {
	session.Run
	// WaitedMillis is how long the session had rested before it, since the end of the run before.
	WaitedMillis int64 `json:"waitedMillis,omitempty"`
}

// Runs is a page of GET /sessions/{id}/runs, the oldest first.
type Runs struct {
	Items  []Run  `json:"items"`
	Cursor string `json:"cursor,omitempty"`
}

// Checkpoint is one committed entry as a place to come back to.
type Checkpoint struct {
	ID string `json:"id"`
	// Seq is the number of the entry.
	Seq    int64          `json:"seq"`
	Kind   session.Kind   `json:"kind"`
	Status session.Status `json:"status"`
	Task   int64          `json:"task"`
	Run    int64          `json:"run"`
	Step   int64          `json:"step"`
	At     time.Time      `json:"at"`
}

// Checkpoints is a page of GET /sessions/{id}/checkpoints, the oldest first.
type Checkpoints struct {
	Items  []Checkpoint `json:"items"`
	Cursor string       `json:"cursor,omitempty"`
}

// Waits is a page of GET /sessions/{id}/waits, in the order they were opened,
// or of GET /waits: open ones of every session, the soonest deadline first.
type Waits struct {
	Items  []Wait `json:"items"`
	Cursor string `json:"cursor,omitempty"`
}

// Audit is a page of GET /sessions/{id}/audit: the lines of one wait after the other, in the order they were
// opened, then the calls that a policy denied.
type Audit struct {
	Items  []session.AuditLine `json:"items"`
	Cursor string              `json:"cursor,omitempty"`
	// Check is what verifying the session's records found, if it was asked for.
	Check *session.AuditCheck `json:"check,omitempty"`
}

// Entries is a page of GET /sessions/{id}/entries: the journal as it is stored.
type Entries struct {
	Items []journal.Entry `json:"items"`
	// After is the number to ask after next: that of the last entry given, or
	// what was asked for when there was none.
	After int64 `json:"after"`
	// More says that there are later entries already.
	More bool `json:"more,omitempty"`
	// Status of the session when the page was made.
	Status session.Status `json:"status"`
	// Resting says that nothing is written after this page until somebody acts:
	// a wait for more is answered at once.
	Resting bool `json:"resting"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}
