package session

import (
	"slices"
	"time"
)

// MaxWaitActs is how many acts of people the record of a wait keeps; who would add one more is refused.
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
	// ActReminded: a moment came at which whoever may answer is reminded.
	ActReminded WaitActKind = "reminded"
	// ActEscalated: the deadline passed, others may answer as well, and the deadline is later.
	ActEscalated WaitActKind = "escalated"
	// ActStoodIn: who stands in for a person who is away answered or acted in their place. It is written
	// along with that, and by nothing else.
	ActStoodIn WaitActKind = "stood_in"
)

// WaitActKinds lists every kind of act that people ask for. Those of the deadline, and of who stands in, nobody asks for.
func WaitActKinds() []WaitActKind {
	return []WaitActKind{ActDismissed, ActExtended, ActDelegated}
}

// WaitAct is what a person, or the deadline, did to an open wait without deciding it.
type WaitAct struct {
	Kind   WaitActKind `json:"kind"`
	Who    string      `json:"who"`
	At     time.Time   `json:"at"`
	From   string      `json:"from"`
	Reason string      `json:"reason,omitempty"`
	// To is the person who was named, of ActDelegated.
	To string `json:"to,omitempty"`
	// Deadline that holds from then on, of ActExtended and ActEscalated.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Escalation says who may answer since then as well, of ActEscalated.
	Escalation *Escalation `json:"escalation,omitempty"`
	// For is the person in whose place Who acts, and Until when they are back, of ActStoodIn.
	For   string     `json:"for,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

// OfPeople reports whether a person asked for it.
func (a WaitAct) OfPeople() bool { return slices.Contains(WaitActKinds(), a.Kind) }
