package session

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
