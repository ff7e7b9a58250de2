package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Notice is what was told outside about a wait or an end of a session, or is to be.
type Notice struct {
	SessionID string `json:"sessionId"`
	ID        string `json:"id"`
	// Type, and when it was written, with what it tells.
	Type  journal.NoticeType `json:"type"`
	At    time.Time          `json:"at"`
	Agent string             `json:"agent,omitempty"`
	// Version is the number of the entry that is told; of a decision, that of the entry that asked.
	Version int64 `json:"version,omitempty"`
	// Failure is the code of why the task failed.
	Failure string               `json:"failure,omitempty"`
	Waits   []journal.NoticeWait `json:"waits,omitempty"`
	// Sends are what became of it at each channel.
	Sends []NoticeSend `json:"sends"`
}

// NoticeSend is what became of a notice at one channel.
type NoticeSend struct {
	Channel string              `json:"channel"`
	State   journal.NoticeState `json:"state"`
	// Tries that began, and when the last of them did.
	Tries   int        `json:"tries,omitempty"`
	TriedAt *time.Time `json:"triedAt,omitempty"`
	// Next is when it is tried again; left out when it is not, or at once.
	Next *time.Time `json:"next,omitempty"`
	// Error is why the last try failed.
	Error string `json:"error,omitempty"`
}

// Notices is a page of GET /notices, the newest first.
type Notices struct {
	Items  []Notice `json:"items"`
	Cursor string   `json:"cursor,omitempty"`
}

// Notices returns a page of the notices of all sessions, the newest first.
func (c *Client) Notices(ctx context.Context, p Page) (Notices, error) {
	var out Notices
	err := c.send(ctx, request{method: http.MethodGet, path: "notices", query: p.query()}, &out)
	return out, err
}

// AllNotices goes through every page of Notices, from p's cursor on.
func (c *Client) AllNotices(ctx context.Context, p Page) iter.Seq2[Notice, error] {
	return all(p, func(page Page) ([]Notice, string, error) {
		found, err := c.Notices(ctx, page)
		return found.Items, found.Cursor, err
	})
}
