package session

// Continuation says what follows an answer.
type Continuation string

// The continuations.
const (
	// ContinuationResumed: the session goes on.
	ContinuationResumed Continuation = "resumed"
	// ContinuationWaiting: other things are still open.
	ContinuationWaiting Continuation = "waiting"
	// ContinuationStored: the answer is stored, a resume drives on.
	ContinuationStored Continuation = "stored"
)

// ResumeMode says how a session goes on.
type ResumeMode string

// The modes of resume. What a request brings tells the mode.
const (
	ResumeContinue         ResumeMode = "continue"
	ResumeWithMessage      ResumeMode = "with_message"
	ResumeWithConfirmation ResumeMode = "with_confirmation"
	ResumeWithDecisions    ResumeMode = "with_decisions"
	ResumeFromCheckpoint   ResumeMode = "from_checkpoint"
)
