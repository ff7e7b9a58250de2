package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/adjourn/adjourn/pkg/session"
)

// Permissions are the standing permissions of a session, the oldest first.
type Permissions struct {
	Items []session.ShownPermission `json:"items"`
}

// RevokeRequest takes a standing permission back. Its reason is kept: 1 KiB at most.
type RevokeRequest struct {
	Reason string `json:"reason,omitempty"`
}

// Revoked is the answer to that; repeated says that it was revoked before, and nothing was done again.
type Revoked struct {
	Permission session.ShownPermission `json:"permission"`
	Repeated   bool                    `json:"repeated,omitempty"`
}

// Permissions returns the standing permissions of a session.
func (c *Client) Permissions(ctx context.Context, id string) (Permissions, error) {
	return list[Permissions](ctx, c, id, "permissions", url.Values{}, 0)
}

// RevokePermission takes a standing permission back: a step that begins later does not use it.
func (c *Client) RevokePermission(ctx context.Context, id, permission, reason string) (Revoked, error) {
	if !isID(permission) {
		return Revoked{}, fmt.Errorf("%.80q is not the id of a permission, as w2-1 is", permission)
	}
	return verb[Revoked](ctx, c, id, "permissions/"+permission+"/revoke", false, "", RevokeRequest{Reason: reason}, 0)
}

// PreviewPermission says what a standing permission would be that is given with the approval of a wait.
func (c *Client) PreviewPermission(ctx context.Context, id, wait string, given session.Standing) (session.PermissionPreview, error) {
	what, err := ofWait(wait, "permission")
	if err != nil {
		return session.PermissionPreview{}, err
	}
	return verb[session.PermissionPreview](ctx, c, id, what, false, "", given, 0)
}
