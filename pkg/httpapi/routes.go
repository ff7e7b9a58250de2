// Package httpapi serves the verbs of a runtime as an HTTP API.
package httpapi

import (
	"net/http"

	"github.com/adjourn/adjourn/pkg/runtime"
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

// openAPIPath is the route of the document, which is public.
const openAPIPath = "/openapi.json"

// linkPath is where a link leads.
const linkPath = "/a/{token}"

// slackPath is where Slack sends what the buttons of its cards ask.
const slackPath = "/slack/interactions"

// served is a route with what carries it out.
type served struct {
	Route
	carryOut func(*handler, *request) (*response, error)
}

// table has every route there is.
var table = []served{
	{Route{http.MethodPost, "/sessions", FunctionStart, "startSession"}, (*handler).start},
	{Route{http.MethodPost, "/sessions/{id}/resume", FunctionResume, "resumeSession"}, answering((*handler).resume)},
	{Route{http.MethodPost, "/sessions/{id}/submit", FunctionSubmit, "submitAnswer"}, answering((*handler).submit)},
	{Route{http.MethodPost, "/sessions/{id}/answers", FunctionSubmit, "submitAnswers"}, answering((*handler).submitAll)},
	{Route{http.MethodPost, "/sessions/{id}/waits/{wait}/dismiss", FunctionSubmit, "dismissWait"}, answering((*handler).dismiss)},
	{Route{http.MethodPost, "/sessions/{id}/waits/{wait}/extend", FunctionSubmit, "extendWait"}, answering((*handler).extend)},
	{Route{http.MethodPost, "/sessions/{id}/waits/{wait}/delegate", FunctionSubmit, "delegateWait"}, answering((*handler).delegate)},
	{Route{http.MethodPost, "/sessions/{id}/waits/{wait}/permission", FunctionSubmit, "previewPermission"}, (*handler).previewPermission},
	{Route{http.MethodPost, "/sessions/{id}/permissions/{permission}/revoke", FunctionSubmit, "revokePermission"}, (*handler).revoke},
	{Route{http.MethodPost, "/sessions/{id}/retry", FunctionResume, "retrySession"}, (*handler).retry},
	{Route{http.MethodPost, "/sessions/{id}/fork", FunctionResume, "forkSession"}, (*handler).fork},
	{Route{http.MethodPost, "/sessions/{id}/messages", FunctionResume, "sendMessage"}, (*handler).sendMessage},
	{Route{http.MethodPost, "/sessions/{id}/interrupt", FunctionResume, "interruptSession"}, stops(runtime.SignalInterrupt)},
	{Route{http.MethodPost, "/sessions/{id}/cancel", FunctionResume, "cancelSession"}, stops(runtime.SignalCancel)},
	{Route{http.MethodPost, "/sessions/{id}/abort", FunctionResume, "abortSession"}, stops(runtime.SignalAbort)},
	{Route{http.MethodDelete, "/sessions/{id}", FunctionResume, "deleteSession"}, (*handler).remove},
	{Route{http.MethodGet, "/sessions", FunctionQuery, "listSessions"}, (*handler).sessions},
	{Route{http.MethodGet, "/sessions/{id}", FunctionQuery, "getSession"}, (*handler).session},
	{Route{http.MethodGet, "/sessions/{id}/messages", FunctionQuery, "listMessages"}, (*handler).messages},
	{Route{http.MethodGet, "/sessions/{id}/runs", FunctionQuery, "listRuns"}, (*handler).runs},
	{Route{http.MethodGet, "/sessions/{id}/checkpoints", FunctionQuery, "listCheckpoints"}, (*handler).checkpoints},
	{Route{http.MethodGet, "/sessions/{id}/checkpoints/{checkpoint}", FunctionQuery, "getCheckpoint"}, (*handler).checkpoint},
	{Route{http.MethodGet, "/sessions/{id}/waits", FunctionQuery, "listWaits"}, (*handler).waits},
	{Route{http.MethodGet, "/sessions/{id}/waits/{wait}", FunctionQuery, "getWait"}, (*handler).wait},
	{Route{http.MethodGet, "/sessions/{id}/permissions", FunctionQuery, "listPermissions"}, (*handler).permissions},
	{Route{http.MethodGet, "/sessions/{id}/audit", FunctionQuery, "listAudit"}, (*handler).audit},
	{Route{http.MethodGet, "/sessions/{id}/entries", FunctionQuery, "listEntries"}, (*handler).entries},
	{Route{http.MethodGet, "/waits", FunctionQuery, "listOpenWaits"}, (*handler).inbox},
	{Route{http.MethodPost, "/halt", FunctionResume, "haltSteps"}, (*handler).halt},
	{Route{http.MethodPost, "/go", FunctionResume, "letStepsGo"}, (*handler).letGo},
	{Route{http.MethodGet, "/halts", FunctionQuery, "listHalts"}, (*handler).halts},
	{Route{http.MethodPut, "/away", FunctionResume, "setAway"}, (*handler).setAway},
	{Route{http.MethodDelete, "/away", FunctionResume, "endAway"}, (*handler).endAway},
	{Route{http.MethodGet, "/away", FunctionQuery, "listAway"}, (*handler).away},
	{Route{http.MethodGet, "/notices", FunctionQuery, "listNotices"}, (*handler).notices},
	{Route{http.MethodPost, "/sessions/{id}/waits/{wait}/links", FunctionSubmit, "makeLink"}, (*handler).makeLink},
	{Route{http.MethodGet, linkPath, FunctionQuery, "showLink"}, (*handler).showLink},
	{Route{http.MethodPost, linkPath, FunctionSubmit, "decideByLink"}, (*handler).decideByLink},
	{Route{http.MethodPost, slackPath, FunctionSubmit, "takeSlack"}, (*handler).takeSlack},
	{Route{http.MethodGet, openAPIPath, FunctionQuery, "getOpenAPI"}, (*handler).openAPI},
}

// open reports whether a route needs no caller. The document is public, of a link the token is what
// lets somebody in, and of Slack its signature. Every other route asks who calls.
func (r Route) open() bool {
	return r.Path == openAPIPath || r.Path == linkPath || r.Path == slackPath
}

// Routes returns every route there is. The OpenAPI document and the template of the
// serverless bundle are held to them by tests.
func Routes() []Route {
	routes := make([]Route, len(table))
	for i, s := range table {
		routes[i] = s.Route
	}
	return routes
}
