package lambdafn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/internal/grant"
	"github.com/adjourn/adjourn/pkg/client"
)

// proxy serves HTTP events by an [http.Handler]. It stands around
// aws-lambda-go-api-proxy, which makes requests of events and events of responses,
// so that net/http's habits hold where the library has its own: a handler that
// writes nothing answers 200, the first status counts, panics are a 500, headers
// are not split at commas, paths are the gateway's text with the stage taken off.
// An HTTP event is answered whatever is in it; it never fails the function.
type proxy struct {
	Config
	handler http.Handler
	adapter *httpadapter.HandlerAdapterV2
	// admission is nil where every request is answered.
	admission *admission
}

func newProxy(cfg Config, handler http.Handler) *proxy {
	h := &proxy{Config: cfg, handler: handler}
	h.adapter = httpadapter.NewV2(http.HandlerFunc(h.serve))
	return h
}

// NewHTTP returns a handler that answers the requests of an HTTP API (payload
// format 2.0) by any [http.Handler], with Now and Log of cfg. Answers are sent when
// the handler has returned.
func NewHTTP(cfg Config, handler http.Handler) (Handler, error) {
	cfg, err := cfg.checkClock()
	if err != nil {
		return nil, err
	}
	return newProxy(cfg, handler), nil
}

// Invoke answers an HTTP event. Everything else is an error.
func (h *proxy) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	event, err := parseHTTP(raw)
	if errors.Is(err, errNotHTTP) {
		return nil, err
	}
	return h.answer(ctx, event, err)
}

// proxiedEvent is the key of the event in the context of a request that the adapter makes.
type proxiedEvent struct{}

// answer serves an event, one that could not be read with a 400.
func (h *proxy) answer(ctx context.Context, event httpEvent, unreadable error) ([]byte, error) {
	began := h.Now()
	response := events.APIGatewayV2HTTPResponse{}
	err := unreadable
	if err == nil && event.IsBase64Encoded {
		var body []byte
		body, err = base64.StdEncoding.DecodeString(event.Body)
		event.Body, event.IsBase64Encoded = string(body), false
	}
	var stranger error
	if err == nil && h.admission != nil {
		stranger = h.admission.check(&event)
	}
	switch {
	case err != nil:
		response = problem(http.StatusBadRequest, codes.BodyUnreadable, "The request cannot be read.", "")
	case stranger != nil:
		h.Log.WarnContext(ctx, "request refused", "error", stranger.Error(), "gatewayRequestId", event.RequestContext.RequestID)
		response = problem(http.StatusForbidden, codes.Forbidden, "The request did not come by the API and the route that this function answers.", event.RequestContext.RequestID)
	default:
		err = guard(func() (err error) {
			response, err = h.proxied(ctx, event)
			return err
		})
		if err != nil {
			id := event.RequestContext.RequestID
			logFailure(ctx, h.Log, "request failed", err, "gatewayRequestId", id)
			response = problem(http.StatusInternalServerError, "internal", "Something is wrong on our side; the log says what.", id)
		}
	}
	raw, err := fit(response)
	level := slog.LevelInfo
	if response.StatusCode >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	h.Log.Log(ctx, level, "request", "method", event.RequestContext.HTTP.Method, "path", clip(event.RawPath), "status", response.StatusCode,
		"ms", h.Now().Sub(began).Milliseconds(), "bytes", len(raw), "gatewayRequestId", event.RequestContext.RequestID)
	return raw, err
}

// proxied hands the adapter a request in which there is nothing to misread: the rest of the event
// comes in serve.
func (h *proxy) proxied(ctx context.Context, event httpEvent) (events.APIGatewayV2HTTPResponse, error) {
	soft, done := h.soften(ctx, requestMargin)
	defer done()
	request := events.APIGatewayV2HTTPRequest{RawPath: "/", Body: event.Body}
	request.RequestContext.HTTP.Method = http.MethodPost
	return h.adapter.ProxyWithContext(context.WithValue(soft, proxiedEvent{}, &event), request)
}

// serve is what the adapter calls: it mends the request the adapter made and
// records the answer as net/http would send it.
func (h *proxy) serve(w http.ResponseWriter, r *http.Request) {
	event, _ := r.Context().Value(proxiedEvent{}).(*httpEvent)
	stage := fromEvent(r, event)
	rec := newRecorder(r.Method)
	h.handler.ServeHTTP(rec, r)
	header := rec.finish()
	if to := header.Get("Location"); strings.HasPrefix(to, "/") {
		header.Set("Location", stage+to) // the caller knows the API with its stage in front
	}
	body := compress(r, header, rec.body.Bytes())
	maps.Copy(w.Header(), header)
	w.WriteHeader(rec.status)
	if len(body) > 0 {
		_, _ = w.Write(body) // into memory
	}
}

// fromEvent makes a request that of the event: path and query are not parsed as a URL, and headers are not
// split. It returns the stage that it took off the path.
func fromEvent(r *http.Request, event *httpEvent) (stage string) {
	path, stage := stripStage(event.RawPath, event.RequestContext.Stage)
	r.Method = strings.ToUpper(event.RequestContext.HTTP.Method)
	r.URL = &url.URL{Scheme: "https", Host: event.RequestContext.DomainName, Path: path, RawQuery: event.RawQueryString}
	if r.URL.RawQuery == "" {
		query := url.Values{}
		for name, value := range event.QueryStringParameters {
			query.Set(name, value)
		}
		r.URL.RawQuery = query.Encode()
	}
	r.Host, r.RequestURI = r.URL.Host, r.URL.RequestURI()
	r.Header = make(http.Header, len(event.Headers)+1)
	for _, name := range slices.Sorted(maps.Keys(event.Headers)) {
		switch key := textproto.CanonicalMIMEHeaderKey(name); key {
		case "Host":
			r.Host = event.Headers[name]
		case "Content-Length", "Transfer-Encoding", "Connection":
			// They were the connection's to the gateway; the body is here, whole.
		default:
			r.Header[key] = append(r.Header[key], event.Headers[name])
		}
	}
	if len(event.Cookies) > 0 {
		r.Header["Cookie"] = []string{strings.Join(event.Cookies, "; ")}
	}
	r.RemoteAddr = net.JoinHostPort(event.RequestContext.HTTP.SourceIP, "0") // the gateway does not tell the port
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	return stage
}

// stripStage takes a named stage off the path. On $default there is none in it.
func stripStage(path, stage string) (stripped, prefix string) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if stage == "" || stage == "$default" {
		return path, ""
	}
	prefix = "/" + stage
	rest, found := strings.CutPrefix(path, prefix)
	switch {
	case !found || rest != "" && rest[0] != '/':
		return path, "" // a domain of its own, mapped to the stage
	case rest == "":
		rest = "/"
	}
	return rest, prefix
}

func problem(status int, code, detail, requestID string) events.APIGatewayV2HTTPResponse {
	body, err := json.Marshal(client.Problem{
		Type: client.ProblemType + code, Title: http.StatusText(status), Status: status, Detail: detail, Code: code, RequestID: requestID,
	})
	if err != nil {
		body = nil
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status, Body: string(body), Cookies: []string{},
		Headers: map[string]string{"Content-Type": client.MediaProblem, "Cache-Control": "no-store"},
	}
}

// maxPathText bounds what a request's path may put into the log.
const maxPathText = 200

func clip(path string) string {
	path = grant.Masked(path)
	if len(path) > maxPathText {
		return path[:maxPathText] + "…"
	}
	return path
}
