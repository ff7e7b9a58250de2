package client

import (
	"context"
	"net/http"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// AwayRequest says who stands in for the caller while they are away.
type AwayRequest struct {
	// To stands in, as the server knows them, from Begins, zero for now, until Until: 366 days from now at most.
	To     string    `json:"to"`
	Begins time.Time `json:"begins,omitzero"`
	Until  time.Time `json:"until"`
	// Reason is kept with it: 1 KiB at most.
	Reason string `json:"reason,omitempty"`
}

// AwayChanged is the answer to who says that they are away, or back.
type AwayChanged struct {
	// StandIn that was set or ended; left out where there was none to end.
	StandIn *session.StandIn `json:"standIn,omitempty"`
	// Already says that just that was set before.
	Already bool `json:"already,omitempty"`
}

// Away says who stands in for whom, now or later, and the newest 100 changes of it.
type Away struct {
	Items   []session.StandIn       `json:"items"`
	Changes []session.StandInChange `json:"changes"`
}

// SetAway says who stands in for the caller, in the place of what they said before.
func (c *Client) SetAway(ctx context.Context, asked AwayRequest) (AwayChanged, error) {
	var out AwayChanged
	err := c.change(ctx, request{method: http.MethodPut, path: "away"}, "", asked, 0, &out)
	return out, err
}

// EndAway says that the caller is back.
func (c *Client) EndAway(ctx context.Context) (AwayChanged, error) {
	var out AwayChanged
	err := c.change(ctx, request{method: http.MethodDelete, path: "away"}, "", nil, 0, &out)
	return out, err
}

// Away lists who stands in for whom.
func (c *Client) Away(ctx context.Context) (Away, error) {
	var out Away
	err := c.send(ctx, request{method: http.MethodGet, path: "away"}, &out)
	return out, err
}
