package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/adjourn/adjourn/pkg/llm"
)

// maxMessage is how much of a server's words an error repeats, in bytes; what
// is read of its answer is bounded too.
const (
	maxMessage = 2 << 10
	maxAnswer  = 64 << 10
)

func broken(message string, cause error) *llm.Error {
	failure := &llm.Error{Class: llm.ClassOverloaded, Message: message, Cause: llm.ErrBrokenStream}
	if cause != nil {
		failure.Cause = fmt.Errorf("%w: %w", llm.ErrBrokenStream, cause)
	}
	return failure
}

// failure says what became of a call. The SDK's own error stays here: it holds
// the request with its key.
func (m *model) failure(err error, response *http.Response) error {
	var streamed *ssestream.StreamError
	var api *sdk.Error
	var network net.Error
	var ours *llm.Error
	switch {
	case errors.As(err, &ours): // our own error: reading was stopped
		told := *ours
		told.Message = m.clean(told.Message)
		return &told
	case errors.As(err, &streamed):
		return m.classify(0, words(streamed.Event.Data))
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // as much as came
		failure := m.classify(response.StatusCode, words(body))
		failure.RetryAfter = retryAfter(response.Header)
		return failure
	case errors.As(err, &api): // never without a response; its text names no secret
		return m.classify(api.StatusCode, answer{Message: api.Error()})
	case response != nil:
		if !isJSON(response) && !isEvents(response) {
			return m.odd(response)
		}
		return broken("the answer broke off or cannot be read: "+m.clean(err.Error()), err)
	case errors.As(err, &network) && network.Timeout():
		return &llm.Error{Class: llm.ClassTimeout, Message: m.clean(err.Error()), Cause: err}
	}
	return &llm.Error{Class: llm.ClassOverloaded, Message: "the server cannot be reached: " + m.clean(err.Error()), Cause: err}
}

// notAStream returns an error if a server was asked to stream and did not.
func (m *model) notAStream(response *http.Response) error {
	if response == nil || isEvents(response) || response.Header.Get("Content-Type") == "" {
		return nil
	}
	if isJSON(response) {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // as much as came
		if said := words(body); said.found {
			return m.classify(0, said)
		} else if !json.Valid(body) && len(body) < maxAnswer {
			return broken("the answer broke off or cannot be read", nil)
		}
		return refuse(llm.ClassInvalid, "the server answered in one piece though asked to stream; set OPENAI_STREAM=false")
	}
	return m.odd(response)
}

func (m *model) odd(response *http.Response) error {
	return &llm.Error{
		Class: llm.ClassInvalid, Status: response.StatusCode,
		Message: fmt.Sprintf("the server answered with %q, which no Chat Completions server does; is OPENAI_BASE_URL right?",
			m.clean(response.Header.Get("Content-Type"))),
	}
}

func mediaType(response *http.Response) string {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func isEvents(response *http.Response) bool { return mediaType(response) == "text/event-stream" }

func isJSON(response *http.Response) bool {
	kind := mediaType(response)
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// answer is what a server says of an error.
type answer struct {
	Message string
	Type    string
	Code    string
	found   bool
}

// words reads an error body: {"error": {…}} of OpenAI, with a number as code in
// llama.cpp, {"error": "text"} of Ollama, a bare object of vLLM, or plain text.
func words(body []byte) answer {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"`
	}
	inner := body
	if err := json.Unmarshal(body, &outer); err != nil {
		return answer{Message: strings.TrimSpace(string(body))}
	}
	switch {
	case len(outer.Error) > 0 && string(outer.Error) != "null":
		inner = outer.Error
	case outer.Object != "error" && outer.Message == "":
		return answer{Message: strings.TrimSpace(string(body))}
	}
	var text string
	if json.Unmarshal(inner, &text) == nil {
		return answer{Message: text, found: true}
	}
	var fields struct {
		Message string `json:"message"`
		Type    any    `json:"type"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(inner, &fields) != nil || fields.Message == "" {
		return answer{Message: string(inner), Code: word(fields.Code), Type: word(fields.Type), found: true}
	}
	return answer{Message: fields.Message, Type: word(fields.Type), Code: word(fields.Code), found: true}
}

func word(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// classify decides by what the server says first and by status second. An error
// in a stream has no status of its own, but may name one as its code.
func (m *model) classify(status int, said answer) *llm.Error {
	failure := &llm.Error{Message: m.clean(said.Message), Status: status}
	if failure.Message == "" || failure.Message[0] == '<' { // a gateway's page
		failure.Message = http.StatusText(status)
	}
	if status == 0 {
		if n, err := strconv.Atoi(said.Code); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	is := func(names ...string) bool {
		for _, name := range names {
			if said.Code == name || said.Type == name {
				return true
			}
		}
		return false
	}
	switch {
	case is("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"):
		failure.Class = llm.ClassInvalid
		failure.Message = "the account's quota is used up, and waiting does not help; check plan and billing: " + failure.Message
	case is("context_length_exceeded", "exceed_context_size_error"), tooLong(said.Message):
		failure.Class = llm.ClassContextOverflow
	case is("content_filter", "content_policy_violation", "moderation_blocked"):
		failure.Class = llm.ClassRefused
	case is("invalid_api_key", "authentication_error"):
		failure.Class = llm.ClassAuth
	case is("rate_limit_exceeded", "rate_limit_error"):
		failure.Class = llm.ClassRateLimited
	case status == 0 && is("invalid_request_error"):
		failure.Class = llm.ClassInvalid
	default:
		failure.Class = byStatus(status)
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

func byStatus(status int) llm.ErrorClass {
	switch status {
	case 0, http.StatusConflict:
		return llm.ClassOverloaded
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.ClassAuth
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return llm.ClassTimeout
	case http.StatusRequestEntityTooLarge:
		return llm.ClassContextOverflow
	case http.StatusTooManyRequests:
		return llm.ClassRateLimited
	}
	if status >= http.StatusInternalServerError {
		return llm.ClassOverloaded
	}
	return llm.ClassInvalid
}

// retryAfter reads how long the server asks to wait: milliseconds, seconds or a
// date, which is compared with the server's own clock.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return span(ms, time.Millisecond)
	}
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return span(seconds, time.Second)
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, until.Sub(now))
}

// maxWait bounds what a header can ask for, against overflow.
const maxWait = 30 * 24 * time.Hour

func span(n float64, unit time.Duration) time.Duration {
	if n <= 0 || math.IsNaN(n) {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxWait)))
}

// clean cuts a message to a sane length and takes secrets out of it: servers
// quote what they refuse, and network errors name the address.
func (m *model) clean(message string) string {
	message = m.masks.Replace(message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
