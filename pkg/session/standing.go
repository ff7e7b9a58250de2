package session

import (
	"encoding/json"
	"time"
)

// StandingSession is what [Standing.For] says of a permission for the rest of the session.
const StandingSession = "session"

// MaxStanding is how long a standing permission lasts at most, also one for the session.
const MaxStanding = 24 * time.Hour

// MaxConditions is how many conditions a standing permission may have.
const MaxConditions = 16

// NeedsStanding is the word in the needs of a wait whose answer gives a standing permission, and of the entry
// that takes it in: a program that does not know it would take the answer in without, so that the journal and
// the record of the wait contradict each other.
const NeedsStanding = "answer:standing"

// Standing is what an approval allows beside the call that it is about: later calls of the same tool
// in the same session, whose arguments are those that were approved but for what conditions let differ.
type Standing struct {
	// For is [StandingSession], or a duration such as 2h.
	For string `json:"for"`
	// Until is when it ends, by the clock that recorded the answer.
	Until time.Time `json:"until,omitzero"`
	// Conditions each let one argument differ.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is what one argument of a call has to be. It has one of Equal, Prefix and AtMost.
type Condition struct {
	// Field is a JSON pointer into the arguments, such as /amount.
	Field string `json:"field"`
	// Equal is the value that it has.
	Equal json.RawMessage `json:"equal,omitempty"`
	// Prefix is what a text begins with.
	Prefix *string `json:"prefix,omitempty"`
	// AtMost is a number: the argument is a number from 0 to that.
	AtMost json.RawMessage `json:"atMost,omitempty"`
}

// Permission is a standing permission of a session. It follows from the journal.
type Permission struct {
	// ID is that of the wait with whose answer it was given.
	ID string
	// Tool, Arguments and Standing say which calls it covers.
	Tool      string
	Arguments json.RawMessage
	Standing  Standing
	// Who gave it, in whose place, when and from where.
	Who, For, From string
	When           time.Time
	// Policy is the digest of the agent for which it was given.
	Policy string
	// RulesAt is the entry that holds the rules under which it was given, if their policy had asked for
	// the approval; else 0.
	RulesAt int64
}

// Revocation is who took a standing permission back, and why.
type Revocation struct {
	Who    string    `json:"who"`
	At     time.Time `json:"at"`
	From   string    `json:"from"`
	Reason string    `json:"reason,omitempty"`
}

// PermissionState says whether a standing permission counts.
type PermissionState string

// The states of a permission.
const (
	PermissionValid   PermissionState = "valid"
	PermissionExpired PermissionState = "expired"
	PermissionRevoked PermissionState = "revoked"
	// PermissionVoid: the agent was changed since, or the record of its wait is not as it was written.
	PermissionVoid PermissionState = "void"
)

// ShownPermission is a standing permission of a session, with whether it counts.
type ShownPermission struct {
	// ID is that of the wait with whose answer it was given.
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Standing  Standing        `json:"standing"`
	// Covers says in words which calls it covers.
	Covers  []string        `json:"covers"`
	State   PermissionState `json:"state"`
	Revoked *Revocation     `json:"revoked,omitempty"`
	// Who gave it, in whose place, when and from where.
	Who  string    `json:"who"`
	For  string    `json:"for,omitempty"`
	When time.Time `json:"when"`
	From string    `json:"from"`
}

// PermissionPreview is what a standing permission would be.
type PermissionPreview struct {
	Until time.Time `json:"until"`
	// Covers says in words which calls it would cover.
	Covers []string `json:"covers"`
	// Earlier are calls of the tool that the session had before, the newest first.
	Earlier []EarlierCall `json:"earlier"`
}

// EarlierCall is a call of before, and whether a permission would have covered it.
type EarlierCall struct {
	Call      string          `json:"call"`
	Arguments json.RawMessage `json:"arguments"`
	Covered   bool            `json:"covered"`
}
