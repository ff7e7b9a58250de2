package wire

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

// The codes of the verbs.
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
	return apiClass(string(c))
}

// apiClass is the class of a code that only the HTTP API has.
func apiClass(code string) Class {
	switch code {
	case CodeRouteNotFound, CodeMethodNotAllowed, CodeUnsupportedMediaType, CodeBodyTooLarge, CodeBodyMissing, CodeBodyUnreadable,
		CodeMalformedJSON, CodeUnknownField, CodeDuplicateField, CodeInvalidField, CodeInvalidParameter, CodeInvalidHeader:
		return ClassInvalid
	case CodeUnauthenticated, CodeForbidden:
		return ClassForbidden
	case CodeRequestTimeout, CodeKeysUnreadable:
		return ClassUnavailable
	}
	return ClassInternal
}
