package openai

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Limits of what is read of a server's answer, in bytes after decompression. A server
// that is broken, hostile or not the intended one may send without end, and decoding
// takes about ten times the memory of the bytes that are decoded.
const (
	// maxPiece bounds what is decoded at once, an event of a stream or an answer in one
	// piece: [llm.MaxReply] with its escapes.
	maxPiece = 2 * llm.MaxReply
	// maxStream bounds a whole stream. Each token comes in an event of about 300 bytes;
	// the bound is several times the longest stream of a model.
	maxStream = 128 << 20
	// maxHeader bounds the header of an answer.
	maxHeader = 256 << 10
	// headerTime is how long a server may take to begin its answer. A server that cannot
	// stream begins when the answer is complete, and a local one may load its model first.
	headerTime = 10 * time.Minute
)

// bounded is a transport that limits the size of answers.
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

// boundedBody fails when an answer is too large. With cut it ends there instead, as if
// the answer were complete.
type boundedBody struct {
	io.ReadCloser
	left, most int64
	cut        bool

	events bool  // the body is a stream of events
	event  int64 // bytes since the last one ended
	line   int64 // bytes since the last line ended
	bare   bool  // the line so far is \r alone
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

// grows returns the size so far of the event that p belongs to, or of the largest if p
// holds several. An empty line ends an event, as it does for the SDK's decoder.
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
		Message: fmt.Sprintf("the server's answer was cut off after %d MiB, because no model writes that much; is OPENAI_BASE_URL right, and does the server work?", most>>20),
	}
}

// noRedirect follows no redirect: no other server than the configured one may get the
// conversation or the key.
func noRedirect(r *http.Request, _ []*http.Request) error {
	return refuse(llm.ClassInvalid, "the server sends elsewhere, to %s, and redirects are not followed; set OPENAI_BASE_URL to that if you trust it", r.URL.Host)
}
