package dev

import (
	"net/http"
	"time"

	"github.com/adjourn/adjourn/internal/grant"
)

// Request is one request that was answered, for people who watch.
type Request struct {
	Method string
	// Path as it was sent, which may be anything, without the token of a link.
	Path   string
	Status int
	// Left says that who asked had gone before there was an answer.
	Left bool
	Took time.Duration
}

// reporting reports every request once it is answered.
func (s *Server) reporting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := s.cfg.Now()
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		s.cfg.OnRequest(Request{Method: r.Method, Path: grant.Masked(r.URL.Path), Status: seen.status, Left: r.Context().Err() != nil, Took: s.cfg.Now().Sub(began)})
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] reach what is underneath.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
