package client

import (
	"context"
	"net/http"

	"github.com/adjourn/adjourn/pkg/session"
)

// DeleteParams remove a session.
type DeleteParams struct {
	SessionID string
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Deleted is the answer to a delete.
type Deleted struct {
	SessionID string `json:"sessionId"`
	// Status and Task the session had.
	Status session.Status `json:"status"`
	Task   int64          `json:"task"`
}

// Delete removes a session for good, whatever it does. Effects that it has done are not undone. Its
// id is never used again.
func (c *Client) Delete(ctx context.Context, p DeleteParams) (Deleted, error) {
	var out Deleted
	path, err := of(p.SessionID, "")
	if err != nil {
		return out, err
	}
	err = c.change(ctx, request{method: http.MethodDelete, path: path, session: p.SessionID}, p.IdempotencyKey, nil, 0, &out)
	return out, err
}
