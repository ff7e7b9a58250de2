package pkg_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exportedLists has one file for each public room.
const exportedLists = "testdata/exported"

// TestExportedNames: what a public room exports is listed, so that a name more or
// less is a decision, seen in the diff. A struct's fields and an interface's methods
// are names too, and so is what an alias of an internal type has.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	all, err := sources("..")
	require.NoError(t, err)
	rooms := map[string][]source{}
	for _, s := range all {
		rooms[s.room] = append(rooms[s.room], s)
	}
	listed := map[string]bool{}
	total := 0
	for room := range rooms {
		if !strings.HasPrefix(room, "pkg/") || isInternal(room) {
			continue
		}
		names := exportedNames(t, room, rooms)
		total += len(names)
		path := filepath.Join(exportedLists, strings.ReplaceAll(strings.TrimPrefix(room, "pkg/"), "/", "_")+".txt")
		listed[path] = true
		now := strings.Join(names, "\n") + "\n"
		if *update {
			require.NoError(t, os.MkdirAll(exportedLists, 0o755))
			require.NoError(t, os.WriteFile(path, []byte(now), 0o644))
			continue
		}
		then, err := os.ReadFile(path)
		if err != nil || string(then) != now {
			more, less := difference(strings.Fields(now), strings.Fields(string(then))), difference(strings.Fields(string(then)), strings.Fields(now))
			t.Errorf("%s exports %v, which pkg/%s does not list, and not %v, which it does: if that is meant, go test ./pkg -run TestExportedNames -update, and say why in the commit", room, more, path, less)
		}
	}
	there, err := filepath.Glob(exportedLists + "/*.txt")
	require.NoError(t, err)
	for _, path := range there {
		if listed[path] {
			continue
		}
		if *update {
			require.NoError(t, os.Remove(path))
			continue
		}
		t.Errorf("pkg/%s is the list of no public room", path)
	}
	t.Logf("%d rooms export %d names", len(listed), total)
}

// TestExamples: the documentation of a public room shows how it is used.
func TestExamples(t *testing.T) {
	t.Parallel()
	lists, err := filepath.Glob(exportedLists + "/*.txt")
	require.NoError(t, err)
	for _, list := range lists {
		room := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(list), ".txt"), "_", "/")
		tests, err := filepath.Glob(room + "/*_test.go")
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(tests, func(path string) bool {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			return strings.Contains(string(text), "\nfunc Example")
		}), "pkg/%s has no Example: what it does for its user, in a file example_test.go", room)
	}
}

func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}

// isInternal reports whether a room cannot be imported from outside, so that nobody
// reads its documentation.
func isInternal(room string) bool { return slices.Contains(strings.Split(room, "/"), "internal") }

// exportedNames returns those of a room, sorted, with Type.Name for what a type has.
func exportedNames(t *testing.T, room string, rooms map[string][]source) []string {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	imported := map[string]string{} // the name of a room of ours in this one
	for _, s := range rooms[room] {
		file, err := parser.ParseFile(fset, s.path, s.text, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
		for _, spec := range file.Imports {
			from, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			name := filepath.Base(from)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if ours {
				imported[name] = from
			}
		}
	}
	p, err := doc.NewFromFiles(fset, parsed, module+"/"+room)
	require.NoError(t, err)
	var names []string
	values := func(all []*doc.Value) {
		for _, v := range all {
			names = append(names, v.Names...)
		}
	}
	funcs := func(of string, all []*doc.Func) {
		for _, f := range all {
			names = append(names, of+f.Name)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		for _, spec := range typ.Decl.Specs {
			spec, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			for _, member := range members(spec.Type) {
				names = append(names, typ.Name+"."+member)
			}
			of, ok := spec.Type.(*ast.SelectorExpr)
			if !ok || !spec.Assign.IsValid() {
				continue
			}
			if from := imported[of.X.(*ast.Ident).Name]; isInternal(from) {
				for _, name := range exportedNames(t, from, rooms) {
					if member, ok := strings.CutPrefix(name, of.Sel.Name+"."); ok {
						names = append(names, typ.Name+"."+member)
					}
				}
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !ast.IsExported(name[strings.LastIndex(name, ".")+1:])
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// members are the fields of a struct and the methods of an interface.
func members(of ast.Expr) (names []string) {
	var fields *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		fields = of.Fields
	case *ast.InterfaceType:
		fields = of.Methods
	default:
		return nil
	}
	for _, f := range fields.List {
		for _, name := range f.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// TestExamples_import_what_a_user_can: an example is there to be copied.
func TestExamples_import_what_a_user_can(t *testing.T) {
	t.Parallel()
	found := 0
	for _, pattern := range []string{"*/example_test.go", "*/*/example_test.go", "../examples/*/example_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		found += len(files)
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				require.NotContains(t, spec.Path.Value, "/internal/", "%s: a user's program cannot import it", path)
			}
		}
	}
	require.Greater(t, found, 10)
}

func TestExportedNames_finds(t *testing.T) {
	t.Parallel()
	const file = `// Package words is a toy.
package words

const A, b = 1, 2

var V = 1

type T struct { F, g int }

type kept struct{ G int }

type I interface { M(); n() }

func New() T { return T{} }

func (T) Do() {}

func (T) hidden() {}

func Free() {}

type Alias = secret.S

type Public = open.S
`
	const imports = "\nimport (\n\t\"" + module + "/internal/secret\"\n\t\"" + module + "/pkg/open\"\n)\n"
	const secret = "type S struct { F, g int }\n\nfunc (S) Do() {}\n\ntype Other struct { G int }\n"
	names := exportedNames(t, "pkg/words", map[string][]source{
		"pkg/words":       {{path: "words.go", text: []byte(strings.Replace(file, "package words\n", "package words\n"+imports, 1))}},
		"internal/secret": {{path: "secret.go", text: []byte("package secret\n\n" + secret)}},
		"pkg/open":        {{path: "open.go", text: []byte("package open\n\n" + secret)}},
	})
	require.Equal(t, []string{"A", "Alias", "Alias.Do", "Alias.F", "Free", "I", "I.M", "New", "Public", "T", "T.Do", "T.F", "V"}, names, fmt.Sprint(names))
}
