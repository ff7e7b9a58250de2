package client

import "github.com/adjourn/adjourn/internal/codes"

// Names of headers and media types that the API gives a meaning.
const (
	// HeaderIdempotencyKey makes it harmless to repeat a request that changes something:
	// 1 to 255 visible ASCII characters.
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderIdempotencyReplayed is "true" on the answer to a request that was carried out before under its key.
	HeaderIdempotencyReplayed = "Idempotency-Replayed"
	// HeaderPrefer with wait=N asks the server to answer only when the session
	// rests, or after N seconds; with cancel-on-disconnect beside it the task is cancelled if the
	// client goes away meanwhile. HeaderPreferenceApplied says what the server was ready to do.
	HeaderPrefer            = "Prefer"
	HeaderPreferenceApplied = "Preference-Applied"
	// PreferCancelOnDisconnect is that preference.
	PreferCancelOnDisconnect = "cancel-on-disconnect"
	// HeaderRequestID names one request in the answer and in the server's log.
	HeaderRequestID = "X-Request-Id"

	MediaJSON    = "application/json"
	MediaProblem = "application/problem+json"
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
	CodeLinksOff             = codes.LinksOff
)
