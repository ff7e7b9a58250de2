package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// failure says what became of a call. The SDK's own error stays here: it holds
// the request with its key.
func (m *model) failure(err error, response *http.Response) error {
	var streamed *ssestream.StreamError
	var api *sdk.Error
	var ours *llm.Error
	switch {
	case errors.As(err, &ours): // our own error: reading was stopped
		told := *ours
		told.Message = m.masks.Clean(told.Message)
		return &told
	case errors.As(err, &streamed):
		return m.classify(0, remote.Words(streamed.Event.Data))
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		body, _ := io.ReadAll(io.LimitReader(response.Body, remote.MaxError)) // as much as came
		failure := m.classify(response.StatusCode, remote.Words(body))
		failure.RetryAfter = remote.RetryAfter(response.Header)
		return failure
	case errors.As(err, &api): // never without a response; its text names no secret
		return m.classify(api.StatusCode, remote.Said{Message: api.Error()})
	case response != nil:
		if !remote.IsJSON(response) && !remote.IsEvents(response) {
			return m.odd(response)
		}
		return remote.Broken("the answer broke off or cannot be read: "+m.masks.Clean(err.Error()), err)
	}
	return m.masks.Unreached(err)
}

// notAStream returns an error if a server was asked to stream and did not.
func (m *model) notAStream(response *http.Response) error {
	if response == nil || remote.IsEvents(response) || response.Header.Get("Content-Type") == "" {
		return nil
	}
	if remote.IsJSON(response) {
		body, _ := io.ReadAll(io.LimitReader(response.Body, remote.MaxError)) // as much as came
		if said := remote.Words(body); said.Found {
			return m.classify(0, said)
		} else if !json.Valid(body) && len(body) < remote.MaxError {
			return remote.Broken("the answer broke off or cannot be read", nil)
		}
		return remote.Refuse(llm.ClassInvalid, "the server answered in one piece though asked to stream; set OPENAI_STREAM=false")
	}
	return m.odd(response)
}

func (m *model) odd(response *http.Response) error {
	return &llm.Error{
		Class: llm.ClassInvalid, Status: response.StatusCode,
		Message: fmt.Sprintf("the server answered with %q, which no Chat Completions server does; is OPENAI_BASE_URL right?",
			m.masks.Clean(response.Header.Get("Content-Type"))),
	}
}

// classify decides by what the server says first and by status second. An error
// in a stream has no status of its own, but may name one as its code.
func (m *model) classify(status int, said remote.Said) *llm.Error {
	failure := &llm.Error{Message: m.masks.Clean(said.Message), Status: status}
	if failure.Message == "" || failure.Message[0] == '<' { // a gateway's page
		failure.Message = http.StatusText(status)
	}
	if status == 0 {
		if n, err := strconv.Atoi(said.Code); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	switch {
	case said.Is("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"):
		failure.Class = llm.ClassInvalid
		failure.Message = "the account's quota is used up, and waiting does not help; check plan and billing: " + failure.Message
	case said.Is("context_length_exceeded", "exceed_context_size_error"), tooLong(said.Message):
		failure.Class = llm.ClassContextOverflow
	case said.Is("content_filter", "content_policy_violation", "moderation_blocked"):
		failure.Class = llm.ClassRefused
	case said.Is("invalid_api_key", "authentication_error"):
		failure.Class = llm.ClassAuth
	case said.Is("rate_limit_exceeded", "rate_limit_error"):
		failure.Class = llm.ClassRateLimited
	case status == 0 && said.Is("invalid_request_error"):
		failure.Class = llm.ClassInvalid
	default:
		failure.Class = remote.ByStatus(status)
	}
	return failure
}

// tooLong recognises a prompt that is too long by the message, for servers that have no
// code for it.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "exceeds the context window", "exceed context",
		"exceeds the available context size", "context size exceeded", "prompt is too long",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
