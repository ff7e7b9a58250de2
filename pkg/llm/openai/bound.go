package openai

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// What is read of a server's answer, in bytes after decompression. A server that is
// broken, hostile, or not the one that was meant may send without end, and decoding
// takes some ten times the memory of what is decoded.
const (
	// maxPiece bounds what is decoded at once, an event of a stream or an answer in one
	// piece: [llm.MaxReply] with its escapes.
	maxPiece = 2 * llm.MaxReply
	// maxStream bounds a stream. Around each token stands an event of some 300 bytes:
	// it is several times what the longest reply of a model takes.
	maxStream = 128 << 20
	// maxHeader bounds the header of an answer.
	maxHeader = 256 << 10
	// headerTime is how long a server may take to begin its answer. One that cannot
	// stream begins when it has all of it, and one at home may load its model first.
	headerTime = 10 * time.Minute
)

// bounded is a transport whose answers end.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &boundedBody{ReadCloser: response.Body, left: maxPiece, most: maxPiece}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		body.left, body.cut = maxAnswer, true
	case isEvents(response):
		body.left, body.most, body.events = maxStream, maxStream, true
	}
	response.Body = body
	return response, nil
}

// boundedBody ends with an error where too much comes or, cut, as if that were all.
type boundedBody struct {
	io.ReadCloser
	left, most int64
	cut        bool

	events bool  // the body is a stream of events
	event  int64 // bytes since the last one ended
	line   int64 // bytes since the last line ended
	bare   bool  // it is \r alone
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 && b.cut {
		return 0, io.EOF
	}
	if b.cut && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, tooLarge(b.most)
	case b.events && b.grows(p[:n]) > maxPiece:
		return 0, tooLarge(maxPiece)
	}
	return n, err
}

// grows returns how large the event is that p belongs to, the largest of them if
// they are several. An empty line ends one, as the SDK's decoder reads lines.
func (b *boundedBody) grows(p []byte) (largest int64) {
	for _, c := range p {
		b.event++
		switch {
		case c != '\n':
			b.line++
			b.bare = b.line == 1 && c == '\r'
			continue
		case b.line == 0 || b.bare:
			largest, b.event = max(largest, b.event), 0
		}
		b.line, b.bare = 0, false
	}
	return max(largest, b.event)
}

// tooLarge says that an answer has more than so many bytes.
func tooLarge(most int64) *llm.Error {
	return &llm.Error{
		Class: llm.ClassInvalid, Cause: llm.ErrTooLarge,
		Message: fmt.Sprintf("the server's answer was given up after %d MiB, more than any model says; is OPENAI_BASE_URL right, and the server in order?", most>>20),
	}
}

// noRedirect follows no redirect: the conversation is for the server that was named,
// and the key even more.
func noRedirect(r *http.Request, _ []*http.Request) error {
	return refuse(llm.ClassInvalid, "the server sends elsewhere, to %s, and redirects are not followed; set OPENAI_BASE_URL to that if you trust it", r.URL.Host)
}
