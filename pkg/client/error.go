package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Error is an answer that refuses: what the server said, and its status.
type Error struct {
	// Status of HTTP.
	Status int
	// Problem is what the server said. Where it was something else than a
	// problem that answered (a gateway, a proxy), Code is made of the status.
	Problem Problem
	// RetryAfter is how long the server asked to wait; 0 when it did not say.
	RetryAfter time.Duration
}

// Code is the stable name of the refusal.
func (e *Error) Code() Code { return Code(e.Problem.Code) }

// Error returns what is wrong in words, with the session if it is about one.
func (e *Error) Error() string {
	text := e.Problem.Detail
	if text == "" {
		text = e.Problem.Title
	}
	if e.Problem.SessionID != "" {
		text = "session " + e.Problem.SessionID + ": " + text
	}
	if e.Problem.RequestID != "" {
		text += " (request " + e.Problem.RequestID + ")"
	}
	return text
}

// Codes of answers that were no problem of the server's own: something between
// it and the client spoke.
const (
	// CodeThrottled: 429.
	CodeThrottled = "throttled"
	// CodeUnavailable: 502, 503, 504.
	CodeUnavailable = "unavailable"
	// CodeUnexpected: any other status.
	CodeUnexpected = "unexpected_status"
)

// newError makes an error of an answer. What is no problem is not shown in full:
// it may be a page of a proxy.
func newError(status int, header http.Header, body []byte, c *Client) *Error {
	e := &Error{Status: status, RetryAfter: retryAfter(header)}
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if media == MediaProblem && json.Unmarshal(body, &e.Problem) == nil && e.Problem.Code != "" {
		if !isID(e.Problem.SessionID) {
			e.Problem.SessionID = ""
		}
		e.Problem.Detail, e.Problem.Title = c.scrub(e.Problem.Detail), c.scrub(e.Problem.Title)
		return e
	}
	e.Problem = Problem{Title: http.StatusText(status), Status: status, Code: codeOf(status)}
	if status == http.StatusUnauthorized {
		// An authorizer in front of the server: it says that, and never why.
		e.Problem.Detail = "the server asks for a token"
		if c.named {
			e.Problem.Detail = "the server does not know this token (expired? of another issuer or audience?)"
		}
		return e
	}
	e.Problem.Detail = strings.TrimSpace(fmt.Sprintf("the server answered %d %s", status, http.StatusText(status)))
	var gateway struct {
		Message string `json:"message"`
	}
	if media == MediaJSON && json.Unmarshal(body, &gateway) == nil && gateway.Message != "" && len(gateway.Message) < 500 {
		e.Problem.Detail += ": " + c.scrub(gateway.Message)
	}
	return e
}

func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return CodeUnauthenticated
	case http.StatusForbidden:
		return CodeForbidden
	case http.StatusNotFound:
		return CodeRouteNotFound
	case http.StatusRequestEntityTooLarge:
		return CodeBodyTooLarge
	case http.StatusTooManyRequests:
		return CodeThrottled
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return CodeUnavailable
	}
	return CodeUnexpected
}
