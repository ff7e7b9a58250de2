package session

import "time"

// StopOutcome says what became of a request to interrupt, cancel or abort a task.
type StopOutcome string

// The outcomes of a stop.
const (
	// StopDone: the task is stopped.
	StopDone StopOutcome = "stopped"
	// StopSent: a worker works on the task, and obeys within a second.
	StopSent StopOutcome = "sent"
	// StopNothing: the task had ended, or was interrupted already; nothing was done.
	StopNothing StopOutcome = "nothing"
)

// StoppedBy says who stopped a task, and why.
type StoppedBy struct {
	// Kind is the verb: interrupt, cancel or abort.
	Kind   Verb   `json:"kind"`
	Reason string `json:"reason,omitempty"`
	// Who is the caller, or "deadline" where the task has taken longer than it was given.
	Who string    `json:"who"`
	At  time.Time `json:"at"`
}
