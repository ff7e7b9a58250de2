package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// Codes of refusals that no server sent.
const (
	// CodeUnreachable: no answer came.
	CodeUnreachable runtime.Code = "unreachable"
	// CodeUnexpected: what answered does not speak the API, or not as it should.
	CodeUnexpected runtime.Code = "unexpected_answer"
)

// refusal returns what became of a request in the runtime's words. That the
// caller left, or ran out of time, stays what it is.
func (e *Engine) refusal(key session.Key, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var refused *client.Error
	switch {
	case errors.As(err, &refused):
		p := refused.Problem
		message := p.Detail
		if p.RequestID != "" {
			message += fmt.Sprintf(" (request %s)", p.RequestID)
		}
		id := p.SessionID
		if id != "" && !isID(id) {
			id = key.ID // what else it may be is in no command
		}
		return &runtime.Error{Code: runtime.Code(p.Code), Session: id, Message: message, Status: p.SessionStatus, Answer: p.Answer, Cause: err}
	case errors.Is(err, client.ErrUnreachable):
		return &runtime.Error{Code: CodeUnreachable, Session: key.ID, Message: err.Error(), Cause: err}
	case errors.Is(err, client.ErrRedirect), errors.Is(err, client.ErrScheme), errors.Is(err, client.ErrTooLarge), errors.Is(err, client.ErrNotAdjourn):
		return &runtime.Error{Code: CodeUnexpected, Session: key.ID, Message: err.Error(), Cause: err}
	}
	return runtime.AsError(err)
}
