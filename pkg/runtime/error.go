package runtime

import (
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Class groups codes by what a caller can do about them. Exit codes and HTTP
// statuses are made of it, each in one place.
type Class = codes.Class

// The classes of refusal.
const (
	ClassInvalid     = codes.ClassInvalid
	ClassNotFound    = codes.ClassNotFound
	ClassForbidden   = codes.ClassForbidden
	ClassConflict    = codes.ClassConflict
	ClassGone        = codes.ClassGone
	ClassUnavailable = codes.ClassUnavailable
	ClassInternal    = codes.ClassInternal
)

// Code is a stable name of a refusal, the same in every interface.
type Code = codes.Code

// The codes.
const (
	CodeInvalidID              = codes.InvalidID
	CodeInvalidInput           = codes.InvalidInput
	CodeInputTooLarge          = codes.InputTooLarge
	CodeInvalidAnswer          = codes.InvalidAnswer
	CodeWrongKind              = codes.WrongKind
	CodeUnknownAgent           = codes.UnknownAgent
	CodeAgentNotOffered        = codes.AgentNotOffered
	CodeInvalidModel           = codes.InvalidModel
	CodeSessionNotFound        = codes.SessionNotFound
	CodeWaitNotFound           = codes.WaitNotFound
	CodeCheckpointNotFound     = codes.CheckpointNotFound
	CodePermissionNotFound     = codes.PermissionNotFound
	CodeInvalidCheckpoint      = codes.InvalidCheckpoint
	CodeInvalidCursor          = codes.InvalidCursor
	CodeNotAllowed             = codes.NotAllowed
	CodeRequesterMayNotAnswer  = codes.RequesterMayNotAnswer
	CodeSignInRequired         = codes.SignInRequired
	CodeAlreadyRunning         = codes.AlreadyRunning
	CodeNotResumable           = codes.NotResumable
	CodeStillWaiting           = codes.StillWaiting
	CodeAlreadyAnswered        = codes.AlreadyAnswered
	CodeSessionEnded           = codes.SessionEnded
	CodeSessionExists          = codes.SessionExists
	CodeStaleCheckpoint        = codes.StaleCheckpoint
	CodeAgentMismatch          = codes.AgentMismatch
	CodeIdempotencyMismatch    = codes.IdempotencyMismatch
	CodeApprovalMismatch       = codes.ApprovalMismatch
	CodeNothingToDecide        = codes.NothingToDecide
	CodeEffectsNotAcknowledged = codes.EffectsNotAcknowledged
	CodeNoDeadline             = codes.NoDeadline
	CodeTooManyActs            = codes.TooManyActs
	CodeStandInCycle           = codes.StandInCycle
	CodeTooManyStandIns        = codes.TooManyStandIns
	CodeExpired                = codes.Expired
	CodeStoreUnavailable       = codes.StoreUnavailable
	CodeStoreLocked            = codes.StoreLocked
	CodeStoreGone              = codes.StoreGone
	CodeNotOurs                = codes.NotOurs
	CodeNewerNeeded            = codes.NewerNeeded
	CodeCorrupt                = codes.Corrupt
	CodeInternal               = codes.Internal
)

// Error is a refused verb: what was wrong, with which session, and what to do.
type Error struct {
	Code    Code
	Session string
	// Message is for people: what, where, what to do.
	Message string
	// Status of the session when its state was the reason.
	Status session.Status
	// Answer that came first, of already_answered.
	Answer *session.Answer
	// Effects that were done, of effects_not_acknowledged.
	Effects *session.EffectsDone
	// Cause is the error underneath, if any.
	Cause error
}

// Error returns the message, with the session in front if there is one.
func (e *Error) Error() string {
	if e.Session == "" {
		return e.Message
	}
	return fmt.Sprintf("session %s: %s", e.Session, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// asResult is what a verb returns to its caller: the result, or nothing but an [*Error].
func asResult[T any](out T, err error) (T, error) {
	if err != nil {
		var none T
		return none, AsError(err)
	}
	return out, nil
}

// AsError returns the refusal an error holds, or makes one of what is
// underneath. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var r *refusal.Error
	if errors.As(err, &r) {
		return &Error{Code: r.Code, Session: r.Session, Message: r.Message, Status: r.Status, Answer: r.Answer, Effects: r.Effects, Cause: r.Cause}
	}
	code := CodeInternal
	switch {
	case errors.Is(err, journal.ErrNeeds):
		code = CodeNewerNeeded
	case errors.Is(err, store.ErrNotFound):
		code = CodeSessionNotFound
	case errors.Is(err, store.ErrNotOurs), errors.Is(err, journal.ErrUnknownFormat):
		code = CodeNotOurs
	case errors.Is(err, store.ErrCorrupt):
		code = CodeCorrupt
	case errors.Is(err, store.ErrLocked):
		code = CodeStoreLocked
	case errors.Is(err, store.ErrGone):
		code = CodeStoreGone
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, queue.ErrUnavailable):
		code = CodeStoreUnavailable
	case errors.Is(err, store.ErrInvalidCursor):
		code = CodeInvalidCursor
	case errors.Is(err, session.ErrInvalidID):
		code = CodeInvalidID
	case errors.Is(err, session.ErrInvalidCheckpoint):
		code = CodeInvalidCheckpoint
	}
	return &Error{Code: code, Message: err.Error(), Cause: err}
}
