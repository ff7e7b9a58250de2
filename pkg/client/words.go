package client

import (
	"github.com/adjourn/adjourn/internal/codes"
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
const MaxInput = codes.MaxInput

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
type Code = codes.Code

// Class says what a caller can do about a refusal.
type Class = codes.Class

// The classes of codes.
const (
	ClassInvalid     = codes.ClassInvalid
	ClassNotFound    = codes.ClassNotFound
	ClassForbidden   = codes.ClassForbidden
	ClassConflict    = codes.ClassConflict
	ClassGone        = codes.ClassGone
	ClassUnavailable = codes.ClassUnavailable
	ClassInternal    = codes.ClassInternal
)

// The codes of the verbs.
const (
	CodeInvalidID           = codes.InvalidID
	CodeInvalidInput        = codes.InvalidInput
	CodeInputTooLarge       = codes.InputTooLarge
	CodeInvalidAnswer       = codes.InvalidAnswer
	CodeWrongKind           = codes.WrongKind
	CodeUnknownAgent        = codes.UnknownAgent
	CodeAgentNotOffered     = codes.AgentNotOffered
	CodeInvalidModel        = codes.InvalidModel
	CodeSessionNotFound     = codes.SessionNotFound
	CodeWaitNotFound        = codes.WaitNotFound
	CodeInvalidCheckpoint   = codes.InvalidCheckpoint
	CodeInvalidCursor       = codes.InvalidCursor
	CodeNotAllowed          = codes.NotAllowed
	CodeAlreadyRunning      = codes.AlreadyRunning
	CodeNotResumable        = codes.NotResumable
	CodeStillWaiting        = codes.StillWaiting
	CodeAlreadyAnswered     = codes.AlreadyAnswered
	CodeSessionEnded        = codes.SessionEnded
	CodeStaleCheckpoint     = codes.StaleCheckpoint
	CodeAgentMismatch       = codes.AgentMismatch
	CodeIdempotencyMismatch = codes.IdempotencyMismatch
	CodeNothingToDecide     = codes.NothingToDecide
	CodeExpired             = codes.Expired
	CodeStoreUnavailable    = codes.StoreUnavailable
	CodeStoreLocked         = codes.StoreLocked
	CodeStoreGone           = codes.StoreGone
	CodeNotOurs             = codes.NotOurs
	CodeNewerNeeded         = codes.NewerNeeded
	CodeCorrupt             = codes.Corrupt
	CodeInternal            = codes.Internal
)

// The codes that only the HTTP API has.
const (
	CodeUnauthenticated      = codes.Unauthenticated
	CodeForbidden            = codes.Forbidden
	CodeRouteNotFound        = codes.RouteNotFound
	CodeMethodNotAllowed     = codes.MethodNotAllowed
	CodeUnsupportedMediaType = codes.UnsupportedMediaType
	CodeBodyTooLarge         = codes.BodyTooLarge
	CodeBodyMissing          = codes.BodyMissing
	CodeBodyUnreadable       = codes.BodyUnreadable
	CodeMalformedJSON        = codes.MalformedJSON
	CodeUnknownField         = codes.UnknownField
	CodeDuplicateField       = codes.DuplicateField
	CodeInvalidField         = codes.InvalidField
	CodeInvalidParameter     = codes.InvalidParameter
	CodeInvalidHeader        = codes.InvalidHeader
	CodeRequestTimeout       = codes.RequestTimeout
	CodeKeysUnreadable       = codes.KeysUnreadable
)

// Text returns a text as a message.
func Text(text string) Content { return llm.TextParts(text) }
