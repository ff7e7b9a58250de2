package client

import (
	"encoding/json"

	"github.com/adjourn/adjourn/pkg/session"
)

// StartRequest begins a new session, or the next turn of one that completed or
// was cancelled.
type StartRequest struct {
	// SessionID names the session; without it a new one gets an id of the server's making.
	SessionID string `json:"sessionId,omitempty"`
	// Agent of a new session; may be left out on a next turn.
	Agent string `json:"agent,omitempty"`
	// Input is the user's message: at most 4 MiB, all parts together.
	Input Content `json:"input,omitzero"`
	// Tags by which the session is found: 16 at most, of 64 characters. Those of a
	// next turn take the place of all before.
	Tags []string `json:"tags,omitempty"`
	// Rules that the task is to be held to, within what the agent's definition lets callers ask.
	Rules session.TaskRules `json:"rules,omitzero"`
	// State that a new session begins with, by key: at most 4 MiB.
	State map[string]json.RawMessage `json:"state,omitzero"`
	// Metadata of the session, for the caller's own use: at most 16 values of 512 bytes, under
	// names as tags have them. That of a next turn takes the place of all before.
	Metadata map[string]string `json:"metadata,omitzero"`
}

// Started is the answer to a start.
type Started struct {
	SessionID string `json:"sessionId"`
	Task      int64  `json:"task"`
	// Entry that the start wrote. The session may be past it: Session says where it stands.
	Entry StartEntry `json:"entry"`
	// Replayed says that this request was carried out before (same Idempotency-Key).
	Replayed bool `json:"replayed,omitempty"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
}

// StartEntry is the entry of the journal that a start wrote.
type StartEntry struct {
	Seq          int64  `json:"seq"`
	CheckpointID string `json:"checkpointId"`
}

// SubmitRequest answers one thing a session waits for. It names the wait by WaitID,
// or an approval by its ApprovalID; a client tool's result may name its call. A message
// to a session that waits for input names nothing.
type SubmitRequest struct {
	WaitID string `json:"waitId,omitempty"`
	// Kind of the answer: client-tool-result, approval-response, reply, message or verdict.
	Kind       session.AnswerKind `json:"kind"`
	ToolCallID string             `json:"toolCallId,omitempty"`
	// ApprovalID is that of the approval that was shown.
	ApprovalID string `json:"approvalId,omitempty"`
	// QuestionID is the question's stable id.
	QuestionID string `json:"id,omitempty"`

	// Approved, Reason and EditedInput of an approval-response.
	Approved    *bool           `json:"approved,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	EditedInput json.RawMessage `json:"editedInput,omitempty"`
	// Standing has an approval-response allow later calls of the tool as well; its Until is the server's.
	Standing *session.Standing `json:"standing,omitempty"`
	// Result or Error of a client-tool-result; Result of a verdict. null, false, 0, "" and [] are results.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Selected or Text of a reply. An empty selection and an empty text are replies.
	Selected []string `json:"selected,omitzero"`
	Text     *string  `json:"text,omitempty"`
	// Message of a message.
	Message Content `json:"message,omitzero"`
	// Verdict on an unknown outcome.
	Verdict session.Verdict `json:"verdict,omitempty"`

	// AutoResume false only stores the answer: a resume drives on. Left out it means true.
	AutoResume *bool `json:"autoResume,omitempty"`
}

// Continuation says what follows an answer.
type Continuation = session.Continuation

// The continuations.
const (
	// ContinuationResumed: the session goes on.
	ContinuationResumed = session.ContinuationResumed
	// ContinuationWaiting: other things are still open.
	ContinuationWaiting = session.ContinuationWaiting
	// ContinuationStored: the answer is stored, a resume drives on.
	ContinuationStored = session.ContinuationStored
)

// Submitted is the answer to a submit.
type Submitted struct {
	// Answer as it was recorded: who, when, from where.
	Answer       session.Answer `json:"answer"`
	Continuation Continuation   `json:"continuation"`
	// Open is what the session still waits for.
	Open []Wait `json:"open"`
	// VotesMissing is how many more must approve what was voted on; the session waits for them.
	VotesMissing int `json:"votesMissing,omitempty"`
	// Repeated says that the same answer was given before; nothing was done again.
	Repeated bool `json:"repeated,omitempty"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// AnswersRequest answers several things a session waits for: each answer counts for itself, in order,
// and what is refused changes nothing of the others.
type AnswersRequest struct {
	// Answers are 1 to [session.MaxWaits].
	Answers []SubmitRequest `json:"answers"`
}

// SubmittedAll is the answer to several answers that were all taken.
type SubmittedAll struct {
	// Results are in the order of the answers.
	Results []AnswerResult `json:"results"`
	// Continuation and Open as of the last answer.
	Continuation Continuation `json:"continuation"`
	Open         []Wait       `json:"open"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// AnswerResult says what became of one of several answers.
type AnswerResult struct {
	// WaitID is the wait that was answered; of a refused answer what it named, if anything.
	WaitID string `json:"waitId,omitempty"`
	// Status is the one that the answer alone would have had: 200, or that of its refusal.
	Status int `json:"status"`
	// Answer as it was recorded; of already_answered the one that came first.
	Answer *session.Answer `json:"answer,omitempty"`
	// Repeated says that the same answer was given before; nothing was done again.
	Repeated bool `json:"repeated,omitempty"`
	// Code and Detail say why the answer was refused, as in a [Problem].
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// StopRequest interrupts, cancels or aborts a task.
type StopRequest struct {
	// Reason is kept with it: 1 KiB at most.
	Reason string `json:"reason,omitempty"`
	// Task that is to stop; 0 means the present one. Where it has ended, the next one is not stopped.
	Task int64 `json:"task,omitempty"`
}

// StopOutcome says what became of a request to stop.
type StopOutcome = session.StopOutcome

// The outcomes of a stop.
const (
	// StopDone: the task is stopped.
	StopDone = session.StopDone
	// StopSent: a worker works on the task, and obeys within a second.
	StopSent = session.StopSent
	// StopNothing: the task had ended, or was interrupted already; nothing was done.
	StopNothing = session.StopNothing
)

// Stopped is the answer to an interrupt, a cancel or an abort.
type Stopped struct {
	SessionID string      `json:"sessionId"`
	Outcome   StopOutcome `json:"outcome"`
	// Task that stops, or has stopped.
	Task int64 `json:"task"`
	// Status of the session when the request was carried out: a stronger signal that came before
	// is carried out in place of a weaker one.
	Status session.Status `json:"status"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
}

// ResumeMode says how a session goes on.
type ResumeMode = session.ResumeMode

// The modes of a resume. What is brought tells the mode, so it may be left out.
const (
	ResumeContinue         = session.ResumeContinue
	ResumeWithMessage      = session.ResumeWithMessage
	ResumeWithConfirmation = session.ResumeWithConfirmation
	ResumeWithDecisions    = session.ResumeWithDecisions
	ResumeFromCheckpoint   = session.ResumeFromCheckpoint
)

// ResumeRequest goes on with a session. At most one of Message, Confirmation, Decisions and
// FromCheckpoint is given, or FromCheckpoint with Message; it tells the mode, so Mode may be left out.
type ResumeRequest struct {
	Mode ResumeMode `json:"mode,omitempty"`
	// CheckpointID, if given, must be that of the newest entry, unless the same was asked before.
	CheckpointID string `json:"checkpointId,omitempty"`
	// Message of with_message, or to go on with from a checkpoint; nil means none.
	Message        Content         `json:"message,omitzero"`
	Confirmation   *Confirmation   `json:"confirmation,omitempty"`
	Decisions      *Decisions      `json:"decisions,omitempty"`
	FromCheckpoint *FromCheckpoint `json:"fromCheckpoint,omitempty"`
	// Rules of the task that begins from a checkpoint. Without one those of the present task change,
	// where the session was interrupted, or abandons what it waits for. What is left out stays as it
	// was asked before.
	Rules session.TaskRules `json:"rules,omitzero"`
}

// Confirmation is the answer to the one open approval. One that approves needs the
// checkpoint, or the wait it is about.
type Confirmation struct {
	// WaitID is the approval it is about.
	WaitID string `json:"waitId,omitempty"`
	// Approved has to be said: nil is refused.
	Approved    *bool           `json:"approved"`
	Reason      string          `json:"reason,omitempty"`
	EditedInput json.RawMessage `json:"editedInput,omitempty"`
}

// Decisions decide approvals of a suspended session, several at once. Approvals
// that are not named are rejected; other kinds of wait stay open. All are answered
// at once or none is.
type Decisions struct {
	// Approve and Reject are ids of waits, all of one suspension.
	Approve []string `json:"approve,omitempty"`
	Reject  []string `json:"reject,omitempty"`
	// ApproveAll approves all but those in Reject; it needs the checkpoint, or a wait
	// that is named. RejectAll rejects all.
	ApproveAll bool   `json:"approveAll,omitempty"`
	RejectAll  bool   `json:"rejectAll,omitempty"`
	Reason     string `json:"reason,omitempty"`
	// EditedInput by wait, of approvals that are approved.
	EditedInput map[string]json.RawMessage `json:"editedInput,omitempty"`
}

// Resumed is the answer to a resume.
type Resumed struct {
	SessionID    string       `json:"sessionId"`
	Continuation Continuation `json:"continuation"`
	// Open is what the session still waits for.
	Open []Wait `json:"open"`
	// Repeated says that the same was decided before; nothing was done again.
	Repeated bool `json:"repeated,omitempty"`
	// After is set when nothing but this resume says that the session goes on, after
	// this entry: until then it looks as it did before. Who follows it asks for its
	// entries with stay=true.
	After int64 `json:"after,omitempty"`
	// Task and Entry of a resume from a checkpoint, and of a retry: they begin a task. Replayed as
	// in [Started].
	Task     int64       `json:"task,omitempty"`
	Entry    *StartEntry `json:"entry,omitempty"`
	Replayed bool        `json:"replayed,omitempty"`
	// Effects done after the checkpoint, which were not undone; left out when there are none.
	Effects *session.EffectsDone `json:"effects,omitempty"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
}
