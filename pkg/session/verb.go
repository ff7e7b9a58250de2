package session

// Verb is what a caller does to a session that is there.
type Verb string

// The verbs, in the order in which they are listed.
const (
	VerbStart     Verb = "start" // of the next turn
	VerbResume    Verb = "resume"
	VerbGoBack    Verb = "resume_from_checkpoint"
	VerbSubmit    Verb = "submit"
	VerbRetry     Verb = "retry"
	VerbFork      Verb = "fork"
	VerbSend      Verb = "send"
	VerbInterrupt Verb = "interrupt"
	VerbCancel    Verb = "cancel"
	VerbAbort     Verb = "abort"
	VerbDelete    Verb = "delete"
)

// Verbs returns what a session of a status takes, in the order of the constants; who asks, and with
// what, may still be refused. Resumes says that a resume would be taken, with a message or decisions if
// it needs them, open that something waits for an answer, hears that a message would be taken where it
// waits, aborted that the session was aborted.
func (s Status) Verbs(resumes, open, hears, aborted bool) []Verb {
	allowed := []Verb{}
	add := func(condition bool, verbs ...Verb) {
		if condition {
			allowed = append(allowed, verbs...)
		}
	}
	working := s == StatusRunning || s == StatusSuspended
	add(s == StatusCompleted || s == StatusCancelled, VerbStart)
	add(resumes || s == StatusInterrupted, VerbResume)
	add(s != StatusRunning, VerbGoBack)
	add(open && !s.Ended(), VerbSubmit)
	add(s == StatusFailed && !aborted, VerbRetry)
	add(true, VerbFork)
	// To one that has ended it is the next turn.
	add(s == StatusRunning || s == StatusSuspended && hears || s == StatusCompleted || s == StatusCancelled, VerbSend)
	add(working, VerbInterrupt)
	add(!s.Ended(), VerbCancel, VerbAbort)
	add(true, VerbDelete)
	return allowed
}
