package httpapi

import (
	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// permissions is GET /sessions/{id}/permissions.
func (h *handler) permissions(r *request) (*response, error) {
	if _, err := r.parameters(); err != nil {
		return nil, err
	}
	all, err := h.cfg.Runtime.Permissions(r.Context(), r.key())
	if err != nil {
		return nil, err
	}
	return ok(client.Permissions{Items: all})
}

// revoke is POST /sessions/{id}/permissions/{permission}/revoke. It needs no idempotency key: a permission
// is revoked once.
func (h *handler) revoke(r *request) (*response, error) {
	var body client.RevokeRequest
	if _, err := h.asked(r, &body, true); err != nil {
		return nil, err
	}
	revoked, repeated, err := h.cfg.Runtime.RevokePermission(r.Context(), r.key(), r.PathValue("permission"), body.Reason, r.by())
	if err != nil {
		return nil, err
	}
	return ok(client.Revoked{Permission: revoked, Repeated: repeated})
}

// previewPermission is POST /sessions/{id}/waits/{wait}/permission. It changes nothing.
func (h *handler) previewPermission(r *request) (*response, error) {
	var given session.Standing
	if _, err := h.asked(r, &given, false); err != nil {
		return nil, err
	}
	if err := checkStanding(&given); err != nil {
		return nil, err
	}
	preview, err := h.cfg.Runtime.PreviewPermission(r.Context(), r.key(), r.PathValue("wait"), given, r.by())
	if err != nil {
		return nil, err
	}
	return ok(preview)
}

// checkStanding refuses what the server says of a permission.
func checkStanding(s *session.Standing) error {
	if s != nil && !s.Until.IsZero() {
		return refuse(codes.InvalidField, "standing.until is not given: say for how long (for)")
	}
	return nil
}
