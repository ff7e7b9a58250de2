package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/adjourn/adjourn/pkg/httpapi/wire"
	"github.com/adjourn/adjourn/pkg/session"
)

// StartParams begin a session, or the next turn of one.
type StartParams struct {
	Request wire.StartRequest
	// IdempotencyKey makes repeating the start harmless, also by another process;
	// empty means a new one, so that only the repeats of this call are harmless.
	IdempotencyKey string
	// Wait asks the server to answer only when the session rests, or after so
	// long, in whole seconds. The server may wait less.
	Wait time.Duration
}

// Start begins a session, or the next turn of one that completed or was cancelled.
func (c *Client) Start(ctx context.Context, p StartParams) (wire.Started, error) {
	header := prefer(p.Wait)
	key := p.IdempotencyKey
	if key == "" {
		key = newKey()
	}
	header.Set(wire.HeaderIdempotencyKey, key)
	var out wire.Started
	err := c.send(ctx, request{method: http.MethodPost, path: "sessions", header: header, body: p.Request, again: true, wait: p.Wait}, &out)
	return out, err
}

// SubmitParams answer one thing a session waits for.
type SubmitParams struct {
	SessionID string
	Answer    wire.SubmitRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
}

// Submit answers one wait. After a broken connection it is sent again only if the
// answer names what was shown: a wait, an approval, a question, a client's call.
func (c *Client) Submit(ctx context.Context, p SubmitParams) (wire.Submitted, error) {
	var out wire.Submitted
	path, err := of(p.SessionID, "submit")
	if err != nil {
		return out, err
	}
	err = c.send(ctx, request{method: http.MethodPost, path: path, header: prefer(p.Wait), body: p.Answer, again: p.Answer.AnswersOnce(), wait: p.Wait}, &out)
	return out, err
}

// ResumeParams go on with a session.
type ResumeParams struct {
	SessionID string
	Request   wire.ResumeRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
}

// Resume goes on with a session. After a broken connection it is sent again only
// if that cannot decide or answer what came since: when it brings nothing, names
// the checkpoint, or names the waits it decides. A call may be asked about anew.
func (c *Client) Resume(ctx context.Context, p ResumeParams) (wire.Resumed, error) {
	var out wire.Resumed
	path, err := of(p.SessionID, "resume")
	if err != nil {
		return out, err
	}
	err = c.send(ctx, request{method: http.MethodPost, path: path, header: prefer(p.Wait), body: p.Request, again: p.Request.AnswersOnce(), wait: p.Wait}, &out)
	return out, err
}

// Session says where a session stands; with wait, when it rests or after so long.
func (c *Client) Session(ctx context.Context, id string, wait time.Duration) (wire.Session, error) {
	var out wire.Session
	path, err := of(id, "")
	if err != nil {
		return out, err
	}
	err = c.send(ctx, request{method: http.MethodGet, path: path, header: prefer(wait), again: true, wait: wait}, &out)
	return out, err
}

// OpenAPI returns the document that describes the API of this server.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.send(ctx, request{method: http.MethodGet, path: "openapi.json", again: true}, &out)
	return out, err
}

// of returns the path of something of a session. An id that is none is refused
// here: it could lead to another route.
func of(id, what string) (string, error) {
	if err := (session.Key{Tenant: session.DefaultTenant, ID: id}).Validate(); err != nil {
		return "", err
	}
	return url.JoinPath("sessions", id, what)
}

func prefer(wait time.Duration) http.Header {
	header := http.Header{}
	if seconds := int(wait / time.Second); seconds > 0 {
		header.Set(wire.HeaderPrefer, "wait="+strconv.Itoa(seconds))
	}
	return header
}
