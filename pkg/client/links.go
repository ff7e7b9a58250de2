package client

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// LinkRequest asks for a link to an approval.
type LinkRequest struct {
	// Recipient is whose decision it will be: the caller, who need not be named. Anybody else is
	// refused.
	Recipient string `json:"recipient,omitempty"`
	// Decisions that the link allows, of approve and deny; none are all.
	Decisions []string `json:"decisions,omitempty"`
	// ExpiresInMillis is how long the link lasts; without it that is a week, or until the deadline of
	// the wait if that is earlier.
	ExpiresInMillis *int64 `json:"expiresInMillis,omitempty"`
}

// Link is a link to an approval. Whoever has its URL may decide by it.
type Link struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
	// Decides says that the link takes a decision; one that does not only shows what waits.
	Decides bool `json:"decides"`
}

// LinkParams name the approval that a link is for.
type LinkParams struct {
	SessionID string
	WaitID    string
	Request   LinkRequest
}

// Link makes a link to an approval, by which it is decided in the name of the caller.
func (c *Client) Link(ctx context.Context, p LinkParams) (Link, error) {
	var out Link
	for _, id := range []string{p.SessionID, p.WaitID} {
		if err := (session.Key{Tenant: session.DefaultTenant, ID: id}).Validate(); err != nil {
			return out, err
		}
	}
	path, err := url.JoinPath("sessions", p.SessionID, "waits", p.WaitID, "links")
	if err != nil {
		return out, err
	}
	err = c.change(ctx, request{path: path, session: p.SessionID}, "", p.Request, 0, &out)
	return out, err
}

// checkLink refuses an address that is none, or that would be another command on a terminal.
func checkLink(l *Link) error {
	u, err := url.Parse(l.URL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || len(l.URL) > maxCursor {
		return fmt.Errorf("%w: it calls a link %.80q", ErrNotAdjourn, l.URL)
	}
	for _, c := range l.URL {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("%w: it calls a link %.80q", ErrNotAdjourn, l.URL)
		}
	}
	return nil
}
