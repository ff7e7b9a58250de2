package remote

import (
	"context"
	"errors"
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
	// MaxError bounds what is read of an error.
	MaxError = 64 << 10
	// maxHeader bounds the header of an answer.
	maxHeader = 256 << 10
	// Patience is how long a server may take to the first byte of its answer. A server that
	// cannot stream begins when the answer is complete, and a local one may load its model
	// first.
	Patience = 10 * time.Minute
)

// idleConnections is how many stay open to one server. With the standard library's two,
// many sessions at once would have to connect again and again.
const idleConnections = 64

// Client returns a client that bounds answers and follows no redirect: no other server
// than the configured one may get the conversation or the key. setting names the
// variable that holds the server's address, for error messages.
func Client(setting string) *http.Client {
	next := http.DefaultTransport
	if shared, ok := next.(*http.Transport); ok {
		own := shared.Clone()
		own.MaxIdleConnsPerHost = idleConnections
		own.MaxResponseHeaderBytes = maxHeader
		next = own
	}
	return &http.Client{
		Transport: Bounded(next, setting),
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return Refuse(llm.ClassInvalid, "the server sends elsewhere, to %s, and redirects are not followed; set %s to that if you trust it", r.URL.Host, setting)
		},
	}
}

// Bounded returns next with bounds: the bytes of an answer, and the time to its first
// byte.
func Bounded(next http.RoundTripper, setting string) http.RoundTripper {
	return bounded{next, setting}
}

type bounded struct {
	http.RoundTripper
	setting string
}

// errSlow is the cause of a request that was given up because nothing came.
var errSlow = errors.New("no byte of the answer came in time")

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	slow := time.AfterFunc(Patience, func() { cancel(errSlow) })
	response, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		slow.Stop()
		defer cancel(nil)
		return nil, told(ctx, err)
	}
	body := &boundedBody{
		ReadCloser: response.Body, left: maxPiece, most: maxPiece, setting: b.setting,
		ctx: ctx, slow: slow, cancel: cancel,
	}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		body.left, body.cut = MaxError, true
	case IsEvents(response):
		body.left, body.most, body.events = maxStream, maxStream, true
	}
	response.Body = body
	return response, nil
}

// told returns why a request failed, which the transport does not know if it was given up.
func told(ctx context.Context, err error) error {
	if !errors.Is(context.Cause(ctx), errSlow) {
		return err
	}
	return &llm.Error{Class: llm.ClassTimeout, Cause: errSlow, Message: fmt.Sprintf("the server has sent nothing for %v", Patience)}
}

// boundedBody fails when an answer is too large. With cut it ends there instead, as if
// the answer were complete.
type boundedBody struct {
	io.ReadCloser
	left, most int64
	cut        bool
	setting    string

	ctx    context.Context //nolint:containedctx // of the one request whose answer this is
	slow   *time.Timer
	cancel context.CancelCauseFunc

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
	if n > 0 {
		b.slow.Stop()
	}
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, b.tooLarge(b.most)
	case b.events && b.grows(p[:n]) > maxPiece:
		return 0, b.tooLarge(maxPiece)
	case err != nil && !errors.Is(err, io.EOF):
		err = told(b.ctx, err)
	}
	return n, err
}

// Close ends the request too.
func (b *boundedBody) Close() error {
	b.slow.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
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
func (b *boundedBody) tooLarge(most int64) *llm.Error {
	return &llm.Error{
		Class: llm.ClassInvalid, Cause: llm.ErrTooLarge,
		Message: fmt.Sprintf("the server's answer was cut off after %d MiB, because no model writes that much; is %s right, and does the server work?", most>>20, b.setting),
	}
}
