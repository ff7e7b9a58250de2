// Package exit says what an outcome, or an error, means to a shell.
package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/known"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// The exit codes (docs/cli.md).
const (
	Completed   = 0
	Failed      = 1
	Usage       = 2
	NotFound    = 3
	NotAllowed  = 4
	Conflict    = 5
	Paused      = 10
	Waited      = 124
	Interrupted = 130
)

// UsageError is a mistake in the words of a command.
type UsageError struct {
	Text  string
	Cause error
	// Command is the one whose help tells how it is done; "" where nobody knows yet.
	Command string
	// Paste is the whole command that says what was left out; "" where there is none.
	Paste string
}

func (e *UsageError) Error() string { return e.Text }
func (e *UsageError) Unwrap() error { return e.Cause }

// Usagef returns a mistake in the words of a command.
func Usagef(format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...)}
}

// SaidError ends a command whose outcome has been printed already.
type SaidError struct{ Code int }

func (e *SaidError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Said ends a command with a code, when all has been printed.
func Said(code int) error {
	if code == Completed {
		return nil
	}
	return &SaidError{Code: code}
}

// Code is the one place that says what an outcome, or an error, means to a shell.
func Code(outcome session.Outcome, err error) int {
	if err == nil {
		switch outcome {
		case session.OutcomeCompleted:
			return Completed
		case session.OutcomePaused:
			return Paused
		case session.OutcomeInterrupted:
			return Interrupted
		case session.OutcomeRunning:
			return Waited
		case session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
			return Failed
		}
		return Failed
	}
	var usage *UsageError
	var said *SaidError
	switch {
	case errors.As(err, &said):
		return said.Code
	case errors.As(err, &usage), errors.Is(err, app.ErrInvalidSetting):
		return Usage
	case errors.Is(err, known.ErrUntrusted), errors.Is(err, owned.ErrOthers):
		return NotAllowed
	case errors.Is(err, embedded.ErrNoData), CodeOf(err) == client.CodeStoreGone:
		return NotFound // of the latter: under the command's hands
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return Waited
	}
	switch Class(err) {
	case client.ClassInvalid:
		return Usage
	case client.ClassNotFound:
		return NotFound
	case client.ClassForbidden:
		return NotAllowed
	case client.ClassConflict, client.ClassGone:
		return Conflict
	case client.ClassUnavailable, client.ClassInternal:
		return Failed
	}
	return Failed
}

// Codes of refusals that no server sent.
const (
	// CodeUnreachable: no answer came.
	CodeUnreachable client.Code = "unreachable"
	// CodeUnexpected: what answered does not speak the API, or not as it should.
	CodeUnexpected client.Code = "unexpected_answer"
)

// RefusalError is what a command refuses by itself, as a server would.
type RefusalError struct {
	Code    client.Code
	Session string
	Message string
	Cause   error
}

func (e *RefusalError) Error() string {
	if e.Session == "" {
		return e.Message
	}
	return "session " + e.Session + ": " + e.Message
}

func (e *RefusalError) Unwrap() error { return e.Cause }

// Refusef returns a refusal about a session; "" for none.
func Refusef(code client.Code, id, format string, args ...any) error {
	return &RefusalError{Code: code, Session: id, Message: fmt.Sprintf(format, args...)}
}

// CodeOf is the stable code of an error: of the command's own, of what a server or the
// handler in this process answered, of a server that did not, or of the work on a data file.
func CodeOf(err error) client.Code {
	var own *RefusalError
	var refused *client.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &refused):
		return refused.Code()
	case errors.Is(err, client.ErrUnreachable):
		return CodeUnreachable
	case errors.Is(err, client.ErrRedirect), errors.Is(err, client.ErrScheme), errors.Is(err, client.ErrTooLarge), errors.Is(err, client.ErrNotAdjourn):
		return CodeUnexpected
	}
	return runtime.AsError(err).Code
}

// About returns the session that an error is about, "" if none, and the answer that came
// first where that is the reason.
func About(err error) (id string, answer *session.Answer) {
	var own *RefusalError
	var refused *client.Error
	var worked *runtime.Error
	var failed interface{ SessionID() string } // of the client: no answer, or none of the API
	switch {
	case errors.As(err, &own):
		return own.Session, nil
	case errors.As(err, &refused):
		return refused.Problem.SessionID, refused.Problem.Answer
	case errors.As(err, &worked):
		return worked.Session, worked.Answer
	case errors.As(err, &failed):
		return failed.SessionID(), nil
	}
	return "", nil
}

// Effects are what a session has done, where that is why a command is refused; nil elsewhere.
func Effects(err error) *session.EffectsDone {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Problem.Effects
	}
	return nil
}

// Class of a refusal: what a caller can do about it.
func Class(err error) client.Class {
	code := CodeOf(err)
	if code == client.CodeThrottled || code == client.CodeUnavailable || code == CodeUnreachable {
		return client.ClassUnavailable
	}
	return code.Class()
}

// ErrorCode is the stable name of an error in a manifest.
func ErrorCode(err error) string {
	var usage *UsageError
	switch {
	case errors.As(err, &usage):
		return "usage"
	case errors.Is(err, app.ErrInvalidSetting):
		return "invalid_setting"
	case errors.Is(err, embedded.ErrNoData):
		return string(client.CodeSessionNotFound)
	case errors.Is(err, known.ErrUntrusted):
		return "data_untrusted"
	case errors.Is(err, owned.ErrOthers):
		return "data_of_others"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return string(CodeOf(err))
}
