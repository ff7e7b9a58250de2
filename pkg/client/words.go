package client

import (
	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/llm"
)

// What is sent: the bodies of requests, and the values in them.
type (
	// StartRequest begins a session, or its next turn.
	StartRequest = wire.StartRequest
	// SubmitRequest answers one wait of a session.
	SubmitRequest = wire.SubmitRequest
	// ResumeRequest goes on with a session, in one of the ways of [ResumeMode].
	ResumeRequest = wire.ResumeRequest
	// ResumeMode says how a session goes on.
	ResumeMode = wire.ResumeMode
	// Confirmation answers the one approval that is open.
	Confirmation = wire.Confirmation
	// Decisions answer several approvals at once.
	Decisions = wire.Decisions
	// Content is a user's message; [Text] makes one of a text.
	Content = wire.Content
)

// MaxInput is the largest [Content] in bytes, all its parts together.
const MaxInput = wire.MaxInput

// The answers to the verbs.
type (
	// Started is the answer to a start.
	Started = wire.Started
	// StartEntry is the entry of the journal that a start wrote.
	StartEntry = wire.StartEntry
	// Submitted is the answer to a submit.
	Submitted = wire.Submitted
	// Resumed is the answer to a resume.
	Resumed = wire.Resumed
	// Continuation says what follows an answer.
	Continuation = wire.Continuation
)

// What is read of sessions.
type (
	// Session says in which state a session is: its waits, why it failed, what it used.
	Session = wire.Session
	// Pause says why a session waits, and for what.
	Pause = wire.Pause
	// Failure says why a task failed.
	Failure = wire.Failure
	// Usage counts tokens, calls and cost.
	Usage = wire.Usage
	// Wait is one approval, question or input a session waits or waited for, and its outcome.
	Wait = wire.Wait
	// Sessions is a page of [Summary].
	Sessions = wire.Sessions
	// Summary is one session in a list.
	Summary = wire.Summary
	// Messages is a page of the conversation.
	Messages = wire.Messages
	// Runs is a page of GET /sessions/{id}/runs, the oldest first.
	Runs = wire.Runs
	// Checkpoints is a page of [Checkpoint].
	Checkpoints = wire.Checkpoints
	// Checkpoint is an entry that a session can be referred to by.
	Checkpoint = wire.Checkpoint
	// Waits is a page of [Wait].
	Waits = wire.Waits
	// Entries is a page of the journal.
	Entries = wire.Entries
	// LeftOut says that a value is too large to be sent.
	LeftOut = wire.LeftOut
	// Problem is what a refusal says (RFC 9457); see [Error].
	Problem = wire.Problem
)

// The continuations of an answer.
const (
	ContinuationResumed = wire.ContinuationResumed
	ContinuationWaiting = wire.ContinuationWaiting
	ContinuationStored  = wire.ContinuationStored
)

// The modes of a resume. What is brought tells the mode, so it may be left out.
const (
	ResumeContinue         = wire.ResumeContinue
	ResumeWithMessage      = wire.ResumeWithMessage
	ResumeWithConfirmation = wire.ResumeWithConfirmation
	ResumeWithDecisions    = wire.ResumeWithDecisions
)

// Code is the stable name of a refusal.
type Code = wire.Code

// Class says what a caller can do about a refusal.
type Class = wire.Class

// The classes of codes.
const (
	ClassInvalid     = wire.ClassInvalid
	ClassNotFound    = wire.ClassNotFound
	ClassForbidden   = wire.ClassForbidden
	ClassConflict    = wire.ClassConflict
	ClassGone        = wire.ClassGone
	ClassUnavailable = wire.ClassUnavailable
	ClassInternal    = wire.ClassInternal
)

// The codes of the verbs.
const (
	CodeInvalidID           = wire.CodeInvalidID
	CodeInvalidInput        = wire.CodeInvalidInput
	CodeInputTooLarge       = wire.CodeInputTooLarge
	CodeInvalidAnswer       = wire.CodeInvalidAnswer
	CodeWrongKind           = wire.CodeWrongKind
	CodeUnknownAgent        = wire.CodeUnknownAgent
	CodeAgentNotOffered     = wire.CodeAgentNotOffered
	CodeInvalidModel        = wire.CodeInvalidModel
	CodeSessionNotFound     = wire.CodeSessionNotFound
	CodeWaitNotFound        = wire.CodeWaitNotFound
	CodeInvalidCheckpoint   = wire.CodeInvalidCheckpoint
	CodeInvalidCursor       = wire.CodeInvalidCursor
	CodeNotAllowed          = wire.CodeNotAllowed
	CodeAlreadyRunning      = wire.CodeAlreadyRunning
	CodeNotResumable        = wire.CodeNotResumable
	CodeStillWaiting        = wire.CodeStillWaiting
	CodeAlreadyAnswered     = wire.CodeAlreadyAnswered
	CodeSessionEnded        = wire.CodeSessionEnded
	CodeStaleCheckpoint     = wire.CodeStaleCheckpoint
	CodeAgentMismatch       = wire.CodeAgentMismatch
	CodeIdempotencyMismatch = wire.CodeIdempotencyMismatch
	CodeNothingToDecide     = wire.CodeNothingToDecide
	CodeExpired             = wire.CodeExpired
	CodeStoreUnavailable    = wire.CodeStoreUnavailable
	CodeStoreLocked         = wire.CodeStoreLocked
	CodeStoreGone           = wire.CodeStoreGone
	CodeNotOurs             = wire.CodeNotOurs
	CodeNewerNeeded         = wire.CodeNewerNeeded
	CodeCorrupt             = wire.CodeCorrupt
	CodeInternal            = wire.CodeInternal
)

// The codes that only the HTTP API has.
const (
	CodeUnauthenticated      = wire.CodeUnauthenticated
	CodeForbidden            = wire.CodeForbidden
	CodeRouteNotFound        = wire.CodeRouteNotFound
	CodeMethodNotAllowed     = wire.CodeMethodNotAllowed
	CodeUnsupportedMediaType = wire.CodeUnsupportedMediaType
	CodeBodyTooLarge         = wire.CodeBodyTooLarge
	CodeBodyMissing          = wire.CodeBodyMissing
	CodeBodyUnreadable       = wire.CodeBodyUnreadable
	CodeMalformedJSON        = wire.CodeMalformedJSON
	CodeUnknownField         = wire.CodeUnknownField
	CodeDuplicateField       = wire.CodeDuplicateField
	CodeInvalidField         = wire.CodeInvalidField
	CodeInvalidParameter     = wire.CodeInvalidParameter
	CodeInvalidHeader        = wire.CodeInvalidHeader
	CodeRequestTimeout       = wire.CodeRequestTimeout
	CodeKeysUnreadable       = wire.CodeKeysUnreadable
)

// Text returns a text as a message.
func Text(text string) Content { return llm.TextParts(text) }
