package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Broken returns the error of a reply that is not complete or cannot be read.
func Broken(message string, cause error) *llm.Error {
	failure := &llm.Error{Class: llm.ClassOverloaded, Message: message, Cause: llm.ErrBrokenStream}
	if cause != nil {
		failure.Cause = fmt.Errorf("%w: %w", llm.ErrBrokenStream, cause)
	}
	return failure
}

// Unreached returns the error of a request that no server has answered.
func (m Masks) Unreached(err error) *llm.Error {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return &llm.Error{Class: llm.ClassTimeout, Message: m.Clean(err.Error()), Cause: err}
	}
	return &llm.Error{Class: llm.ClassOverloaded, Message: "the server cannot be reached: " + m.Clean(err.Error()), Cause: err}
}

func mediaType(response *http.Response) string {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// IsEvents reports whether an answer is a stream of events.
func IsEvents(response *http.Response) bool { return mediaType(response) == "text/event-stream" }

// IsJSON reports whether an answer is JSON.
func IsJSON(response *http.Response) bool {
	kind := mediaType(response)
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// Said is what a server says of an error.
type Said struct {
	Message string
	Type    string
	Code    string
	Found   bool // the body has the form of an error
}

// Is reports whether the error's code or type is one of names.
func (s Said) Is(names ...string) bool {
	for _, name := range names {
		if s.Code == name || s.Type == name {
			return true
		}
	}
	return false
}

// Words reads an error body: {"error": {…}} of OpenAI and Anthropic, with a number as
// code in llama.cpp, {"error": "text"} of Ollama, a bare object of vLLM, or plain text.
func Words(body []byte) Said {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"`
	}
	inner := body
	if err := json.Unmarshal(body, &outer); err != nil {
		return Said{Message: strings.TrimSpace(string(body))}
	}
	switch {
	case len(outer.Error) > 0 && string(outer.Error) != "null":
		inner = outer.Error
	case outer.Object != "error" && outer.Message == "":
		return Said{Message: strings.TrimSpace(string(body))}
	}
	var text string
	if json.Unmarshal(inner, &text) == nil {
		return Said{Message: text, Found: true}
	}
	var fields struct {
		Message string `json:"message"`
		Type    any    `json:"type"`
		Code    any    `json:"code"`
		Details any    `json:"details"`
	}
	unread := json.Unmarshal(inner, &fields) != nil
	said := Said{Message: fields.Message, Type: word(fields.Type), Code: word(fields.Code), Found: true}
	if unread || said.Message == "" {
		said.Message = string(inner)
	}
	if details, ok := fields.Details.(map[string]any); ok && said.Code == "" {
		said.Code = word(details["error_code"]) // of Anthropic
	}
	return said
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

// ByStatus returns the class of an error by its HTTP status alone; 0 is an error in a
// stream, which has none.
func ByStatus(status int) llm.ErrorClass {
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

// RetryAfter reads how long the server asks to wait: milliseconds, seconds or a
// date, which is compared with the server's own clock.
func RetryAfter(header http.Header) time.Duration {
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
