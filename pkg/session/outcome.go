package session

// Outcome says how a command that drove a session ended.
type Outcome string

// The outcomes.
const (
	OutcomeCompleted   Outcome = "completed"
	OutcomePaused      Outcome = "paused"
	OutcomeFailed      Outcome = "failed"
	OutcomeCancelled   Outcome = "cancelled"
	OutcomeInterrupted Outcome = "interrupted"
	OutcomeRunning     Outcome = "running"
	// OutcomeError is a command that was refused: Error says why.
	OutcomeError Outcome = "error"
)

// PauseType sums up what a paused session waits for.
type PauseType string

// The types of pause.
const (
	PauseToolApproval   PauseType = "tool_approval_required"
	PauseInput          PauseType = "input_required"
	PauseClientTool     PauseType = "client_tool_required"
	PauseQuestion       PauseType = "question"
	PauseChildren       PauseType = "children"
	PauseUnknownOutcome PauseType = "unknown_outcome"
	PauseMixed          PauseType = "mixed"
)
