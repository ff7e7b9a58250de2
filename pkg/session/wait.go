package session

import (
	"encoding/json"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// WaitKind says what a suspended session waits for (docs/waiting.md).
type WaitKind string

// The kinds of wait.
const (
	WaitClientTool WaitKind = "client_tool"
	WaitApproval   WaitKind = "approval"
	WaitQuestion   WaitKind = "question"
	WaitInput      WaitKind = "input"
	WaitChild      WaitKind = "child"
	WaitUnknown    WaitKind = "unknown"
)

// WaitKinds lists every kind of wait.
func WaitKinds() []WaitKind {
	return []WaitKind{WaitClientTool, WaitApproval, WaitQuestion, WaitInput, WaitChild, WaitUnknown}
}

// MaxWaits is how many waits one suspension may open: closing all of them has
// to fit into one transaction.
const MaxWaits = 80

// Wait is one thing a suspended session waits for. It is written once, in the
// entry that opened it; its answer lives in the [journal.WaitRecord].
type Wait struct {
	// ID is w<seq of the entry that opened it>-<i>; asking again opens a new wait.
	ID   string   `json:"id"`
	Kind WaitKind `json:"kind"`
	// Needs names the features that a program must support to answer the wait, or to take its
	// answer in (see [journal.Entry]).
	Needs []string `json:"needs,omitempty"`
	// Nonce has to come back with the answer of an approval (approvalId).
	Nonce string `json:"nonce,omitempty"`

	// Call, Tool, Arguments and Digest say what was shown: the digest is that of
	// the arguments, and an answer counts for nothing else.
	Call      string          `json:"call,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Digest    string          `json:"digest,omitempty"`

	// Preview is what the tool shows of the call, and Claim what the agent said when it proposed it: text
	// of whoever the agent listens to. ShownDigest is the digest of both; an approval counts for nothing
	// where it, or they, have changed.
	Preview     *Preview `json:"preview,omitempty"`
	Claim       string   `json:"claim,omitempty"`
	ShownDigest string   `json:"shownDigest,omitempty"`

	Question *Question `json:"question,omitempty"`
	// Text for people: the agent's message, or what is not known.
	Text string `json:"text,omitempty"`
	// Child is the session waited for.
	Child string `json:"child,omitempty"`

	OpenedAt time.Time `json:"openedAt"`
	Deadline *Deadline `json:"deadline,omitempty"`
	// Who lists the callers who may answer; empty means every caller who may see the session.
	Who    []string `json:"who,omitempty"`
	Policy string   `json:"policy,omitempty"`
	// Rule says who else may answer, and how many must; nil where Who says all. Requesters asked for
	// the task; they are known where the rule keeps them from answering.
	Rule       *AnswerRule `json:"rule,omitempty"`
	Requesters []string    `json:"requesters,omitempty"`
	// Origin is the wait this one mirrors, in a descendant's session.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin names the wait that a mirrored wait is a copy of.
type Origin struct {
	Session string `json:"session"`
	Wait    string `json:"wait"`
}

// Deadline is when a wait ends by itself, and how.
type Deadline struct {
	At      time.Time       `json:"at"`
	Outcome DeadlineOutcome `json:"outcome"`
	// Value is the answer of the outcome default.
	Value json.RawMessage `json:"value,omitempty"`
	// After is the time from opening to At in nanoseconds, so that a repeated question gets the
	// same time.
	After time.Duration `json:"after,omitempty"`
	// Remind is how long before At whoever may answer is reminded, in nanoseconds.
	Remind []time.Duration `json:"remind,omitempty"`
	// Escalate is what comes at At in place of Outcome. The record of a wait that was escalated has none,
	// and the deadline that its Outcome comes at.
	Escalate *Escalation `json:"escalate,omitempty"`
}

// DeadlineOutcome says what an expiry means. It is recorded as an expiry, never as a person's no.
type DeadlineOutcome string

// The outcomes of a deadline.
const (
	ExpireDeny    DeadlineOutcome = "deny"
	ExpireDefault DeadlineOutcome = "default"
	ExpireFail    DeadlineOutcome = "fail"
	ExpireReask   DeadlineOutcome = "reask"
)

// QuestionKind says how a question is to be answered.
type QuestionKind string

// The kinds of question.
const (
	QuestionText        QuestionKind = "text"
	QuestionChoice      QuestionKind = "choice"
	QuestionMultiChoice QuestionKind = "multi_choice"
)

// Question is what a tool asks a person.
type Question struct {
	// ID is stable: the same question of the same call has the same id on every run of the tool.
	ID      string       `json:"id"`
	Kind    QuestionKind `json:"kind"`
	Text    string       `json:"text"`
	Choices []Choice     `json:"choices,omitempty"`
}

// Choice is one answer to choose.
type Choice struct {
	ID    string `json:"id"`
	Label string `json:"label,omitempty"`
	// Description says more of it to who chooses.
	Description string `json:"description,omitempty"`
	// Value is what the tool takes the choice for. It stays in the program: it is stored nowhere, and
	// nobody is shown it.
	Value any `json:"-"`
}

// AnswerKind says what an answer contains.
type AnswerKind string

// The kinds of answer.
const (
	AnswerClientTool AnswerKind = "client-tool-result"
	AnswerApproval   AnswerKind = "approval-response"
	AnswerReply      AnswerKind = "reply"
	AnswerMessage    AnswerKind = "message"
	AnswerChild      AnswerKind = "child-end"
	AnswerVerdict    AnswerKind = "verdict"
	AnswerExpiry     AnswerKind = "expiry"
	// AnswerDismissal: somebody who might have answered says, with a reason, that nobody will. It
	// decides nothing: the call has not been approved, denied or answered.
	AnswerDismissal AnswerKind = "dismissal"
)

// AnswerKinds lists every kind of answer.
func AnswerKinds() []AnswerKind {
	return []AnswerKind{AnswerClientTool, AnswerApproval, AnswerReply, AnswerMessage, AnswerChild, AnswerVerdict, AnswerExpiry, AnswerDismissal}
}

// Answer is what arrived for a wait, with its author, time and origin.
type Answer struct {
	// Wait is the id of the wait it answers.
	Wait string     `json:"wait"`
	Kind AnswerKind `json:"kind"`
	// ToolCallID is our id of the call, "" for input.
	ToolCallID string `json:"toolCallId,omitempty"`
	// ApprovalID is the nonce of the approval, QuestionID the question's stable id.
	ApprovalID string `json:"approvalId,omitempty"`
	QuestionID string `json:"id,omitempty"`

	// Approved, Reason and EditedInput of an approval; a verdict and a dismissal have a Reason too. Editing is an act of its
	// own: the tool then runs with EditedInput.
	Approved    *bool           `json:"approved,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	EditedInput json.RawMessage `json:"editedInput,omitempty"`
	// Standing allows more calls than the one that is approved.
	Standing *Standing `json:"standing,omitempty"`
	// Digest of the arguments that were decided on: those shown, or those edited. An
	// approval runs nothing without it, nor anything else.
	Digest string `json:"digest,omitempty"`
	// ShownDigest of what an approval was shown beside the arguments, as the wait has it. Preview is
	// what the tool shows of the edited arguments.
	ShownDigest string   `json:"shownDigest,omitempty"`
	Preview     *Preview `json:"preview,omitempty"`

	// Result or Error of a client tool, a child or a verdict. null, false, 0, ""
	// and [] are results.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`

	// Selected or Text of a reply to a question. An empty selection and an empty
	// text are replies.
	Selected []string `json:"selected,omitzero"`
	Text     *string  `json:"text,omitempty"`

	// Message of an input wait: text, images, files.
	Message []llm.Part `json:"message,omitempty"`
	// Status of a child that ended, or that paused while its parent supervises.
	Status Status `json:"status,omitempty"`
	// Verdict on an unknown outcome.
	Verdict Verdict `json:"verdict,omitempty"`
	// Outcome of an expiry.
	Outcome DeadlineOutcome `json:"outcome,omitempty"`

	Who string `json:"who"`
	// For is the person in whose place Who answered, to whom the wait was delegated or who stood in for them.
	For  string    `json:"for,omitempty"`
	When time.Time `json:"when"`
	From string    `json:"from"`
	// Escalated says that the wait had been escalated before.
	Escalated bool `json:"escalated,omitempty"`
	// Votes of an approval that needs several people: those that decided it, or that had come when it
	// expired. Who is then whose vote was the last.
	Votes []Vote `json:"votes,omitempty"`
	// Audit is the newest hash of the wait's audit lines when an entry took the
	// answer in; only there is it set.
	Audit string `json:"audit,omitempty"`
}

// Verdict is what a person found out about a side effect whose outcome was unknown.
type Verdict string

// The verdicts.
const (
	VerdictHappened    Verdict = "happened"
	VerdictNotHappened Verdict = "not_happened"
)

// WaitState says what became of a wait.
type WaitState string

// The states of a wait. Open ones can be answered; answered and expired ones
// are taken in by the entry that leaves the suspension; closed ones were abandoned.
const (
	WaitOpen     WaitState = "open"
	WaitAnswered WaitState = "answered"
	WaitExpired  WaitState = "expired"
	WaitTaken    WaitState = "taken"
	WaitClosed   WaitState = "closed"
)
