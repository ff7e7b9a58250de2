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

// StandsFor returns the person in whose place who answers a wait with these acts: who delegated it to
// them, or who delegated it to that one; who itself if nobody did. So delegation makes no second voice of
// one: all it was delegated to share that of the first.
func StandsFor(acts []WaitAct, who string) string {
	for i := len(acts) - 1; i >= 0; i-- {
		if acts[i].Kind == ActDelegated && acts[i].To == who {
			who = acts[i].Who
		}
	}
	return who
}
