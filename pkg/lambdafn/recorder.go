package lambdafn

import (
	"bytes"
	"maps"
	"net/http"
)

// recorder keeps an answer by the rules of net/http's own writer: the first
// status counts, headers are those at that time, nothing written is 200, and a
// body is dropped where there must be none. It does not flush: an HTTP API
// cannot stream, so it does not claim to.
type recorder struct {
	method string
	header http.Header
	sent   http.Header // what the handler sees no more, once the status is written
	status int
	body   bytes.Buffer
}

func newRecorder(method string) *recorder {
	return &recorder{method: method, header: http.Header{}}
}

// Header returns the headers; changes after the status was written have no effect.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, once. Informational ones are not sent.
func (r *recorder) WriteHeader(status int) {
	if r.status != 0 || status >= 100 && status < 200 {
		return
	}
	if status < 100 || status > 999 {
		panic("invalid status") // as net/http does
	}
	r.status, r.sent = status, maps.Clone(r.header)
}

// Write adds to the body. Where there must be none it says so, as net/http does.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	switch {
	case r.status == http.StatusNoContent || r.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case r.method == http.MethodHead:
		return len(p), nil
	}
	return r.body.Write(p)
}

// finish returns the headers to send.
func (r *recorder) finish() http.Header {
	r.WriteHeader(http.StatusOK)
	if r.body.Len() > 0 && r.sent.Get("Content-Type") == "" {
		r.sent.Set("Content-Type", http.DetectContentType(r.body.Bytes()))
	}
	// The gateway counts for itself, and what it hands on may be encoded otherwise.
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection"} {
		r.sent.Del(name)
	}
	return r.sent
}
