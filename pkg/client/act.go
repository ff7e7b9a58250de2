package client

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// DismissRequest says of a wait that nobody will answer it.
type DismissRequest struct {
	// Reason is told to the agent, and kept: 1 KiB at most. It is required.
	Reason string `json:"reason"`
}

// ExtendRequest gives a wait with a deadline a later one.
type ExtendRequest struct {
	// Deadline is later than the present one, and 30 days from now at most.
	Deadline time.Time `json:"deadline"`
	// Reason is kept with it: 1 KiB at most.
	Reason string `json:"reason,omitempty"`
}

// DelegateRequest lets another person answer a wait in the place of the caller.
type DelegateRequest struct {
	// To is that person, as the server knows them.
	To string `json:"to"`
	// Reason is kept with it: 1 KiB at most.
	Reason string `json:"reason,omitempty"`
}

// Acted is the answer to a dismissal, an extension or a delegation.
type Acted struct {
	// Wait as it is with what was done.
	Wait         Wait         `json:"wait"`
	Continuation Continuation `json:"continuation"`
	// Open is what the session still waits for.
	Open []Wait `json:"open"`
	// Repeated says that the caller had done the same before; nothing was done again.
	Repeated bool `json:"repeated,omitempty"`
	// Session as it stood when the answer was made; left out when it could not be read.
	Session *Session `json:"session,omitempty"`
	// LeftOut lists what is not in it, being too large to be sent.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// ActParams do something to an open wait without deciding it.
type ActParams[Request any] struct {
	SessionID string
	WaitID    string
	Request   Request
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
}

// Dismiss says of a wait that nobody will answer it: its call ends as refused, with the reason.
func (c *Client) Dismiss(ctx context.Context, p ActParams[DismissRequest]) (Acted, error) {
	return act(ctx, c, "dismiss", p)
}

// Extend gives a wait a later deadline.
func (c *Client) Extend(ctx context.Context, p ActParams[ExtendRequest]) (Acted, error) {
	return act(ctx, c, "extend", p)
}

// Delegate lets another person answer a wait, in the place of the caller.
func (c *Client) Delegate(ctx context.Context, p ActParams[DelegateRequest]) (Acted, error) {
	return act(ctx, c, "delegate", p)
}

func act[Request any](ctx context.Context, c *Client, how string, p ActParams[Request]) (Acted, error) {
	what, err := ofWait(p.WaitID, how)
	if err != nil {
		return Acted{}, err
	}
	return verb[Acted](ctx, c, p.SessionID, what, false, p.IdempotencyKey, p.Request, p.Wait)
}

// ofWait returns the path of something of a wait, below its session. An id that is none is refused
// here: it could lead to another route.
func ofWait(id, what string) (string, error) {
	if !isID(id) {
		return "", fmt.Errorf("%.80q is not the id of a wait, as w2-1 is", id)
	}
	return url.JoinPath("waits", id, what)
}
