package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	address = "http://127.0.0.1:8420"
	token   = "adj_secret-of-the-test"
)

// anything is an answer to every request about session s-1.
const anything = `{"wait":{"waitId":"w2-1"},"permission":{"id":"w2-1"},"id": "s-1", "sessionId": "s-1", "url": "https://adjourn.example/a/x"}`

// answer is one thing a network does with a request.
type answer func(*http.Request) (*http.Response, error)

// script is a network that does one thing after the other, and the last one for ever.
type script struct {
	mu       sync.Mutex
	answers  []answer
	requests []*http.Request
	bodies   []string
	at       []time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.requests, s.bodies, s.at = append(s.requests, r), append(s.bodies, string(body)), append(s.at, time.Now())
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return next(r)
}

// says answers with a status and a body; headers come in pairs.
func says(status int, body string, headers ...string) answer {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {client.MediaJSON}}
		if status >= 400 {
			h.Set("Content-Type", client.MediaProblem)
		}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{
			StatusCode: status, Header: h, Request: r, ProtoMajor: 1, ProtoMinor: 1,
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// breaks off before an answer came.
func breaks(err error) answer {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// refusesConnection is what a port without a server does.
func refusesConnection(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
}

// hangs until it is given up.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// brokenBody answers well and breaks off in the middle.
func brokenBody(r *http.Request) (*http.Response, error) {
	resp, err := says(200, "")(r)
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte(`{"items": [`)), failing{}))
	return resp, err
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func over(t *testing.T, s *script) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{URL: address, Token: token, HTTP: &http.Client{Transport: s}})
	require.NoError(t, err)
	return c
}

// someCheckpoint is the form of a checkpoint's id.
const someCheckpoint = "czEuMi5xODN2QVNORlo0bXJ6ZThC"

// routes are those that have a method: the page of a link is for people, and Slack asks by itself.
func routes() []httpapi.Route {
	return slices.DeleteFunc(httpapi.Routes(), func(r httpapi.Route) bool { return r.Path == "/a/{token}" || r.Path == "/slack/interactions" })
}

// calls are all the methods, by the name their route has in the OpenAPI document. Those
// of one session ask for this one.
func calls(c *client.Client, id string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"startSession": func(ctx context.Context) error {
			_, err := c.Start(ctx, client.StartParams{Request: client.StartRequest{Input: client.Text("hi")}})
			return err
		},
		"resumeSession": func(ctx context.Context) error {
			_, err := c.Resume(ctx, client.ResumeParams{SessionID: id})
			return err
		},
		"submitAnswer": func(ctx context.Context) error {
			_, err := c.Submit(ctx, client.SubmitParams{SessionID: id, Answer: client.SubmitRequest{WaitID: "w2-1"}})
			return err
		},
		"submitAnswers": func(ctx context.Context) error {
			_, err := c.SubmitAll(ctx, client.SubmitAllParams{SessionID: id, Answers: []client.SubmitRequest{{WaitID: "w2-1"}}})
			return err
		},
		"sendMessage": func(ctx context.Context) error {
			_, err := c.Send(ctx, client.SendParams{SessionID: id, Request: client.SendRequest{Message: client.Text("hi")}})
			return err
		},
		"interruptSession": func(ctx context.Context) error {
			_, err := c.Interrupt(ctx, client.StopParams{SessionID: id, Request: client.StopRequest{Task: 2}})
			return err
		},
		"cancelSession": func(ctx context.Context) error {
			_, err := c.Cancel(ctx, client.StopParams{SessionID: id, Request: client.StopRequest{Reason: "enough"}})
			return err
		},
		"abortSession": func(ctx context.Context) error {
			_, err := c.Abort(ctx, client.StopParams{SessionID: id})
			return err
		},
		"makeLink": func(ctx context.Context) error {
			_, err := c.Link(ctx, client.LinkParams{SessionID: id, WaitID: "w2-1"})
			return err
		},
		"getWait": func(ctx context.Context) error {
			_, err := c.Wait(ctx, id, "w2-1")
			return err
		},
		"dismissWait": func(ctx context.Context) error {
			_, err := c.Dismiss(ctx, client.ActParams[client.DismissRequest]{SessionID: id, WaitID: "w2-1", Request: client.DismissRequest{Reason: "enough"}})
			return err
		},
		"extendWait": func(ctx context.Context) error {
			_, err := c.Extend(ctx, client.ActParams[client.ExtendRequest]{SessionID: id, WaitID: "w2-1"})
			return err
		},
		"delegateWait": func(ctx context.Context) error {
			_, err := c.Delegate(ctx, client.ActParams[client.DelegateRequest]{SessionID: id, WaitID: "w2-1", Request: client.DelegateRequest{To: "ben"}})
			return err
		},
		"listPermissions": func(ctx context.Context) error {
			_, err := c.Permissions(ctx, id)
			return err
		},
		"revokePermission": func(ctx context.Context) error {
			_, err := c.RevokePermission(ctx, id, "w2-1", "x")
			return err
		},
		"previewPermission": func(ctx context.Context) error {
			_, err := c.PreviewPermission(ctx, id, "w2-1", session.Standing{For: "session"})
			return err
		},
		"deleteSession": func(ctx context.Context) error {
			_, err := c.Delete(ctx, client.DeleteParams{SessionID: id})
			return err
		},
		"retrySession": func(ctx context.Context) error {
			_, err := c.Retry(ctx, client.RetryParams{SessionID: id, Request: client.RetryRequest{From: client.RetryFromStart}})
			return err
		},
		"forkSession": func(ctx context.Context) error {
			_, err := c.Fork(ctx, client.ForkParams{SessionID: id, Request: client.ForkRequest{SessionID: "copy"}})
			return err
		},
		"getCheckpoint": func(ctx context.Context) error {
			_, err := c.Checkpoint(ctx, client.CheckpointParams{SessionID: id, CheckpointID: someCheckpoint})
			return err
		},
		"haltSteps": func(ctx context.Context) error {
			_, err := c.Halt(ctx, client.HaltRequest{Agent: "a"})
			return err
		},
		"letStepsGo": func(ctx context.Context) error {
			_, err := c.Go(ctx, client.GoRequest{Agent: "a"})
			return err
		},
		"listNotices": func(ctx context.Context) error {
			_, err := c.Notices(ctx, client.Page{})
			return err
		},
		"setAway": func(ctx context.Context) error {
			_, err := c.SetAway(ctx, client.AwayRequest{To: "bob"})
			return err
		},
		"endAway": func(ctx context.Context) error {
			_, err := c.EndAway(ctx)
			return err
		},
		"listAway": func(ctx context.Context) error {
			_, err := c.Away(ctx)
			return err
		},
		"listHalts": func(ctx context.Context) error {
			_, err := c.Halts(ctx)
			return err
		},
		"listSessions": func(ctx context.Context) error {
			_, err := c.Sessions(ctx, client.SessionsParams{Page: client.Page{Limit: 7, Cursor: "c"}, Status: "running"})
			return err
		},
		"getSession": func(ctx context.Context) error {
			_, err := c.Session(ctx, id, 0)
			return err
		},
		"listMessages": func(ctx context.Context) error {
			_, err := c.Messages(ctx, id, client.Page{})
			return err
		},
		"listAudit": func(ctx context.Context) error {
			_, err := c.Audit(ctx, id, client.AuditParams{Verify: true})
			return err
		},
		"listRuns": func(ctx context.Context) error {
			_, err := c.Runs(ctx, id, client.Page{})
			return err
		},
		"listCheckpoints": func(ctx context.Context) error {
			_, err := c.Checkpoints(ctx, id, client.Page{})
			return err
		},
		"listWaits": func(ctx context.Context) error {
			_, err := c.Waits(ctx, id, client.Page{})
			return err
		},
		"listEntries": func(ctx context.Context) error {
			_, err := c.Entries(ctx, id, client.EntriesParams{After: 3})
			return err
		},
		"listOpenWaits": func(ctx context.Context) error {
			_, err := c.Inbox(ctx, client.InboxParams{})
			return err
		},
		"getOpenAPI": func(ctx context.Context) error {
			_, err := c.OpenAPI(ctx)
			return err
		},
	}
}
