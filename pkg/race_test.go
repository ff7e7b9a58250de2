package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inMakefile returns the words of a list of the Makefile.
func inMakefile(t *testing.T, name string) []string {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^` + name + ` := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	require.NotNil(t, list, "the Makefile has no list %s", name)
	words := strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " "))
	require.NotEmpty(t, words)
	return words
}

// TestLeftToNightlyRace: a test that make test-race leaves to make nightly is in the tree.
func TestLeftToNightlyRace(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	eachSource(t, func(_, source string) {
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(source, -1) {
			tests[found[1]] = true
		}
	})
	for _, name := range inMakefile(t, "RACELATER") {
		require.True(t, tests[name], "RACELATER in the Makefile names %s, which is not in the tree", name)
	}
}

// TestRoomsWithoutRace: a room that make test-race leaves out starts no goroutine,
// itself or in its tests, and needs no lock.
func TestRoomsWithoutRace(t *testing.T) {
	t.Parallel()
	for _, room := range inMakefile(t, "NORACE") {
		paths, err := filepath.Glob(filepath.Join("..", room, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, paths, "%s is in NORACE of the Makefile, but not in the tree", room)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, of := range concurrent(t, text) {
				t.Errorf("%s: %s: take %s out of NORACE in the Makefile", path, of, room)
			}
		}
	}
}

// concurrent says what in a file needs the race detector.
func concurrent(t *testing.T, text []byte) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "a go statement")
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			switch {
			case n.Sel.Name == "Go", n.Sel.Name == "AfterFunc":
				found = append(found, "a call of "+n.Sel.Name)
			case of != nil && of.Name == "httptest" && strings.HasPrefix(n.Sel.Name, "New") && strings.HasSuffix(n.Sel.Name, "Server"):
				found = append(found, "a server")
			case of != nil && of.Name == "sync" && strings.HasSuffix(n.Sel.Name, "Mutex"):
				found = append(found, "a lock")
			}
		}
		return true
	})
	return found
}

func TestRoomsWithoutRace_finds(t *testing.T) {
	t.Parallel()
	const file = "package p\nvar mu sync.RWMutex\nfunc f() { go f(); wg.Go(f); httptest.NewServer(nil); time.AfterFunc(1, f); httptest.NewRequest() }\n"
	require.Equal(t, []string{"a lock", "a go statement", "a call of Go", "a server", "a call of AfterFunc"}, concurrent(t, []byte(file)))
	require.Empty(t, concurrent(t, []byte("package p\nfunc f() { f() }\n")))
}
