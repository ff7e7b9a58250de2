package session

import "time"

// MaxWaitActs is how many acts the record of a wait keeps; who would add one more is refused.
const MaxWaitActs = 16

// WaitActKind says what was done to a wait.
type WaitActKind string

// The kinds of act.
const (
	// ActDismissed: nobody will answer the wait. It is kept as the answer, of kind [AnswerDismissal].
	ActDismissed WaitActKind = "dismissed"
	// ActExtended: the deadline is later.
	ActExtended WaitActKind = "extended"
	// ActDelegated: another person may answer in the place of who delegates.
	ActDelegated WaitActKind = "delegated"
)

// WaitActKinds lists every kind of act.
func WaitActKinds() []WaitActKind {
	return []WaitActKind{ActDismissed, ActExtended, ActDelegated}
}

// WaitAct is what a person did to an open wait without deciding it.
type WaitAct struct {
	Kind   WaitActKind `json:"kind"`
	Who    string      `json:"who"`
	At     time.Time   `json:"at"`
	From   string      `json:"from"`
	Reason string      `json:"reason,omitempty"`
	// To is the person who was named, of ActDelegated.
	To string `json:"to,omitempty"`
	// Deadline that holds from then on, of ActExtended.
	Deadline *time.Time `json:"deadline,omitempty"`
}
