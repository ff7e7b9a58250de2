package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// StartParams begin a session, or the next turn of one.
type StartParams struct {
	Request StartRequest
	// IdempotencyKey makes it harmless to repeat the request, also for another process;
	// empty means a new one, so that only the repeats of this call are harmless.
	IdempotencyKey string
	// Wait asks the server to answer only when the session rests, or after so
	// long, in whole seconds. The server may wait less.
	Wait time.Duration
	// CancelOnDisconnect has the server cancel the task if this call ends before its answer has
	// come, because its ctx has ended or the connection is lost; only together with Wait. A server
	// on AWS Lambda does not see that, and goes on.
	CancelOnDisconnect bool
}

// Start begins a session, or the next turn of one that completed or was cancelled.
func (c *Client) Start(ctx context.Context, p StartParams) (Started, error) {
	var out Started
	err := c.change(ctx, request{path: "sessions", cancels: p.CancelOnDisconnect}, p.IdempotencyKey, p.Request, p.Wait, &out)
	return out, err
}

// SubmitParams answer one thing a session waits for.
type SubmitParams struct {
	SessionID string
	Answer    SubmitRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
	// CancelOnDisconnect as in [StartParams].
	CancelOnDisconnect bool
}

// Submit answers one wait.
func (c *Client) Submit(ctx context.Context, p SubmitParams) (Submitted, error) {
	return verb[Submitted](ctx, c, p.SessionID, "submit", p.CancelOnDisconnect, p.IdempotencyKey, p.Answer, p.Wait)
}

// SubmitAllParams answer several waits.
type SubmitAllParams struct {
	SessionID string
	Answers   []SubmitRequest
	// IdempotencyKey as in [StartParams]; each answer has it.
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
}

// SubmitAll answers several waits, each for itself: what is refused changes nothing of the others. If any
// is refused the error is an [*Error] of the first refusal whose Problem has the Results of all.
func (c *Client) SubmitAll(ctx context.Context, p SubmitAllParams) (SubmittedAll, error) {
	return verb[SubmittedAll](ctx, c, p.SessionID, "answers", false, p.IdempotencyKey, AnswersRequest{Answers: p.Answers}, p.Wait)
}

// ResumeParams go on with a session.
type ResumeParams struct {
	SessionID string
	Request   ResumeRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
	// CancelOnDisconnect as in [StartParams].
	CancelOnDisconnect bool
}

// Resume goes on with a session.
func (c *Client) Resume(ctx context.Context, p ResumeParams) (Resumed, error) {
	return verb[Resumed](ctx, c, p.SessionID, "resume", p.CancelOnDisconnect, p.IdempotencyKey, p.Request, p.Wait)
}

// StopParams stop a task.
type StopParams struct {
	SessionID string
	Request   StopRequest
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
	// Wait as in [StartParams].
	Wait time.Duration
}

// Interrupt stops a task softly: what is not committed is given up, what waits stays open, and
// [Client.Resume] goes on. A task that has ended is refused.
func (c *Client) Interrupt(ctx context.Context, p StopParams) (Stopped, error) {
	return c.stop(ctx, "interrupt", p)
}

// Cancel ends a task with a valid history. The session can take a next turn.
func (c *Client) Cancel(ctx context.Context, p StopParams) (Stopped, error) {
	return c.stop(ctx, "cancel", p)
}

// Abort ends the session as failed.
func (c *Client) Abort(ctx context.Context, p StopParams) (Stopped, error) {
	return c.stop(ctx, "abort", p)
}

func (c *Client) stop(ctx context.Context, how string, p StopParams) (Stopped, error) {
	return verb[Stopped](ctx, c, p.SessionID, how, false, p.IdempotencyKey, p.Request, p.Wait)
}

// verb carries out what a route of a session changes.
func verb[T any](ctx context.Context, c *Client, id, what string, cancels bool, key string, body any, wait time.Duration) (T, error) {
	var out T
	path, err := of(id, what)
	if err != nil {
		return out, err
	}
	err = c.change(ctx, request{path: path, session: id, cancels: cancels}, key, body, wait, &out)
	return out, err
}

// change sends a request that changes something. Its key makes it safe to send again:
// whatever became of the answer, the request counts once.
func (c *Client) change(ctx context.Context, r request, key string, body any, wait time.Duration, out any) error {
	if key == "" && !c.inProcess {
		key = newKey()
	}
	header := prefer(wait)
	if preference := header.Get(HeaderPrefer); r.cancels && preference != "" {
		header.Set(HeaderPrefer, preference+", "+PreferCancelOnDisconnect)
	}
	if key != "" {
		header.Set(HeaderIdempotencyKey, key)
	}
	if r.method == "" {
		r.method = http.MethodPost
	}
	r.header, r.body, r.wait = header, body, wait
	return c.send(ctx, r, out)
}

// Session says where a session stands; with wait, when it rests or after so long.
func (c *Client) Session(ctx context.Context, id string, wait time.Duration) (Session, error) {
	var out Session
	path, err := of(id, "")
	if err != nil {
		return out, err
	}
	err = c.send(ctx, request{method: http.MethodGet, path: path, session: id, header: prefer(wait), wait: wait}, &out)
	return out, err
}

// OpenAPI returns the document that describes the API of this server.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	var out json.RawMessage
	err := c.send(ctx, request{method: http.MethodGet, path: "openapi.json"}, &out)
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
		header.Set(HeaderPrefer, "wait="+strconv.Itoa(seconds))
	}
	return header
}
