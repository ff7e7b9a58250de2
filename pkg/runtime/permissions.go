package runtime

import (
	"context"
	"errors"

	"github.com/adjourn/adjourn/pkg/runtime/internal/permissions"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func (r *Runtime) permissions() *permissions.Book {
	return &permissions.Book{Sessions: r.sessions, Registry: r.cfg.Registry, Now: r.cfg.Now, Digest: r.worker.Digest}
}

// Permissions returns the standing permissions of a session, the oldest first.
func (r *Runtime) Permissions(ctx context.Context, key session.Key) ([]session.ShownPermission, error) {
	return asResult(r.permissions().List(ctx, key))
}

// RevokePermission takes a standing permission back: a step that begins after it does not use it. repeated
// says that somebody had done so before, whose reason stays.
func (r *Runtime) RevokePermission(ctx context.Context, key session.Key, id, reason string, by Caller) (out session.ShownPermission, repeated bool, err error) {
	for range maxTries {
		out, repeated, err = r.permissions().Revoke(ctx, key, id, session.Revocation{Who: by.Who, From: by.From, Reason: reason})
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	if err != nil {
		return session.ShownPermission{}, false, AsError(err)
	}
	return out, repeated, nil
}

// PreviewPermission says what a standing permission would be that is given with the approval of a wait, and
// which calls of before it would have covered. It is refused as that answer would be, and writes nothing.
func (r *Runtime) PreviewPermission(ctx context.Context, key session.Key, wait string, given session.Standing, by Caller) (session.PermissionPreview, error) {
	return asResult(r.previewPermission(ctx, key, wait, given, by))
}

func (r *Runtime) previewPermission(ctx context.Context, key session.Key, wait string, given session.Standing, by Caller) (session.PermissionPreview, error) {
	a, err := r.sessions.LoadSuspension(ctx, key)
	if err != nil {
		return session.PermissionPreview{}, err
	}
	item, err := r.sessions.Wait(ctx, a, wait)
	switch {
	case err != nil:
		return session.PermissionPreview{}, err
	case item.Wait == nil:
		return session.PermissionPreview{}, refusal.New(CodeWaitNotFound, key, "there is no wait %q", wait)
	case item.Wait.Wait.Kind != session.WaitApproval:
		return session.PermissionPreview{}, refusal.New(CodeWrongKind, key, "%s is no approval, with which a standing permission is given", wait)
	}
	checked, err := r.answers.CheckStanding(ctx, key, r.sessions.AsOfNow(*item.Wait), given, by)
	if err != nil {
		return session.PermissionPreview{}, err
	}
	return r.permissions().Preview(ctx, key, *item.Wait, checked)
}
