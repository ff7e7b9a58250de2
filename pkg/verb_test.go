package pkg_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/adjourn/adjourn/pkg/httpapi"
)

const verbPage = "docs/design/add-a-verb.md"

var namedPath = regexp.MustCompile("`([A-Za-z][A-Za-z0-9_./-]*(?:/|\\.(?:go|yaml|md|txt)))`")

// verbParts are what a verb is made of and held by: the page leaves none out.
var verbParts = []string{
	"pkg/runtime", "pkg/httpapi", "pkg/client", "pkg/cli", "pkg/testdata/exported/",
	"pkg/client/session.go", "pkg/client/ids.go", "pkg/client/verbs.go", "pkg/client/transport_test.go", "pkg/floors_test.go",
	"template.yaml", "pkg/httpapi/openapi.yaml", "docs/http.md", "docs/cli.md", "CHANGELOG.md",
}

// TestVerbTable: what the page names is there, and it leaves no part of a verb out.
func TestVerbTable(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	if !strings.Contains(pages["CONTRIBUTING.md"], "]("+verbPage+")") {
		t.Errorf("CONTRIBUTING.md does not lead to %s", verbPage)
	}
	var named []string
	for _, m := range namedPath.FindAllStringSubmatch(pages[verbPage], -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("%s: %v", verbPage, err)
		}
		named = append(named, m[1], filepath.Dir(m[1]))
	}
	for _, part := range verbParts {
		if !slices.Contains(named, part) {
			t.Errorf("%s names nothing of %s", verbPage, part)
		}
	}
}

// TestRoutes_are_documented: each route has its line in the table of docs/http.md, or is
// told of beside it, and no line is of a route that there is not.
func TestRoutes_are_documented(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(documents(t)["docs/http.md"], "\n## Routes\n")
	if !found {
		t.Fatal("docs/http.md has no section Routes")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	written := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:GET|POST|PUT|DELETE) /[^`?]*)").FindAllStringSubmatch(section, -1) {
		written[m[1]] = true
	}
	for _, r := range httpapi.Routes() {
		if !written[r.Method+" "+r.Path] {
			t.Errorf("docs/http.md, Routes, has no line of %s %s", r.Method, r.Path)
		}
		delete(written, r.Method+" "+r.Path)
	}
	for route := range written {
		t.Errorf("docs/http.md, Routes, has %s, which is not in pkg/httpapi/routes.go", route)
	}
}

// engineFiles are the files of the commands that may import what is under the API: those
// that open a data file, work on it or serve it, and that name its errors. All others
// reach sessions through pkg/client alone.
var engineFiles = map[string]string{
	"pkg/cli/internal/dev/dev.go":           "serves a data file, and works on it",
	"pkg/cli/internal/exit/exit.go":         "errors of opening a data file and of the work on it",
	"pkg/cli/internal/known/known.go":       "remembers data files",
	"pkg/cli/internal/place/connection.go":  "who works on a session",
	"pkg/cli/internal/place/open.go":        "opens a data file",
	"pkg/cli/internal/place/place.go":       "what a data file is opened with",
	"pkg/cli/internal/place/trust.go":       "looks into a data file that is not known yet",
	"pkg/cli/internal/report/error_text.go": "errors of a data file in words",
	"pkg/cli/internal/work/dev.go":          "serves a data file, and works on it",
	"pkg/cli/internal/work/work.go":         "works on a data file",
}

// TestOneWayToSessions: commands reach sessions through the client.
func TestOneWayToSessions(t *testing.T) {
	t.Parallel()
	under := []string{"pkg/runtime", "pkg/store", "pkg/queue", "pkg/sqlite", "internal/engine"}
	seen := map[string]bool{}
	err := filepath.WalkDir("cli", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join("pkg", path))
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if room, ours := strings.CutPrefix(imported, module+"/"); ours && slices.Contains(under, room) {
				seen[name] = true
				if engineFiles[name] == "" {
					t.Errorf("%s imports %s: a command reaches sessions through pkg/client", name, room)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range engineFiles {
		if !seen[name] {
			t.Errorf("%s imports nothing under the API any more: take it off the list", name)
		}
	}
}
