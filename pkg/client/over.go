package client

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Over returns a client of a handler in this process: requests are calls of it, without
// a socket. Nothing is lost on the way, so that a request is sent once, has no time limit
// but that of its context, and has an idempotency key only if the caller gives one.
func Over(h http.Handler) *Client {
	return &Client{
		cfg:  Config{Tries: 1, MaxResponse: math.MaxInt64 - 1, UserAgent: "adjourn-client"},
		base: &url.URL{Scheme: "http", Host: "in-process"}, http: newHTTP(&http.Client{Transport: inProcess{h}}), inProcess: true,
		authorize: func(http.Header) {}, scrub: func(text string) string { return text },
	}
}

// inProcess is a transport that calls a handler.
type inProcess struct{ handler http.Handler }

// RoundTrip returns once the handler has begun its answer, which can be read while it is
// written. The handler sees the end of the request's context, and is waited for: it may
// be writing. To close the body ends its context, too.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, writer := io.Pipe()
	w := &answer{header: http.Header{}, begun: make(chan struct{}), body: writer}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.handler.ServeHTTP(w, served(r.WithContext(ctx)))
		w.WriteHeader(http.StatusOK) // unless the handler has said another one
		_ = writer.Close()           // never fails
	}()
	<-w.begun
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Header: w.sent, ContentLength: -1, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: &answerBody{Reader: body, end: func() {
			cancel()
			_ = body.Close() // never fails
			<-ended
		}},
	}, nil
}

// served is a client's request as a server hands it to a handler.
func served(r *http.Request) *http.Request {
	r.Host, r.RequestURI, r.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "in-process"
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.URL = &url.URL{Path: "/" + strings.TrimPrefix(r.URL.Path, "/"), RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	return r
}

// answer takes what a handler writes. As on a server, the header is what it was when the
// answer began.
type answer struct {
	header, sent http.Header
	status       int
	begun        chan struct{}
	body         *io.PipeWriter
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	}
}

func (w *answer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush begins the answer; what is written can be read at once.
func (w *answer) Flush() { w.WriteHeader(http.StatusOK) }

// answerBody is the body of an answer, which ends its handler when it is closed.
type answerBody struct {
	io.Reader
	once sync.Once
	end  func()
}

func (b *answerBody) Close() error {
	b.once.Do(b.end)
	return nil
}
