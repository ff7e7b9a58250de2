package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

// document is the document as it is served.
func document(t testing.TB) *openapi3.T {
	t.Helper()
	out := newWorld(t).send("", http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, out.Code)
	doc, err := openapi3.NewLoader().LoadFromData(out.Body.Bytes())
	require.NoError(t, err)
	return doc
}

func TestOpenAPI_is_valid(t *testing.T) {
	t.Parallel()
	doc := document(t)
	require.Equal(t, "3.1.0", doc.OpenAPI)
	require.NoError(t, doc.Validate(context.Background(), openapi3.EnableExamplesValidation()))
}

// TestOpenAPI_routes: the document has the routes of the table and no other.
func TestOpenAPI_routes(t *testing.T) {
	t.Parallel()
	var inDocument, inTable []string
	for path, item := range document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			inDocument = append(inDocument, method+" "+path+" "+operation.OperationID)
			require.NotEmpty(t, operation.Summary, operation.OperationID)
		}
	}
	for _, route := range httpapi.Routes() {
		require.Contains(t, httpapi.Functions(), route.Function)
		inTable = append(inTable, route.Method+" "+route.Path+" "+route.OperationID)
	}
	require.ElementsMatch(t, inTable, inDocument, "A: pkg/httpapi/routes.go, B: pkg/httpapi/openapi.yaml")
}

// codesIn reads the codes a file declares.
func codesIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && !strings.HasPrefix(spec.Names[0].Name, "Class") && spec.Names[0].Name != "MaxInput" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			codes = append(codes, code)
		}
		return true
	})
	require.NotEmpty(t, codes)
	return codes
}

// TestOpenAPI_codes: every code there is, is in the document, and said of a status.
func TestOpenAPI_codes(t *testing.T) {
	t.Parallel()
	doc := document(t)
	var inDocument []string
	for _, code := range doc.Components.Schemas["Code"].Value.Enum {
		inDocument = append(inDocument, code.(string))
	}
	require.ElementsMatch(t, codesIn(t, "../../internal/codes/codes.go"), inDocument)
	var said strings.Builder
	for _, response := range doc.Components.Responses {
		said.WriteString(*response.Value.Description)
	}
	for _, code := range inDocument {
		require.Contains(t, said.String(), "`"+code+"`")
	}
}

// closed makes every object of the document closed, so that an answer with a
// field that nobody described is found.
func closed(schemas openapi3.Schemas) {
	no := false
	for _, ref := range schemas {
		s := ref.Value
		if ref.Ref != "" || s == nil {
			continue
		}
		if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil {
			s.AdditionalProperties.Has = &no
		}
		closed(s.Properties)
		if s.Items != nil {
			closed(openapi3.Schemas{"items": s.Items})
		}
	}
}

// kept are the golden exchanges, which TestExchanges holds to what is told.
func kept(t testing.TB) map[string]exchange {
	t.Helper()
	files, err := os.ReadDir(exchangeDir)
	require.NoError(t, err)
	all := map[string]exchange{}
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(exchangeDir, file.Name()))
		require.NoError(t, err)
		var e exchange
		require.NoError(t, json.Unmarshal(raw, &e))
		all[strings.TrimSuffix(file.Name(), ".json")] = e
	}
	return all
}

// untold is what to do where no exchange shows an operation, or a status.
const untold = "no exchange shows %s: tell one at the end of exchanges (exchange_test.go), then go test ./pkg/httpapi -run 'TestExchanges$' -update"

var inPath = regexp.MustCompile(`^/sessions/([^/]+)`)

// TestExchanges_hold_to_the_document holds every golden exchange to the document:
// requests that were taken, and all answers.
func TestExchanges_hold_to_the_document(t *testing.T) {
	t.Parallel()
	doc := document(t)
	closed(doc.Components.Schemas)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	seen := map[string]bool{}
	statuses := map[string]bool{}
	for name, e := range kept(t) {
		t.Run(name, func(t *testing.T) {
			target, err := url.Parse(e.Request.Target)
			require.NoError(t, err)
			path, params := target.Path, map[string]string{}
			if match := inPath.FindStringSubmatch(path); match != nil {
				path, params["id"] = strings.Replace(path, match[0], "/sessions/{id}", 1), match[1]
			}
			if checkpoint, ok := strings.CutPrefix(path, "/sessions/{id}/checkpoints/"); ok {
				path, params["checkpoint"] = "/sessions/{id}/checkpoints/{checkpoint}", checkpoint
			}
			if rest, ok := strings.CutPrefix(path, "/sessions/{id}/waits/"); ok {
				wait, what, _ := strings.Cut(rest, "/")
				path, params["wait"] = strings.TrimSuffix("/sessions/{id}/waits/{wait}/"+what, "/"), wait
			}
			if rest, ok := strings.CutPrefix(path, "/sessions/{id}/permissions/"); ok {
				permission, what, _ := strings.Cut(rest, "/")
				path, params["permission"] = "/sessions/{id}/permissions/{permission}/"+what, permission
			}
			if token, ok := strings.CutPrefix(path, "/a/"); ok {
				path, params["token"] = "/a/{token}", token
			}
			item := doc.Paths.Value(path)
			if item == nil || item.Operations()[e.Request.Method] == nil {
				problem := doc.Components.Schemas["Problem"].Value
				var body any
				require.NoError(t, json.Unmarshal(e.Response.Body, &body))
				require.NoError(t, problem.VisitJSON(body, openapi3.EnableJSONSchema2020()))
				return
			}
			operation := item.Operations()[e.Request.Method]
			if e.Request.Header["Content-Type"] == mediaForm {
				var text string
				require.NoError(t, json.Unmarshal(e.Request.Body, &text))
				e.Request.Body = []byte(text)
			}
			seen[operation.OperationID] = true
			statuses[strconv.Itoa(e.Response.Status)] = true
			request, err := http.NewRequestWithContext(context.Background(), e.Request.Method, e.Request.Target, bytes.NewReader(e.Request.Body))
			require.NoError(t, err)
			if len(e.Request.Body) == 0 {
				request.Body = http.NoBody
			}
			for key, value := range e.Request.Header {
				request.Header.Set(key, value)
			}
			input := &openapi3filter.RequestValidationInput{
				Request: request, PathParams: params, QueryParams: target.Query(),
				Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: e.Request.Method, Operation: operation},
				Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
			}
			if e.Response.Status < http.StatusBadRequest {
				require.NoError(t, openapi3filter.ValidateRequest(context.Background(), input))
			}
			if string(e.Response.Body) == `"left out: it is long"` {
				return
			}
			header := http.Header{}
			for key, value := range e.Response.Header {
				header.Set(key, value)
			}
			require.NoError(t, openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
				RequestValidationInput: input, Status: e.Response.Status, Header: header, Body: io.NopCloser(bytes.NewReader(e.Response.Body)), Options: input.Options,
			}))
			described := operation.Responses.Value(strconv.Itoa(e.Response.Status)).Value.Headers
			for key := range e.Response.Header {
				if key == "Content-Type" {
					continue
				}
				require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(described)), func(d string) bool { return strings.EqualFold(d, key) }), "%s is not described", key)
			}
		})
	}
	for _, route := range httpapi.Routes() {
		require.True(t, seen[route.OperationID], untold, route.OperationID)
	}
	for _, status := range []string{"200", "202", "400", "401", "403", "404", "409", "410", "413", "415", "500"} {
		require.True(t, statuses[status], untold, "status "+status)
	}
}
