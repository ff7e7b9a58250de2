package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/jsonbody"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// handler is the API. An answer is made whole before a byte of it is written,
// so that an error or a panic can still become one.
type handler struct {
	cfg Config
	mux *http.ServeMux
}

// request is one request whose caller is known.
type request struct {
	*http.Request
	w      http.ResponseWriter
	id     string
	caller Caller
	// raw is the body, once it was read.
	raw []byte
}

// response is a whole answer.
type response struct {
	status int
	// header beside those every answer has.
	header map[string]string
	// body is written as JSON; raw JSON is written as it is.
	body any
}

// operation carries out one route.
type operation func(*request) (*response, error)

// headers are on every answer: nothing here is for caches, frames or guesses.
var headers = map[string]string{
	"Cache-Control":           "no-store",
	"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	"Referrer-Policy":         "no-referrer",
	"X-Content-Type-Options":  "nosniff",
}

// pathPattern is what paths of ours are made of. What is not is refused before
// the mux sees it, which would clean it and redirect.
var pathPattern = regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)+$`)

func clean(path string) bool {
	odd := func(part string) bool { return part == "." || part == ".." }
	return pathPattern.MatchString(path) && !slices.ContainsFunc(strings.Split(path, "/"), odd)
}

// ServeHTTP answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !clean(r.URL.EscapedPath()) || !h.serves(r) {
		h.respond(w, r, isOpen(r), h.noRoute)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// serves reports whether there is a route for a request.
func (h *handler) serves(r *http.Request) bool {
	_, pattern := h.mux.Handler(r)
	return pattern != ""
}

// isOpen reports whether a request that no route takes here is one for a route without a caller, which
// another function serves. Of every other one nobody is told whether there is such a route.
func isOpen(r *http.Request) bool {
	return r.URL.Path == openAPIPath && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// noRoute says that nothing serves a request: no such path, or not by that method.
func (h *handler) noRoute(r *request) (*response, error) {
	var allowed []string
	if clean(r.URL.EscapedPath()) {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			if h.serves(&http.Request{Method: method, URL: r.URL, Host: r.Host}) {
				allowed = append(allowed, method)
			}
		}
	}
	if len(allowed) == 0 {
		return nil, refuse(codes.RouteNotFound, "there is nothing at this address; GET %s lists what there is", openAPIPath)
	}
	e := refuse(codes.MethodNotAllowed, "this address takes %s and no other method", strings.Join(allowed, ", "))
	e.Header = map[string]string{"Allow": strings.Join(allowed, ", ")}
	return nil, e
}

// respond carries out an operation and writes its answer; open says that it needs no caller.
func (h *handler) respond(w http.ResponseWriter, httpRequest *http.Request, open bool, op operation) {
	began := h.cfg.Now()
	r := &request{Request: httpRequest, w: w, id: h.cfg.NewID()}
	out := h.answer(r, open, op)
	raw, err := h.fitted(r.Request, out.body)
	if err != nil {
		out = h.refused(r, fmt.Errorf("encode the answer: %w", err))
		raw, _ = encode(out.body) // a problem is text and numbers
	}
	media := client.MediaJSON
	if _, is := out.body.(client.Problem); is {
		media = client.MediaProblem
	}
	for _, set := range []map[string]string{headers, {"Content-Type": media}, out.header, {
		client.HeaderRequestID: r.id, "Content-Length": strconv.Itoa(len(raw)),
	}} {
		for name, value := range set {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(out.status)
	if r.Method != http.MethodHead {
		_, err = w.Write(raw) // who hung up needs no answer
	}
	h.cfg.Log.LogAttrs(r.Context(), slog.LevelDebug, "request",
		slog.String("request", r.id), slog.String("method", r.Method), slog.String("path", grant.Masked(r.URL.Path)), slog.Int("status", out.status),
		slog.Int("bytes", len(raw)), slog.Duration("took", h.cfg.Now().Sub(began)),
		slog.String("tenant", r.caller.Tenant), slog.String("who", r.caller.Who), slog.Any("error", err))
}

// answer makes the answer, whatever happens on the way.
func (h *handler) answer(r *request, open bool, op operation) (out *response) {
	defer func() {
		if cause := recover(); cause != nil {
			out = h.refused(r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	if !open {
		// Before anything is read or told, even whether there is such a route.
		if err := h.authenticate(r); err != nil {
			return h.refused(r, err)
		}
	}
	if r.PathValue("id") != "" {
		if err := r.key().Validate(); err != nil {
			return h.refused(r, err)
		}
	}
	out, err := op(r)
	if err != nil {
		return h.refused(r, err)
	}
	return out
}

func (h *handler) authenticate(r *request) error {
	caller, err := h.cfg.Authenticate(r.Request)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		e := refuse(codes.Unauthenticated, "%s", why(err, ErrUnauthenticated))
		e.Header = map[string]string{"WWW-Authenticate": challenge(r.Request)}
		return e
	case errors.Is(err, ErrForbidden):
		return refuse(codes.Forbidden, "%s", why(err, ErrForbidden))
	case err != nil:
		return fmt.Errorf("authenticate: %w", err)
	}
	if store.ValidateTenant(caller.Tenant) != nil || !nameable(caller.Who) {
		// Verified, but not a name we can keep sessions under: no guess is made.
		h.cfg.Log.WarnContext(r.Context(), "caller without a usable tenant or name", "request", r.id, "tenant", jsonbody.Quoted(caller.Tenant), "who", jsonbody.Quoted(caller.Who))
		return refuse(codes.Forbidden, "who you are was verified, but it says no tenant or no name that can be used here")
	}
	if caller.From == "" {
		caller.From = "http " + host(r.RemoteAddr)
	}
	r.caller = caller
	return nil
}

// maxWho is how long a name may be, in characters: an ARN of IAM with its longest path fits.
const maxWho = 640

// nameable reports whether a name may be written to every entry and answer, and
// shown to people: there is one, it is not endless, and all of it can be seen. A
// space around it cannot, and would make two names look like one.
func nameable(who string) bool {
	unseen := func(c rune) bool {
		return !unicode.IsPrint(c) || unicode.In(c, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
	}
	return who != "" && strings.TrimSpace(who) == who && utf8.ValidString(who) && utf8.RuneCountInString(who) <= maxWho && !strings.ContainsFunc(who, unseen)
}

// why is an authenticator's refusal without the word the answer's code has already.
func why(err, refusal error) string {
	return strings.TrimPrefix(err.Error(), refusal.Error()+": ")
}

// challenge is the WWW-Authenticate header of RFC 6750: it names an error only
// to who brought something.
func challenge(r *http.Request) string {
	if r.Header.Get("Authorization") == "" {
		return `Bearer realm="adjourn"`
	}
	return `Bearer realm="adjourn", error="invalid_token"`
}

// host is the address without the port, which says nothing; some gateways give none.
func host(addr string) string {
	if name, _, err := net.SplitHostPort(addr); err == nil {
		return name
	}
	return addr
}

// key is the session the path names, of the caller's tenant.
func (r *request) key() session.Key {
	return session.Key{Tenant: r.caller.Tenant, ID: r.PathValue("id")}
}

func (r *request) by() runtime.Caller {
	return runtime.Caller{Who: r.caller.Who, From: r.caller.From, Roles: r.caller.Roles, OneUser: r.caller.OneUser, Unverified: r.caller.Unverified}
}

func encode(body any) ([]byte, error) {
	switch whole := body.(type) {
	case json.RawMessage:
		return whole, nil
	case html:
		return whole, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
