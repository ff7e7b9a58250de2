// Package httpapi serves the verbs of a runtime as an HTTP API.
package httpapi

import (
	"net/http"
	"slices"
)

// Function says which of the serverless functions serves a route (template.yaml).
// The local server serves all of them.
type Function string

// The functions.
const (
	FunctionStart  Function = "start"
	FunctionResume Function = "resume"
	FunctionSubmit Function = "submit"
	FunctionQuery  Function = "query"
)

// Functions lists every function that serves routes.
func Functions() []Function {
	return []Function{FunctionStart, FunctionResume, FunctionSubmit, FunctionQuery}
}

// Route is one line of the API: a method with a path as [http.ServeMux] and
// OpenAPI write it.
type Route struct {
	Method      string
	Path        string
	Function    Function
	OperationID string
}

// openAPIPath is the one route that needs no caller: what it tells is public.
const openAPIPath = "/openapi.json"

var routes = []Route{
	{http.MethodPost, "/sessions", FunctionStart, "startSession"},
	{http.MethodPost, "/sessions/{id}/resume", FunctionResume, "resumeSession"},
	{http.MethodPost, "/sessions/{id}/submit", FunctionSubmit, "submitAnswer"},
	{http.MethodGet, "/sessions", FunctionQuery, "listSessions"},
	{http.MethodGet, "/sessions/{id}", FunctionQuery, "getSession"},
	{http.MethodGet, "/sessions/{id}/messages", FunctionQuery, "listMessages"},
	{http.MethodGet, "/sessions/{id}/runs", FunctionQuery, "listRuns"},
	{http.MethodGet, "/sessions/{id}/checkpoints", FunctionQuery, "listCheckpoints"},
	{http.MethodGet, "/sessions/{id}/waits", FunctionQuery, "listWaits"},
	{http.MethodGet, "/sessions/{id}/entries", FunctionQuery, "listEntries"},
	{http.MethodGet, "/waits", FunctionQuery, "listOpenWaits"},
	{http.MethodGet, openAPIPath, FunctionQuery, "getOpenAPI"},
}

// Routes returns every route there is: the one table, to which the handler, the
// OpenAPI document and the template of the serverless bundle are held by tests.
func Routes() []Route { return slices.Clone(routes) }
