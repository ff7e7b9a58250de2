// Package refusal says why a verb is refused.
package refusal

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/session"
)

// Error says why a verb is refused. Callers see it as the error of package runtime.
type Error struct {
	Code    codes.Code
	Session string
	// Message is for people: what, where, what to do.
	Message string
	// Status of the session when its state was the reason.
	Status session.Status
	// Answer that came first, of already_answered.
	Answer *session.Answer
	// Effects that were done, of effects_not_acknowledged.
	Effects *session.EffectsDone
	// Wait is the one to which it refuses an answer, if it is about one.
	Wait string
	// Cause is the error underneath, if any.
	Cause error
}

// Error returns the message, with the session in front if there is one.
func (r *Error) Error() string {
	if r.Session == "" {
		return r.Message
	}
	return fmt.Sprintf("session %s: %s", r.Session, r.Message)
}

// Unwrap returns the cause.
func (r *Error) Unwrap() error { return r.Cause }

// New returns a refusal.
func New(code codes.Code, key session.Key, format string, args ...any) *Error {
	return &Error{Code: code, Session: key.ID, Message: fmt.Sprintf(format, args...)}
}

// At is a refusal because of the session's status.
func At(code codes.Code, key session.Key, status session.Status, format string, args ...any) *Error {
	r := New(code, key, format, args...)
	r.Status = status
	return r
}

// Stands says where a session stands that is refused something.
func Stands(status session.Status) string {
	if status == session.StatusFailed {
		return "it has failed"
	}
	return "it is " + string(status)
}

// NoSession refuses what is asked of a session that does not exist.
func NoSession(key session.Key) *Error {
	return New(codes.SessionNotFound, key, "there is no such session")
}

// About says of a refusal that it refuses an answer to a wait there is.
func About(wait string, err error) error {
	if r := (*Error)(nil); errors.As(err, &r) && r.Wait == "" {
		r.Wait = wait
	}
	return err
}

// MaxReason is how long a reason that a caller gives may be, in bytes.
const MaxReason = 1 << 10

// CheckReason refuses a reason that is too long or is no text.
func CheckReason(key session.Key, reason string) error {
	switch {
	case len(reason) > MaxReason:
		return New(codes.InputTooLarge, key, "a reason may have %d bytes, and this one has %d", MaxReason, len(reason))
	case !utf8.ValidString(reason):
		return New(codes.InvalidInput, key, "the reason is not valid UTF-8")
	}
	return nil
}
