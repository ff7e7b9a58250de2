package runtime

import (
	"context"

	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/session"
)

// WaitView is a wait with what a person needs to decide. Its size does not grow with the session.
type WaitView = control.WaitView

// SaidMessage is the text of a message, or the beginning of it.
type SaidMessage = control.SaidMessage

// Wait returns a wait with what a person needs to decide.
func (r *Runtime) Wait(ctx context.Context, key session.Key, id string, caller Caller) (WaitView, error) {
	return asResult(r.control.Wait(ctx, key, id, caller))
}
