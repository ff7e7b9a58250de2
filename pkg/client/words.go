package client

import (
	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/llm"
)

// What is sent: the bodies of requests, and what is in them.
type (
	// StartRequest begins a session, or its next turn.
	StartRequest = wire.StartRequest
	// SubmitRequest answers one thing a session waits for.
	SubmitRequest = wire.SubmitRequest
	// ResumeRequest goes on with a session, in one of the ways of [ResumeMode].
	ResumeRequest = wire.ResumeRequest
	ResumeMode    = wire.ResumeMode
	// Confirmation answers the one open approval, Decisions several at once.
	Confirmation = wire.Confirmation
	Decisions    = wire.Decisions
	// Content is a user's message; [Text] makes one of a text.
	Content = wire.Content
)

// MaxInput is the largest [Content] in bytes, all its parts together.
const MaxInput = wire.MaxInput

// What comes back.
type (
	// Started, Submitted and Resumed are the answers to the verbs.
	Started    = wire.Started
	StartEntry = wire.StartEntry
	Submitted  = wire.Submitted
	Resumed    = wire.Resumed
	// Continuation says what follows an answer.
	Continuation = wire.Continuation

	// Session says where a session stands: what it waits for, why it failed, what it used.
	Session = wire.Session
	Pause   = wire.Pause
	Failure = wire.Failure
	Usage   = wire.Usage
	// Wait is one thing a session waits or waited for, with what became of it.
	Wait = wire.Wait

	// Sessions is a page of Summaries; the others are pages, too.
	Sessions    = wire.Sessions
	Summary     = wire.Summary
	Messages    = wire.Messages
	Runs        = wire.Runs
	Checkpoints = wire.Checkpoints
	Checkpoint  = wire.Checkpoint
	Waits       = wire.Waits
	Entries     = wire.Entries

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

// Code is the stable name of a refusal, Class what a caller can do about it.
type (
	Code  = wire.Code
	Class = wire.Class
)

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
