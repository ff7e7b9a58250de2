// Package codes lists the codes with which requests are refused.
package codes

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
	InvalidID          Code = "invalid_id"
	InvalidInput       Code = "invalid_input"
	InputTooLarge      Code = "input_too_large"
	InvalidAnswer      Code = "invalid_answer"
	WrongKind          Code = "wrong_kind"
	UnknownAgent       Code = "unknown_agent"
	AgentNotOffered    Code = "agent_not_offered"
	InvalidModel       Code = "invalid_model"
	SessionNotFound    Code = "session_not_found"
	WaitNotFound       Code = "wait_not_found"
	CheckpointNotFound Code = "checkpoint_not_found"
	PermissionNotFound Code = "permission_not_found"
	InvalidCheckpoint  Code = "invalid_checkpoint"
	InvalidCursor      Code = "invalid_cursor"
	NotAllowed         Code = "not_allowed"
	// RequesterMayNotAnswer: who asked for the task may not decide about it, or it is not known who did.
	RequesterMayNotAnswer Code = "requester_may_not_answer"
	// SignInRequired: a signed link does not say who uses it.
	SignInRequired      Code = "sign_in_required"
	AlreadyRunning      Code = "already_running"
	NotResumable        Code = "not_resumable"
	StillWaiting        Code = "still_waiting"
	AlreadyAnswered     Code = "already_answered"
	SessionEnded        Code = "session_ended"
	SessionExists       Code = "session_exists"
	StaleCheckpoint     Code = "stale_checkpoint"
	AgentMismatch       Code = "agent_mismatch"
	IdempotencyMismatch Code = "idempotency_mismatch"
	ApprovalMismatch    Code = "approval_mismatch"
	NothingToDecide     Code = "nothing_to_decide"
	// EffectsNotAcknowledged: a session did things after a checkpoint, and the caller has not said to
	// have seen them.
	EffectsNotAcknowledged Code = "effects_not_acknowledged"
	// NoDeadline: a wait that waits for ever has no deadline to extend.
	NoDeadline Code = "no_deadline"
	// TooManyActs: a wait was extended and delegated as often as it may be.
	TooManyActs Code = "too_many_acts"
	// StandInCycle: people who are away would stand in for each other. TooManyStandIns: as many are away as may be.
	StandInCycle     Code = "stand_in_cycle"
	TooManyStandIns  Code = "too_many_stand_ins"
	Expired          Code = "expired"
	StoreUnavailable Code = "store_unavailable"
	StoreLocked      Code = "store_locked"
	StoreGone        Code = "store_gone"
	NotOurs          Code = "not_an_adjourn_store"
	NewerNeeded      Code = "newer_program_needed"
	Corrupt          Code = "corrupt_journal"
	Internal         Code = "internal"
)

// Codes that only the HTTP API has; all others are those of the verbs.
const (
	Unauthenticated      = "unauthenticated"
	Forbidden            = "forbidden"
	RouteNotFound        = "route_not_found"
	MethodNotAllowed     = "method_not_allowed"
	UnsupportedMediaType = "unsupported_media_type"
	BodyTooLarge         = "body_too_large"
	BodyMissing          = "body_missing"
	BodyUnreadable       = "body_unreadable"
	MalformedJSON        = "malformed_json"
	UnknownField         = "unknown_field"
	DuplicateField       = "duplicate_field"
	InvalidField         = "invalid_field"
	InvalidParameter     = "invalid_parameter"
	InvalidHeader        = "invalid_header"
	RequestTimeout       = "timeout"
	// KeysUnreadable: the server cannot read its own file of keys, so that it
	// lets nobody in.
	KeysUnreadable = "keys_unreadable"
	// LinksOff: the server has no keys to sign links with.
	LinksOff = "links_off"
)

// Class returns the class a code belongs to.
func (c Code) Class() Class {
	switch c {
	case InvalidID, InvalidInput, InputTooLarge, InvalidAnswer, WrongKind, InvalidCheckpoint,
		InvalidModel, InvalidCursor:
		return ClassInvalid
	case UnknownAgent, SessionNotFound, WaitNotFound, CheckpointNotFound, PermissionNotFound:
		return ClassNotFound
	case NotAllowed, AgentNotOffered, RequesterMayNotAnswer, SignInRequired:
		return ClassForbidden
	case AlreadyRunning, NotResumable, StillWaiting, AlreadyAnswered, SessionEnded, StaleCheckpoint,
		AgentMismatch, NothingToDecide, IdempotencyMismatch, ApprovalMismatch, SessionExists, EffectsNotAcknowledged, NoDeadline, TooManyActs, StandInCycle, TooManyStandIns:
		return ClassConflict
	case Expired:
		return ClassGone
	case StoreUnavailable, StoreLocked, StoreGone, NotOurs, NewerNeeded:
		return ClassUnavailable
	case Corrupt, Internal:
		return ClassInternal
	}
	return apiClass(string(c))
}

// apiClass is the class of a code that only the HTTP API has.
func apiClass(code string) Class {
	switch code {
	case RouteNotFound, MethodNotAllowed, UnsupportedMediaType, BodyTooLarge, BodyMissing, BodyUnreadable,
		MalformedJSON, UnknownField, DuplicateField, InvalidField, InvalidParameter, InvalidHeader:
		return ClassInvalid
	case LinksOff:
		return ClassNotFound
	case Unauthenticated, Forbidden:
		return ClassForbidden
	case RequestTimeout, KeysUnreadable:
		return ClassUnavailable
	}
	return ClassInternal
}

// MaxInput is the largest user message in bytes, all its parts together: a larger one is
// [InputTooLarge].
const MaxInput = 4 << 20
