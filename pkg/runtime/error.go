package runtime

import (
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Class groups codes by what a caller can do about them. Exit codes and HTTP
// statuses are made of it, each in one place.
type Class string

// The classes of refusal.
const (
	// ClassInvalid: the request is wrong as it stands.
	ClassInvalid Class = "invalid"
	// ClassNotFound: there is no such session, wait or agent.
	ClassNotFound Class = "not_found"
	// ClassForbidden: the caller may not.
	ClassForbidden Class = "forbidden"
	// ClassConflict: the session's state does not allow it, or somebody was first.
	ClassConflict Class = "conflict"
	// ClassGone: it was too late; the wait has expired or was closed.
	ClassGone Class = "gone"
	// ClassUnavailable: the store or queue does not answer; try again.
	ClassUnavailable Class = "unavailable"
	// ClassInternal: a fault of ours or of the agent's code.
	ClassInternal Class = "internal"
)

// Code is a stable name of a refusal.
type Code string

// The codes.
const (
	CodeInvalidID           Code = "invalid_id"
	CodeInvalidInput        Code = "invalid_input"
	CodeInputTooLarge       Code = "input_too_large"
	CodeInvalidAnswer       Code = "invalid_answer"
	CodeWrongKind           Code = "wrong_kind"
	CodeUnknownAgent        Code = "unknown_agent"
	CodeAgentNotOffered     Code = "agent_not_offered"
	CodeInvalidModel        Code = "invalid_model"
	CodeSessionNotFound     Code = "session_not_found"
	CodeWaitNotFound        Code = "wait_not_found"
	CodeInvalidCheckpoint   Code = "invalid_checkpoint"
	CodeInvalidCursor       Code = "invalid_cursor"
	CodeNotAllowed          Code = "not_allowed"
	CodeAlreadyRunning      Code = "already_running"
	CodeNotResumable        Code = "not_resumable"
	CodeStillWaiting        Code = "still_waiting"
	CodeAlreadyAnswered     Code = "already_answered"
	CodeSessionEnded        Code = "session_ended"
	CodeStaleCheckpoint     Code = "stale_checkpoint"
	CodeAgentMismatch       Code = "agent_mismatch"
	CodeIdempotencyMismatch Code = "idempotency_mismatch"
	CodeNothingToDecide     Code = "nothing_to_decide"
	CodeExpired             Code = "expired"
	CodeStoreUnavailable    Code = "store_unavailable"
	CodeStoreLocked         Code = "store_locked"
	CodeStoreGone           Code = "store_gone"
	CodeNotOurs             Code = "not_an_adjourn_store"
	CodeNewerNeeded         Code = "newer_program_needed"
	CodeCorrupt             Code = "corrupt_journal"
	CodeInternal            Code = "internal"
)

// Class returns the class a code belongs to.
func (c Code) Class() Class {
	switch c {
	case CodeInvalidID, CodeInvalidInput, CodeInputTooLarge, CodeInvalidAnswer, CodeWrongKind, CodeInvalidCheckpoint,
		CodeInvalidModel, CodeInvalidCursor:
		return ClassInvalid
	case CodeUnknownAgent, CodeSessionNotFound, CodeWaitNotFound:
		return ClassNotFound
	case CodeNotAllowed, CodeAgentNotOffered:
		return ClassForbidden
	case CodeAlreadyRunning, CodeNotResumable, CodeStillWaiting, CodeAlreadyAnswered, CodeSessionEnded, CodeStaleCheckpoint,
		CodeAgentMismatch, CodeNothingToDecide, CodeIdempotencyMismatch:
		return ClassConflict
	case CodeExpired:
		return ClassGone
	case CodeStoreUnavailable, CodeStoreLocked, CodeStoreGone, CodeNotOurs, CodeNewerNeeded:
		return ClassUnavailable
	case CodeCorrupt, CodeInternal:
		return ClassInternal
	}
	return ClassInternal
}

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
	// Cause is the error underneath, if any.
	Cause error
	// wait is the one to which it refuses an answer, if it is about one.
	wait string
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

func refuse(code Code, key session.Key, format string, args ...any) *Error {
	return &Error{Code: code, Session: key.ID, Message: fmt.Sprintf(format, args...)}
}

// refuseAt is a refusal whose reason is where the session stands.
func refuseAt(code Code, key session.Key, status session.Status, format string, args ...any) *Error {
	e := refuse(code, key, format, args...)
	e.Status = status
	return e
}

func noSession(key session.Key) *Error {
	return refuse(CodeSessionNotFound, key, "there is no such session")
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
	code := CodeInternal
	switch {
	case errors.Is(err, session.ErrNeeds):
		code = CodeNewerNeeded
	case errors.Is(err, store.ErrNotFound):
		code = CodeSessionNotFound
	case errors.Is(err, store.ErrNotOurs), errors.Is(err, session.ErrUnknownFormat):
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
