package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/remote"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/wire"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// The exit codes (design section 9).
const (
	exitCompleted   = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitNotAllowed  = 4
	exitConflict    = 5
	exitPaused      = 10
	exitWaited      = 124
	exitInterrupted = 130
)

// usageError is a mistake in the words of a command.
type usageError struct {
	text    string
	cause   error
	command string
}

func (e *usageError) Error() string { return e.text }
func (e *usageError) Unwrap() error { return e.cause }

func usage(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// saidError ends a command whose outcome has been printed already.
type saidError struct{ code int }

func (e *saidError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// said ends a command with a code, when all has been printed.
func said(code int) error {
	if code == exitCompleted {
		return nil
	}
	return &saidError{code: code}
}

// exitCode is the one place that says what an outcome, or an error, means to a shell.
func exitCode(outcome session.Outcome, err error) int {
	if err == nil {
		switch outcome {
		case session.OutcomeCompleted:
			return exitCompleted
		case session.OutcomePaused:
			return exitPaused
		case session.OutcomeInterrupted:
			return exitInterrupted
		case session.OutcomeRunning:
			return exitWaited
		case session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
			return exitFailed
		}
		return exitFailed
	}
	var usage *usageError
	var said *saidError
	switch {
	case errors.As(err, &said):
		return said.code
	case errors.As(err, &usage), errors.Is(err, app.ErrInvalidSetting):
		return exitUsage
	case errors.Is(err, embedded.ErrNoData):
		return exitNotFound
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return exitWaited
	}
	switch class(err) {
	case runtime.ClassInvalid:
		return exitUsage
	case runtime.ClassNotFound:
		return exitNotFound
	case runtime.ClassForbidden:
		return exitNotAllowed
	case runtime.ClassConflict, runtime.ClassGone:
		return exitConflict
	case runtime.ClassUnavailable, runtime.ClassInternal:
		return exitFailed
	}
	return exitFailed
}

// apiClasses are the classes of codes that the runtime does not have: the HTTP
// API's own, and those of a server that does not answer as one.
var apiClasses = map[runtime.Code]runtime.Class{
	wire.CodeUnauthenticated: runtime.ClassForbidden, wire.CodeForbidden: runtime.ClassForbidden,
	wire.CodeRouteNotFound: runtime.ClassInvalid, wire.CodeMethodNotAllowed: runtime.ClassInvalid, wire.CodeUnsupportedMediaType: runtime.ClassInvalid,
	wire.CodeBodyTooLarge: runtime.ClassInvalid, wire.CodeBodyMissing: runtime.ClassInvalid, wire.CodeBodyUnreadable: runtime.ClassInvalid,
	wire.CodeMalformedJSON: runtime.ClassInvalid, wire.CodeUnknownField: runtime.ClassInvalid, wire.CodeDuplicateField: runtime.ClassInvalid,
	wire.CodeInvalidField: runtime.ClassInvalid, wire.CodeInvalidParameter: runtime.ClassInvalid, wire.CodeInvalidHeader: runtime.ClassInvalid,
	wire.CodeRequestTimeout: runtime.ClassUnavailable, client.CodeThrottled: runtime.ClassUnavailable,
	client.CodeUnavailable: runtime.ClassUnavailable, remote.CodeUnreachable: runtime.ClassUnavailable,
}

// class of a refusal: what a caller can do about it.
func class(err error) runtime.Class {
	code := runtime.AsError(err).Code
	if c, ok := apiClasses[code]; ok {
		return c
	}
	return code.Class()
}

// errorCode is the stable name of an error in a manifest.
func errorCode(err error) string {
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return "usage"
	case errors.Is(err, app.ErrInvalidSetting):
		return "invalid_setting"
	case errors.Is(err, embedded.ErrNoData):
		return string(runtime.CodeSessionNotFound)
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return string(runtime.AsError(err).Code)
}

// end prints what has not been said yet and returns the exit code.
func (c *cli) end(ctx context.Context, err error) int {
	var said *saidError
	switch {
	case err == nil:
		return exitCompleted
	case errors.As(err, &said):
		return said.code
	case ctx.Err() != nil && !errors.Is(err, context.Canceled):
		// What broke because it was interrupted, broke because of that.
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	c.refuse(session.Manifest{}, err)
	return exitCode("", err)
}

// refuse says that a command was refused: on stderr in words, and on stdout as
// a manifest when JSON was asked for. What is known of the session goes with it.
func (c *cli) refuse(m session.Manifest, err error) {
	m.Outcome = session.OutcomeError
	m.Error = &session.ManifestError{Code: errorCode(err), Message: err.Error()}
	var refused *runtime.Error
	if m.SessionID == "" && errors.As(err, &refused) {
		m.SessionID = refused.Session
	}
	if m.PauseReason != nil {
		// Not the command that decides: nobody has been shown what it decides on.
		// This one asks on a terminal, and elsewhere says what is open.
		m.ResumeHint = c.command(target("resume", m.SessionID)...)
	}
	if c.output == outputJSON {
		c.json(m)
	}
	var usage *usageError
	if errors.As(err, &usage) { // our own words, and some name a command
		c.suggest("%s", err.Error())
	} else {
		c.complain("%s", err.Error())
	}
	if usage != nil && usage.command != "" {
		c.suggest("see: %s --help", usage.command)
	}
	switch code := runtime.AsError(err).Code; {
	case code == remote.CodeUnreachable:
		c.suggest("is there a server at %s? One on this machine is started with: %s", c.server(), c.serveHint())
	case code == wire.CodeUnauthenticated:
		c.suggest("%s", c.tokenHint())
	case code == wire.CodeRouteNotFound:
		c.suggest("does the API begin at %s? --url names its first part, as the server printed it", c.server())
	case code == runtime.CodeSessionNotFound && !errors.Is(err, embedded.ErrNoData):
		c.suggest("list the sessions there are: %s", c.command("sessions"))
	case m.PauseReason == nil && (code == runtime.CodeWaitNotFound || code == runtime.CodeNothingToDecide):
		c.suggest("see what waits: %s", c.command("inbox"))
	case m.PauseReason != nil:
		c.suggest("what it waits for: %s", c.command(target("show", m.SessionID)...))
	case m.ResumeHint != "":
		c.suggest("to go on: %s", m.ResumeHint)
	}
}
