package pkg_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	longFile    = 500  // lines; longer ones are remarked on
	faultyFile  = 800  // lines; from here on it is a fault
	longRoom    = 2500 // lines; a room with more has a ceiling of its own in the plan
	portMethods = 7
	rooms       = 20 // directly under pkg/
	depth       = 2  // below pkg/
)

// house is what the checks hold a tree against.
type house struct {
	floors map[string]float64  // room → floor
	kits   []string            // rooms for _test.go files only
	guests map[string][]string // module → rooms that may import it
	ports  map[string]string   // room → its port interface
	// ceilings are the lines that a room longer than longRoom may have.
	ceilings map[string]int
}

// source is one non-test Go file.
type source struct {
	path string // from the root, with slashes
	room string
	text []byte
}

// sources reads the tree's non-test Go files. It skips what the go command
// skips (testdata, dot and underscore folders), node_modules, and other modules.
func sources(root string) ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p == root {
				return nil
			}
			if name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_' {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || name[0] == '.' || name[0] == '_' {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all = append(all, source{path: rel, room: path.Dir(rel), text: text})
		return nil
	})
	return all, err
}

// floorFaults is the import rule: only downwards, never sideways, and outside
// modules only where they are guests.
func (h house) floorFaults(root string) (faults, remarks []string, err error) {
	all, err := sources(root)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, s := range all {
		floor, listed := h.floor(s.room)
		if !listed {
			if !seen[s.room] {
				faults = append(faults, fmt.Sprintf("%s has no floor: add it to floors, or merge it into a neighbour", s.room))
			}
			seen[s.room] = true
			continue
		}
		seen[s.room] = true
		file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.ImportsOnly)
		if err != nil {
			return nil, nil, err
		}
		for _, spec := range file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, nil, err
			}
			if f := h.importFault(s, floor, imp); f != "" {
				faults = append(faults, f)
			}
		}
	}
	for _, room := range slices.Sorted(maps.Keys(h.floors)) {
		if !seen[room] {
			faults = append(faults, fmt.Sprintf("%s has a floor but is not in the tree: remove it from floors", room))
		}
	}
	return faults, nil, nil
}

// users are the rooms of agents that somebody adds: they need no line in the plan,
// and may let in what they like.
func (h house) users(room string) bool {
	_, listed := h.floors[room]
	return !listed && strings.HasPrefix(room, "agents/")
}

// floor of a room. An agent stands just under the registry that lists it.
func (h house) floor(room string) (floor float64, known bool) {
	if h.users(room) {
		return h.floors["agents"] - 0.5, true
	}
	floor, known = h.floors[room]
	return floor, known
}

func (h house) importFault(s source, floor float64, imp string) string {
	below, ours := strings.CutPrefix(imp, module+"/")
	if !ours {
		first, _, _ := strings.Cut(imp, "/")
		if strings.Contains(first, ".") && !h.admitted(s.room, imp) {
			return fmt.Sprintf("%s must not import %s: %s is not on its guest list", s.path, imp, s.room)
		}
		return ""
	}
	level, listed := h.floor(below)
	switch {
	case !listed:
		return fmt.Sprintf("%s must not import %s: it has no floor", s.path, below)
	case slices.Contains(h.kits, below):
		return fmt.Sprintf("%s must not import %s: a kit is for tests", s.path, below)
	case strings.HasPrefix(s.room, "pkg/") && !strings.HasPrefix(below, "pkg/") && !strings.HasPrefix(below, "internal/"):
		return fmt.Sprintf("%s must not import %s: nothing under pkg/ knows the user's rooms", s.path, below)
	case level >= floor:
		return fmt.Sprintf("%s must not import %s: same floor or above", s.path, below)
	}
	return ""
}

func (h house) admitted(room, imp string) bool {
	if h.users(room) {
		return true
	}
	for guest, hosts := range h.guests {
		if (imp == guest || strings.HasPrefix(imp, guest+"/")) && slices.Contains(hosts, room) {
			return true
		}
	}
	return false
}

// commentFaults: every room says in one place what it is for.
func (h house) commentFaults(root string) (faults, remarks []string, err error) {
	all, err := sources(root)
	if err != nil {
		return nil, nil, err
	}
	comments := map[string][]string{}
	for _, s := range all {
		file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		text := ""
		if file.Doc != nil {
			text = file.Doc.Text()
		}
		comments[s.room] = slices.Concat(comments[s.room], nonEmpty(text))
	}
	for _, room := range slices.Sorted(maps.Keys(comments)) {
		if n := len(comments[room]); n != 1 {
			faults = append(faults, fmt.Sprintf("%s has %d package comments: want one", room, n))
			continue
		}
		first := new(doc.Package).Synopsis(comments[room][0])
		if !strings.HasSuffix(first, ".") {
			faults = append(faults, fmt.Sprintf("%s: the package comment's first sentence must end with a period: %q", room, first))
		}
	}
	return faults, remarks, nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// lengthFaults: nine files in ten stay short enough to read at one sitting.
func (h house) lengthFaults(root string) (faults, remarks []string, err error) {
	all, err := sources(root)
	if err != nil {
		return nil, nil, err
	}
	perRoom := map[string]int{}
	for _, s := range all {
		n := bytes.Count(s.text, []byte("\n"))
		perRoom[s.room] += n
		switch {
		case n >= faultyFile:
			faults = append(faults, fmt.Sprintf("%s has %d lines: split it (%d is a fault)", s.path, n, faultyFile))
		case n > longFile:
			remarks = append(remarks, fmt.Sprintf("%s has %d lines: aim for %d", s.path, n, longFile))
		}
	}
	for _, room := range slices.Sorted(maps.Keys(perRoom)) {
		n := perRoom[room]
		switch ceiling, listed := h.ceilings[room]; {
		case listed && n <= longRoom:
			faults = append(faults, fmt.Sprintf("%s has %d lines: take its ceiling out of the plan", room, n))
		case listed && n > ceiling:
			faults = append(faults, fmt.Sprintf("%s has %d lines, and its ceiling is %d: make it smaller, or raise the ceiling and say why in the commit", room, n, ceiling))
		case !listed && n > longRoom:
			faults = append(faults, fmt.Sprintf("%s has %d lines: more than %d: split it, or give it a ceiling in the plan and say why in the commit", room, n, longRoom))
		}
	}
	for room := range h.ceilings {
		if perRoom[room] == 0 {
			faults = append(faults, fmt.Sprintf("%s has a ceiling but is not in the tree", room))
		}
	}
	return faults, remarks, nil
}

// portFaults: a port that grows becomes the dumping ground.
func (h house) portFaults(root string) (faults, remarks []string, err error) {
	all, err := sources(root)
	if err != nil {
		return nil, nil, err
	}
	for _, room := range slices.Sorted(maps.Keys(h.ports)) {
		interfaces := map[string]*ast.InterfaceType{}
		for _, s := range all {
			if s.room != room {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.SkipObjectResolution)
			if err != nil {
				return nil, nil, err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if it, ok := spec.Type.(*ast.InterfaceType); ok {
						interfaces[spec.Name.Name] = it
					}
				}
				return true
			})
		}
		port := h.ports[room]
		n, err := methods(interfaces, port)
		switch {
		case err != nil:
			faults = append(faults, fmt.Sprintf("%s: %v", room, err))
		case n > portMethods:
			faults = append(faults, fmt.Sprintf("%s.%s has %d methods: a port has at most %d", room, port, n, portMethods))
		}
	}
	return faults, nil, nil
}

// methods counts an interface's methods, those of the room's own interfaces
// embedded in it included.
func methods(interfaces map[string]*ast.InterfaceType, name string) (int, error) {
	it, ok := interfaces[name]
	if !ok {
		return 0, fmt.Errorf("no interface %s", name)
	}
	count := 0
	for _, field := range it.Methods.List {
		if len(field.Names) > 0 {
			count += len(field.Names)
			continue
		}
		id, ok := field.Type.(*ast.Ident)
		if !ok {
			return 0, fmt.Errorf("interface %s embeds what this test cannot count", name)
		}
		n, err := methods(interfaces, id.Name)
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

// shapeFaults: rooms stay few, and near the door. What is internal to a room is no depth.
func (h house) shapeFaults(root string) (faults, remarks []string, err error) {
	all, err := sources(root)
	if err != nil {
		return nil, nil, err
	}
	top := map[string]bool{}
	deep := map[string]bool{}
	for _, s := range all {
		below, ok := strings.CutPrefix(s.room, "pkg/")
		if !ok {
			continue
		}
		below, _, _ = strings.Cut(strings.TrimPrefix(below, "internal/"), "/internal/")
		parts := strings.Split(below, "/")
		top[parts[0]] = true
		if len(parts) > depth {
			deep[s.room] = true
		}
	}
	for _, room := range slices.Sorted(maps.Keys(deep)) {
		faults = append(faults, fmt.Sprintf("%s is more than %d folders below pkg/", room, depth))
	}
	if len(top) > rooms {
		faults = append(faults, fmt.Sprintf("%d rooms directly under pkg/: more than %d is a decision", len(top), rooms))
	}
	return faults, nil, nil
}
