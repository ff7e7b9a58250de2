package runtime

import (
	"encoding/json"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Caller is the user of a verb and the place the request came from; both are recorded.
type Caller = answers.Caller

// MaxInput is the largest user message in bytes, all its parts together: 4 MiB, more than any
// model accepts.
const MaxInput = codes.MaxInput

// MaxInputParts is how many parts a user message may have: 1,000.
const MaxInputParts = answers.MaxInputParts

// StartParams begin a new session, or the next turn of one that has ended well.
type StartParams struct {
	// Key's ID may be empty for a new session with an id of our making.
	Key session.Key
	// Agent may be empty on a next turn.
	Agent string
	// Input is the user's message: text (llm.TextParts), images, files.
	Input  []llm.Part
	Caller Caller
	// Tags by which the session is found ([session.ValidateTags]); those of a next
	// turn take the place of all before, none leave them.
	Tags []string
	// Rules are what the caller asks of the task; they hold until a later start, also where it is
	// tried again or goes back to a checkpoint.
	Rules session.TaskRules
	// State that a new session begins with, by key. A next turn is refused with one.
	State map[string]json.RawMessage
	// Metadata of the session for the caller's own use ([session.ValidateMetadata]); that of a next
	// turn takes the place of all before, none leaves it.
	Metadata map[string]string
	// IdempotencyKey makes a repeated request harmless: it gets the first answer.
	// It belongs to the caller and to this verb; optional.
	IdempotencyKey string
	// Event says that an event starts the session. Its key is none of a caller's, and
	// is remembered for as long as a failed event may come again.
	Event bool
}

// Started is the result of a start.
type Started struct {
	Key        session.Key
	Task       int64
	Seq        int64
	Checkpoint string
	// Replayed as in [Submitted].
	Replayed bool
}

// SubmitParams answer one wait.
type SubmitParams struct {
	Key session.Key
	// Answer names its wait: by Wait, or an approval by ApprovalID, which only a caller who has
	// read it can know. A client tool's result may name its call by ToolCallID. A message to a
	// session that waits for input names nothing.
	Answer session.Answer
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// HoldResume only stores the answer: neither this call nor the sweep drives on.
	HoldResume bool
}

// Continuation says what follows an answer.
type Continuation = session.Continuation

// The continuations.
const (
	ContinuationResumed = session.ContinuationResumed
	ContinuationWaiting = session.ContinuationWaiting
	ContinuationStored  = session.ContinuationStored
)

// Submitted is the result of a submit.
type Submitted struct {
	Answer       session.Answer
	Continuation Continuation
	// Open waits that are left. VotesMissing is how many more must approve what was voted on.
	Open         []journal.WaitRecord
	VotesMissing int
	// Repeated says that the same answer was given before.
	Repeated bool
	// Replayed says that this very request was carried out before, under its key: the
	// answer is the one it had then.
	Replayed bool
}

// ResumeMode says how to resume.
type ResumeMode = session.ResumeMode

// The modes of [Runtime.Resume]; decisions go to [Runtime.Decide].
const (
	ResumeContinue         = session.ResumeContinue
	ResumeWithMessage      = session.ResumeWithMessage
	ResumeWithConfirmation = session.ResumeWithConfirmation
)

// ResumeParams go on with a session.
type ResumeParams struct {
	Key  session.Key
	Mode ResumeMode
	// Checkpoint, if given, must be the newest one, unless the same was answered before.
	Checkpoint string
	// Message of with_message, as Input of a start.
	Message []llm.Part
	// Confirmation of with_confirmation.
	Confirmation Confirmation
	// Rules that the task is held to from now on, where they are given: only those of a session that
	// is interrupted, or abandons what it waits for, change. What they leave out stays.
	Rules  session.TaskRules
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Confirmation is the answer to the one open approval. To approve, it needs the checkpoint or the
// wait it is about, so that the caller does not approve a call requested later.
type Confirmation struct {
	// Wait is the id of the approval it is about.
	Wait        string
	Approved    bool
	Reason      string
	EditedInput json.RawMessage
}

// Resumed is the result of a resume.
type Resumed struct {
	// Continuation is resumed, or waiting with what is still open.
	Continuation Continuation
	Open         []journal.WaitRecord
	// Repeated says that the same decisions were taken before; nothing was done.
	Repeated bool
	// Replayed as in [Submitted].
	Replayed bool
	// After is the seq after which the session goes on, when nothing but this
	// resume says that it does: until then it looks as it did before. 0 otherwise.
	After int64
}

// SignalKind is how hard a signal stops a task.
type SignalKind = journal.SignalKind

// The signals, the weakest first.
const (
	SignalInterrupt = journal.SignalInterrupt
	SignalCancel    = journal.SignalCancel
	SignalAbort     = journal.SignalAbort
)

// MaxReason is how long a reason to stop may be, in bytes.
const MaxReason = refusal.MaxReason

// StopParams stop a task.
type StopParams struct {
	Key  session.Key
	Kind SignalKind
	// Reason is stored with the signal; optional.
	Reason string
	// Task that is to stop; 0 means the present one. Where that task has ended, the next one
	// is not stopped.
	Task   int64
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// StopOutcome says what became of a request to stop.
type StopOutcome = session.StopOutcome

// The outcomes.
const (
	StopDone    = session.StopDone
	StopSent    = session.StopSent
	StopNothing = session.StopNothing
)

// Stopped is the result of a stop.
type Stopped struct {
	Outcome StopOutcome
	// Task that stops, or has stopped.
	Task int64
	// Status of the session then. It may show more than was asked for: a stronger signal
	// that came before is carried out in place of a weaker one.
	Status session.Status
	// Replayed as in [Submitted].
	Replayed bool
}

// DecideParams decide approvals of a suspended session, several at once, and go on.
// Approvals that are not named are rejected; other kinds of wait stay open.
type DecideParams struct {
	Key session.Key
	// Checkpoint, if given, must be the newest one, unless the same decisions were taken before.
	Checkpoint string
	// Approve and Reject are ids of waits, all of one suspension.
	Approve []string
	Reject  []string
	// ApproveAll approves all but those in Reject; it needs a checkpoint, or a wait that
	// is named, so that it approves nothing that was asked later. RejectAll rejects all.
	ApproveAll bool
	RejectAll  bool
	Reason     string
	// EditedInput by wait, of approvals that are approved.
	EditedInput map[string]json.RawMessage
	Caller      Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}
