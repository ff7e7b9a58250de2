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
)

// verbTable is the section of CONTRIBUTING.md that says what a new verb touches.
func verbTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## To add a verb\n")
	section, _, ends := strings.Cut(after, "\n## ")
	if !found || !ends {
		t.Fatal(`CONTRIBUTING.md has no section "To add a verb"`)
	}
	return section
}

var namedPath = regexp.MustCompile("`((?:pkg|internal|template)[^` ]*\\.(?:go|yaml))`")

// TestVerbTable: what the table names is there, and it leaves no part of a verb out.
func TestVerbTable(t *testing.T) {
	t.Parallel()
	section := verbTable(t)
	var rooms []string
	for _, m := range namedPath.FindAllStringSubmatch(section, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("CONTRIBUTING.md, to add a verb: %v", err)
		}
		rooms = append(rooms, filepath.Dir(m[1]))
	}
	for _, room := range []string{"pkg/runtime", "internal/wire", "pkg/httpapi", "pkg/client", "pkg/cli"} {
		if !slices.Contains(rooms, room) {
			t.Errorf("CONTRIBUTING.md, to add a verb: it names nothing of %s", room)
		}
	}
}

// engineFiles are the files of the commands that may import what is under the API: those
// that open a data file, work on it or serve it, and that name its errors. All others
// reach sessions through pkg/client alone.
var engineFiles = map[string]string{
	"pkg/cli/work.go":                      "works on a data file",
	"pkg/cli/dev.go":                       "serves a data file, and works on it",
	"pkg/cli/internal/dev/dev.go":          "serves a data file, and works on it",
	"pkg/cli/internal/exit/exit.go":        "errors of opening a data file and of the work on it",
	"pkg/cli/internal/known/known.go":      "remembers data files",
	"pkg/cli/internal/place/connection.go": "who works on a session",
	"pkg/cli/internal/place/open.go":       "opens a data file",
	"pkg/cli/internal/place/place.go":      "what a data file is opened with",
	"pkg/cli/internal/place/trust.go":      "looks into a data file that is not known yet",
	"pkg/cli/internal/report/words.go":     "errors of a data file in words",
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
