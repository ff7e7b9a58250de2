package pkg_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// historical is what a comment says of how the code came to be, which the history of
// the repository keeps.
var historical = regexp.MustCompile(`(?i)\b(used to (be|do|have|take|say|read|write)|formerly|(in|until) an earlier version|(of|in|since|until|before|after) issue #?\d+|(TODO|FIXME|XXX)\b)`)

// TestComments_say_what_is: why and what, not what was; open work is an issue.
func TestComments_say_what_is(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != ".." && (name == "testdata" || name == "node_modules" || name[0] == '.') {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range file.Comments {
			if found := historical.FindString(strings.ReplaceAll(group.Text(), "\n", " ")); found != "" {
				t.Errorf("%s: a comment says %q: say what is, and why", fset.Position(group.Pos()), found)
			}
		}
		return nil
	})
	require.NoError(t, err)
}

// ours is what only those who work on this repository know.
var ours = regexp.MustCompile(`(?i)\b(rooms?|floors?)\b`)

// TestComments_of_public_packages: the package comment, which go doc shows, speaks of
// packages, not of the parts of this house.
func TestComments_of_public_packages(t *testing.T) {
	t.Parallel()
	total := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "internal") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		if file.Doc != nil {
			total++
			require.NotRegexp(t, ours, file.Doc.Text(), path)
		}
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, total, 20)
}
