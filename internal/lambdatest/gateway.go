//go:build linux

package lambdatest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// APIID is what a gateway says its id is.
const APIID = "lambdatest"

// integrationTime is how long an HTTP API waits for a function.
const integrationTime = 30 * time.Second

// Route sends requests of a method and path to a function. Segments of the path
// in braces match anything.
type Route struct {
	Method, Path string
	Function     *Function
}

// Gateway is an HTTP API of API Gateway with payload format 2.0, on the stage
// $default. Fields must not change once it serves.
type Gateway struct {
	Routes []Route
	// Authorize is the JWT authorizer: it returns the verified claims of a request,
	// or false for one that is refused with 401. nil lets everybody in, without claims.
	Authorize func(*http.Request) (claims map[string]string, ok bool)
}

var _ http.Handler = (*Gateway)(nil)

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, parameters := g.route(r)
	if route == nil {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	event, err := g.event(r, *route, parameters)
	if err != nil {
		refuse(w, http.StatusBadRequest, "Bad Request")
		return
	}
	if g.Authorize != nil {
		claims, ok := g.Authorize(r)
		if !ok {
			w.Header().Set("Www-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "Unauthorized")
			return
		}
		event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims},
		}
	}
	payload, err := json.Marshal(event)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
		return
	}
	// The function goes on when the caller has left.
	type answer struct {
		payload []byte
		err     error
	}
	answered := make(chan answer, 1)
	ctx := context.WithoutCancel(r.Context())
	go func() {
		payload, err := route.Function.Invoke(ctx, payload)
		answered <- answer{payload, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			refuse(w, http.StatusInternalServerError, "Internal Server Error")
			return
		}
		respond(w, a.payload)
	case <-time.After(integrationTime):
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message}) // who does not listen is gone
}

func (g *Gateway) route(r *http.Request) (*Route, map[string]string) {
	path := strings.Split(r.URL.Path, "/")
	for i, route := range g.Routes {
		pattern := strings.Split(route.Path, "/")
		if route.Method != r.Method || len(pattern) != len(path) {
			continue
		}
		parameters := map[string]string{}
		if matches(pattern, path, parameters) {
			return &g.Routes[i], parameters
		}
	}
	return nil, nil
}

func matches(pattern, path []string, parameters map[string]string) bool {
	for i, segment := range pattern {
		if name, ok := strings.CutPrefix(segment, "{"); ok && path[i] != "" {
			parameters[strings.TrimSuffix(name, "}")] = path[i]
			continue
		}
		if segment != path[i] {
			return false
		}
	}
	return true
}

func (g *Gateway) event(r *http.Request, route Route, parameters map[string]string) (events.APIGatewayV2HTTPRequest, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 10<<20+1))
	if err != nil {
		return events.APIGatewayV2HTTPRequest{}, err
	}
	now, key := time.Now().UTC(), route.Method+" "+route.Path
	event := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: key, RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host}, PathParameters: parameters,
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: key, AccountID: Account, Stage: "$default", RequestID: newID()[:16], APIID: APIID,
			DomainName: r.Host, DomainPrefix: APIID,
			Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: "127.0.0.1", UserAgent: r.UserAgent(),
			},
		},
	}
	for name, values := range r.Header {
		if name == "Cookie" {
			for _, line := range values {
				event.Cookies = append(event.Cookies, strings.Split(line, "; ")...)
			}
			continue
		}
		event.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	for name, values := range r.URL.Query() {
		if event.QueryStringParameters == nil {
			event.QueryStringParameters = map[string]string{}
		}
		event.QueryStringParameters[name] = strings.Join(values, ",")
	}
	event.Body = string(body)
	if kind := r.Header.Get("Content-Type"); len(body) > 0 && !strings.HasPrefix(kind, "text/") && !strings.Contains(kind, "json") {
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return event, nil
}

// respond turns a function's answer into a response. One without a status is the
// body of a 200, as the payload format has it.
func respond(w http.ResponseWriter, payload []byte) {
	var answer events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(payload, &answer); err != nil || answer.StatusCode == 0 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(payload)
		return
	}
	body := []byte(answer.Body)
	if answer.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(answer.Body)
		if err != nil {
			refuse(w, http.StatusInternalServerError, "Internal Server Error")
			return
		}
		body = decoded
	}
	for _, name := range slices.Sorted(maps.Keys(answer.Headers)) {
		w.Header().Set(name, answer.Headers[name])
	}
	for _, cookie := range answer.Cookies {
		w.Header().Add("Set-Cookie", cookie)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(body)
}
