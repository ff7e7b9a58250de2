package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/internal/remote"
)

// failure says what became of a call. The SDK's own error stays here: it holds
// the request with its key.
func (m *model) failure(err error, response *http.Response) error {
	var api *sdk.Error
	var ours *llm.Error
	switch {
	case errors.As(err, &ours): // our own error: reading was stopped
		return m.told(ours)
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		body, _ := io.ReadAll(io.LimitReader(response.Body, remote.MaxError)) // as much as came
		failure := m.classify(response.StatusCode, remote.Words(body))
		failure.RetryAfter = remote.RetryAfter(response.Header)
		return failure
	case errors.As(err, &api): // an event of the stream
		return m.classify(0, remote.Words([]byte(api.RawJSON())))
	case response != nil:
		return remote.Broken("the answer broke off or cannot be read: "+m.masks.Clean(err.Error()), err)
	}
	return m.masks.Unreached(err)
}

// told returns an error of ours without secrets, such as the server's words may hold.
func (m *model) told(err error) error {
	var ours *llm.Error
	if !errors.As(err, &ours) {
		return err
	}
	told := *ours
	told.Message = m.masks.Clean(told.Message)
	return &told
}

// notAStream returns an error if a server did not stream.
func (m *model) notAStream(response *http.Response) error {
	if response == nil || remote.IsEvents(response) || response.Header.Get("Content-Type") == "" {
		return nil
	}
	if remote.IsJSON(response) {
		body, _ := io.ReadAll(io.LimitReader(response.Body, remote.MaxError)) // as much as came
		switch said := remote.Words(body); {
		case said.Found:
			return m.classify(0, said)
		case !json.Valid(body) && len(body) < remote.MaxError:
			return remote.Broken("the answer broke off or cannot be read", nil)
		}
	}
	return &llm.Error{
		Class: llm.ClassInvalid, Status: response.StatusCode,
		Message: fmt.Sprintf("the server answered with %q where a server of the Messages API streams events; is %s right?",
			m.masks.Clean(response.Header.Get("Content-Type")), baseSetting),
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
	hint := ""
	switch {
	case said.Is("billing_error", "enforced_spend_limit_reached"), status == http.StatusPaymentRequired, says(said, "credit balance is too low", "api usage limits"):
		failure.Class, hint = llm.ClassInvalid, "the account's credit or limit is used up, and waiting does not help; check plan and billing: "
	case said.Is("request_too_large"), says(said, "prompt is too long", "exceed context limit", "exceeds the available context size", "maximum context length"):
		failure.Class = llm.ClassContextOverflow
	case says(said, "content filtering policy"):
		failure.Class = llm.ClassRefused
	case said.Is("authentication_error"), status == http.StatusUnauthorized:
		failure.Class, hint = llm.ClassAuth, "the key is not accepted; check ANTHROPIC_API_KEY: "
	case said.Is("permission_error"):
		failure.Class, hint = llm.ClassAuth, "the key may not do this: "
	case said.Is("not_found_error"):
		failure.Class, hint = llm.ClassInvalid, "there is no such model, or the key may not use it: "
	case said.Is("rate_limit_error"):
		failure.Class = llm.ClassRateLimited
	case said.Is("overloaded_error", "api_error"):
		failure.Class = llm.ClassOverloaded
	case said.Is("timeout_error"):
		failure.Class = llm.ClassTimeout
	case status == 0 && said.Is("invalid_request_error"):
		failure.Class = llm.ClassInvalid
	default:
		failure.Class = remote.ByStatus(status)
	}
	failure.Message = hint + failure.Message
	return failure
}

// says reports whether the message holds one of these, for what has no type of its own.
func says(said remote.Said, words ...string) bool {
	message := strings.ToLower(said.Message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
}
