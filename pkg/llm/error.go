package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrorClass says what kind of failure a model call met.
type ErrorClass string

// The classes of error.
const (
	ClassRateLimited     ErrorClass = "rate_limited"
	ClassOverloaded      ErrorClass = "overloaded"
	ClassTimeout         ErrorClass = "timeout"
	ClassContextOverflow ErrorClass = "context_overflow"
	ClassRefused         ErrorClass = "refused"
	ClassInvalid         ErrorClass = "invalid"
	ClassAuth            ErrorClass = "auth"
)

// Error is a failed model call.
type Error struct {
	Class ErrorClass
	// Message is the provider's own words, without secrets.
	Message string
	// Status is the HTTP status, 0 when there was none.
	Status int
	// RetryAfter is how long the provider asks us to wait; 0 when it did not say.
	RetryAfter time.Duration
	// Cause is the error underneath, if any.
	Cause error
}

// Error says class, status and message.
func (e *Error) Error() string {
	var network net.Error
	if e.Status == 0 && e.Class == ClassOverloaded && e.Message != "" && errors.As(e.Cause, &network) {
		return "model call: " + e.Message // nobody answered, so nobody is known to be overloaded
	}
	text := fmt.Sprintf("model call: %s", e.Class)
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool {
	switch e.Class {
	case ClassRateLimited, ClassOverloaded, ClassTimeout:
		return true
	case ClassContextOverflow, ClassRefused, ClassInvalid, ClassAuth:
		return false
	}
	return false
}

// ContextError says why ctx is done, nil when it is not. A deadline that passed
// is an [*Error] of class timeout; a cancellation is the caller's own wish and
// no [*Error]. Both wrap ctx.Err() and the cause the caller gave.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Class: ClassTimeout, Message: "the deadline passed before the reply was complete", Cause: err}
	}
	return fmt.Errorf("model call: %w", err)
}
