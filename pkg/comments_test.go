package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
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

// internalName matches the name of an internal room with one of its names, outside brackets.
func internalName() *regexp.Regexp {
	var rooms []string
	for room := range plan.floors {
		if strings.Contains("/"+room, "/internal/") {
			rooms = append(rooms, regexp.QuoteMeta(path.Base(room)))
		}
	}
	return regexp.MustCompile(`(?:^|[^\[*\w./"])((?:` + strings.Join(rooms, "|") + `)\.[A-Z]\w*)`)
}

// TestComments_name_no_internals: who reads the documentation of a public package cannot see what
// is internal. A comment there says it in words, or links to it.
func TestComments_name_no_internals(t *testing.T) {
	t.Parallel()
	internal := internalName()
	require.True(t, internal.MatchString("the waits of one stored.Suspension"))
	require.False(t, internal.MatchString("see [stored.Suspension], [*stored.Sessions]"))
	all, err := sources("..")
	require.NoError(t, err)
	for _, s := range all {
		if strings.Contains("/"+s.room+"/", "/internal/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for name, text := range exportedComments(file) {
			if found := internal.FindStringSubmatch(strings.ReplaceAll(text, "\n", " ")); found != nil {
				t.Errorf("%s: the comment of %s names %s: say it in words, or [%s]", s.path, name, found[1], found[1])
			}
		}
	}
}

// exportedComments returns the comments of a file's package and of its exported names, with the
// fields and methods of its exported types.
func exportedComments(file *ast.File) map[string]string {
	texts := map[string]string{"the package": file.Doc.Text()}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				texts[d.Name.Name] += d.Doc.Text()
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						texts[spec.Name.Name] += d.Doc.Text() + spec.Doc.Text() + spec.Comment.Text() + fieldComments(spec.Type)
					}
				case *ast.ValueSpec:
					if spec.Names[0].IsExported() {
						texts[spec.Names[0].Name] += d.Doc.Text() + spec.Doc.Text() + spec.Comment.Text()
					}
				}
			}
		}
	}
	return texts
}

func fieldComments(of ast.Expr) (text string) {
	ast.Inspect(of, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && (len(f.Names) == 0 || f.Names[0].IsExported()) {
			text += f.Doc.Text() + f.Comment.Text()
		}
		return true
	})
	return text
}
