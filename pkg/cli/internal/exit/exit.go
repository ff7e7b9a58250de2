// Package exit says what an outcome, or an error, means to a shell.
package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/internal/wire"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/known"
	"github.com/adjourn/adjourn/pkg/cli/internal/remote"
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
	case errors.Is(err, embedded.ErrNoData), runtime.AsError(err).Code == runtime.CodeStoreGone:
		return NotFound // of the latter: under the command's hands
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return Waited
	}
	switch Class(err) {
	case runtime.ClassInvalid:
		return Usage
	case runtime.ClassNotFound:
		return NotFound
	case runtime.ClassForbidden:
		return NotAllowed
	case runtime.ClassConflict, runtime.ClassGone:
		return Conflict
	case runtime.ClassUnavailable, runtime.ClassInternal:
		return Failed
	}
	return Failed
}

// apiClasses are the classes of codes that the runtime does not have: the HTTP
// API's own, and those of a server that does not answer as one.
var apiClasses = map[runtime.Code]runtime.Class{
	wire.CodeUnauthenticated: runtime.ClassForbidden, wire.CodeForbidden: runtime.ClassForbidden,
	wire.CodeRouteNotFound: runtime.ClassInvalid, wire.CodeMethodNotAllowed: runtime.ClassInvalid, wire.CodeUnsupportedMediaType: runtime.ClassInvalid,
	wire.CodeBodyTooLarge: runtime.ClassInvalid, wire.CodeBodyMissing: runtime.ClassInvalid, wire.CodeBodyUnreadable: runtime.ClassInvalid,
	wire.CodeMalformedJSON: runtime.ClassInvalid, wire.CodeUnknownField: runtime.ClassInvalid, wire.CodeDuplicateField: runtime.ClassInvalid,
	wire.CodeInvalidField: runtime.ClassInvalid, wire.CodeInvalidParameter: runtime.ClassInvalid, wire.CodeInvalidHeader: runtime.ClassInvalid,
	wire.CodeRequestTimeout: runtime.ClassUnavailable, wire.CodeKeysUnreadable: runtime.ClassUnavailable, client.CodeThrottled: runtime.ClassUnavailable,
	client.CodeUnavailable: runtime.ClassUnavailable, remote.CodeUnreachable: runtime.ClassUnavailable,
}

// Class of a refusal: what a caller can do about it.
func Class(err error) runtime.Class {
	code := runtime.AsError(err).Code
	if c, ok := apiClasses[code]; ok {
		return c
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
		return string(runtime.CodeSessionNotFound)
	case errors.Is(err, known.ErrUntrusted):
		return "data_untrusted"
	case errors.Is(err, owned.ErrOthers):
		return "data_of_others"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return string(runtime.AsError(err).Code)
}
