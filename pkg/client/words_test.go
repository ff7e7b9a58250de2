package client_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rooms whose users must not need internal/codes.
var public = []string{".", "../httpapi"}

func parse(t *testing.T, dir string) []*ast.File {
	t.Helper()
	packages, err := parser.ParseDir(gotoken.NewFileSet(), dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // no build tags there
	require.NoError(t, err)
	var files []*ast.File
	for _, p := range packages {
		for _, file := range p.Files {
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files)
	return files
}

// typesOf yields the exported types of a file.
func typesOf(file *ast.File, yield func(*ast.TypeSpec)) {
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == gotoken.TYPE {
			for _, spec := range d.Specs {
				if s := spec.(*ast.TypeSpec); s.Name.IsExported() {
					yield(s)
				}
			}
		}
	}
}

// TestWords: each type of internal/codes has a name in this package, and what is public
// names nothing of the internal one.
func TestWords(t *testing.T) {
	t.Parallel()
	var internals, named []string
	for _, file := range parse(t, "../../internal/codes") {
		typesOf(file, func(s *ast.TypeSpec) { internals = append(internals, s.Name.Name) })
	}
	internal := func(what string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "codes" {
					t.Errorf("%s names codes.%s: use its alias in pkg/client", what, s.Sel.Name)
				}
			}
			return true
		})
	}
	for _, dir := range public {
		for _, file := range parse(t, dir) {
			typesOf(file, func(s *ast.TypeSpec) {
				if s.Assign.IsValid() {
					if of, ok := s.Type.(*ast.SelectorExpr); ok && of.X.(*ast.Ident).Name == "codes" {
						named = append(named, s.Name.Name)
					}
					return
				}
				if fields, ok := s.Type.(*ast.StructType); ok {
					for _, field := range fields.Fields.List {
						if len(field.Names) == 0 || field.Names[0].IsExported() {
							internal(s.Name.Name, field.Type)
						}
					}
					return
				}
				internal(s.Name.Name, s.Type)
			})
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() {
					internal(f.Name.Name, f.Type)
				}
			}
		}
	}
	require.ElementsMatch(t, internals, named, "A: types of internal/codes, B: aliases in pkg/client/words.go")
}
