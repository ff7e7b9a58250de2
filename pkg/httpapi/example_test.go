package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/httpapi"
)

// A handler needs a runtime, and a function that says who a request comes from.
func ExampleNew() {
	greeter := agent.Agent{Name: "greeter", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) {
		return agent.Reply{Text: "Hello."}, nil
	})}
	app, err := embedded.Open(context.Background(), embedded.Config{
		Registry: func() (*agent.Registry, error) {
			return agent.NewRegistry(agent.Config{Agents: []agent.Agent{greeter}})
		},
		Data: ":memory:",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close() //nolint:errcheck // it is in memory
	handler, err := httpapi.New(httpapi.Config{
		Runtime: app.Runtime,
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				return httpapi.Caller{}, fmt.Errorf("%w: say the secret", httpapi.ErrUnauthenticated)
			}
			return httpapi.Caller{Tenant: "default", Who: "ann"}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, token := range []string{"guess", "secret"} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/sessions", strings.NewReader(`{"agent": "greeter", "sessionId": "first", "input": "Hi"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var body struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(w.Code, body.Code+w.Header().Get("Location"))
	}
	// Output:
	// 401 unauthenticated
	// 202 /sessions/first
}

func ExampleRoutes() {
	for _, route := range httpapi.Routes() {
		if route.OperationID == "submitAnswer" {
			fmt.Println(route.Function, route.Method, route.Path)
		}
	}
	// Output:
	// submit POST /sessions/{id}/submit
}
