package session

import (
	"encoding/json"
	"time"
)

// AuditKind says what a line of an audit is about.
type AuditKind string

// The kinds of line. Those that are not recorded beside the wait follow from the journal and the
// wait's record.
const (
	// AuditAsked: an entry opened the wait. Data has the digest of what was shown, who may answer and how
	// many must, the deadline, and whether the policy of the task asked for it.
	AuditAsked AuditKind = "asked"
	// AuditViewed: a caller read what the wait shows; recorded once for each caller and origin.
	AuditViewed AuditKind = "viewed"
	// AuditRefused: an answer was refused; Data says with which code.
	AuditRefused AuditKind = "answer_refused"
	// AuditFull: the wait has as many recorded lines as it may have. What came after it was counted.
	AuditFull AuditKind = "audit_full"
	// AuditUnrecorded: refused answers that have no line of their own; Data says how many at least.
	AuditUnrecorded AuditKind = "unrecorded_refusals"
	// AuditVoted: somebody voted on an approval that asks for several people; Data has the vote.
	AuditVoted AuditKind = "voted"
	// AuditExtended: somebody gave the wait a later deadline. AuditDelegated: somebody let another person
	// answer it. Data has the act.
	AuditExtended  AuditKind = "extended"
	AuditDelegated AuditKind = "delegated"
	// AuditReminded: a moment came at which whoever may answer is reminded. AuditEscalated: the deadline
	// passed, and others may answer as well. Data has the act.
	AuditReminded  AuditKind = "reminded"
	AuditEscalated AuditKind = "escalated"
	// AuditStoodIn: who stood in for a person who was away answered or acted in their place; Data has the act.
	AuditStoodIn AuditKind = "stood_in"
	// AuditAnswered: somebody, or the wait's deadline (AuditExpired), answered. Data has the answer.
	AuditAnswered AuditKind = "answered"
	AuditExpired  AuditKind = "expired"
	// AuditTaken: an entry took the answer in. AuditClosed: an entry closed the wait.
	AuditTaken  AuditKind = "taken"
	AuditClosed AuditKind = "closed"
	// AuditRevoked: somebody took back the standing permission that the answer gave. AuditCovered: a call
	// ran that a standing permission covers; Wait is the permission, Who gave it, Data has the digest of
	// what ran.
	AuditRevoked AuditKind = "revoked"
	AuditCovered AuditKind = "covered"
	// AuditDenied: the policy of the task denied a call, and nobody was asked.
	AuditDenied AuditKind = "denied"
	// AuditAllowed: the policy of the program allowed a call for which its tool would have asked for an
	// approval, and nobody was asked.
	AuditAllowed AuditKind = "allowed"
)

// AuditLine is one line of a session's audit.
type AuditLine struct {
	Kind AuditKind `json:"kind"`
	At   time.Time `json:"at"`
	// Wait it is about; empty of a call that was denied or allowed.
	Wait string `json:"wait,omitempty"`
	Call string `json:"call,omitempty"`
	Tool string `json:"tool,omitempty"`
	// Who did it and From where, as an answer has them.
	Who  string `json:"who,omitempty"`
	From string `json:"from,omitempty"`
	// Entry that says it.
	Entry int64 `json:"entry,omitempty"`
	// N counts the recorded lines of the wait; Hash is that of such a line, and Prev that of the one before.
	N    int64           `json:"n,omitempty"`
	Hash string          `json:"hash,omitempty"`
	Prev string          `json:"prev,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// AuditCheck is what a verification of a session's records has found.
type AuditCheck struct {
	// Whole says that there are no faults.
	Whole bool `json:"whole"`
	// Entries, Waits and Lines are how many were compared.
	Entries int `json:"entries"`
	Waits   int `json:"waits"`
	Lines   int `json:"lines"`
	// Faults are records that are not as they were written, or contradict each other.
	Faults []AuditFault `json:"faults,omitempty"`
	// Unproven are records of which nothing says that they are as they were written.
	Unproven []AuditFault `json:"unproven,omitempty"`
}

// AuditFault is one record, and what is wrong with it.
type AuditFault struct {
	// Record by its kind and id: entry 4, wait w4-1, line 2 of w4-1, call c3-1, run 2, head.
	Record string `json:"record"`
	Fault  string `json:"fault"`
}
