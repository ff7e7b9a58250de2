package pkg_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toy is a house of four rooms in which everything is as it should be.
var toy = house{
	floors: map[string]float64{
		"pkg/words": 0, "pkg/port": 1, "pkg/port/porttest": 2, "pkg/shell": 3, "agents": 3, "cmd/toy": 4,
	},
	kits:   []string{"pkg/port/porttest"},
	guests: map[string][]string{"example.com/guest": {"pkg/shell"}, "example.com/check": {"pkg/port/porttest"}},
	ports:  map[string]string{"pkg/port": "Port"},
}

// ceiling is the toy with a longer room pkg/words.
func ceiling(n int) house {
	h := toy
	h.ceilings = map[string]int{"pkg/words": n}
	return h
}

var toyTree = map[string]string{
	"go.mod":                          "module " + module + "\n",
	"tools/go.mod":                    "module tools\n",
	"tools/tools.go":                  file("tools", "example.com/anything"),
	"pkg/words/words.go":              file("words", "strings"),
	"pkg/port/port.go":                file("port", module+"/pkg/words") + "type Reader interface{ A(); B() }\ntype Port interface { Reader; C(); D(); E(); F(); G() }\n",
	"pkg/port/porttest/kit.go":        file("porttest", module+"/pkg/port", "example.com/check/require"),
	"pkg/shell/shell.go":              file("shell", module+"/pkg/port", "example.com/guest"),
	"pkg/shell/more.go":               "package shell\n",
	"pkg/shell/shell_test.go":         "package shell\n\nimport _ \"" + module + "/pkg/port/porttest\"\n",
	"pkg/shell/testdata/bad/bad.go":   "package bad\n\nimport _ \"example.com/anything\"\n",
	"pkg/shell/node_modules/x/gen.go": "package x\n\nimport _ \"example.com/anything\"\n",
	"agents/agents.go":                file("agents", module+"/pkg/port"),
	"cmd/toy/main.go":                 file("main", module+"/agents", module+"/pkg/shell"),
}

// file is a Go file with a package comment that imports what is named.
func file(name string, imports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Package %s is a toy.\npackage %s\n\n", name, name)
	for _, imp := range imports {
		fmt.Fprintf(&b, "import _ %q\n", imp)
	}
	return b.String()
}

// build writes the toy tree with some files changed; empty text removes one.
func build(t *testing.T, change map[string]string) string {
	t.Helper()
	root := t.TempDir()
	tree := maps.Clone(toyTree)
	maps.Copy(tree, change)
	for name, text := range tree {
		if text == "" {
			continue
		}
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestHouseRules breaks one rule at a time in a toy tree: a rule that cannot
// fail holds nothing.
func TestHouseRules(t *testing.T) {
	t.Parallel()
	const words, port, shell = "pkg/words/words.go", "pkg/port/port.go", "pkg/shell/shell.go"
	lines := func(n int) string { return file("words") + strings.Repeat("\n", n-3) }
	methods := func(names ...string) string {
		return file("port") + "type Port interface {\n" + strings.Join(names, "()\n") + "()\n}\n"
	}
	cases := []struct {
		name    string
		check   func(string) ([]string, []string, error)
		change  map[string]string
		faults  []string
		remarks []string
	}{
		{name: "floors_hold", check: toy.floorFaults},
		{
			name: "room_without_floor", check: toy.floorFaults,
			change: map[string]string{"pkg/util/a.go": file("util"), "pkg/util/b.go": "package util\n"},
			faults: []string{"pkg/util has no floor: add it to floors, or merge it into a neighbour"},
		},
		{
			name: "floor_without_room", check: toy.floorFaults,
			change: map[string]string{"cmd/toy/main.go": ""},
			faults: []string{"cmd/toy has a floor but is not in the tree: remove it from floors"},
		},
		{
			name: "room_with_only_tests_is_not_in_the_tree", check: toy.floorFaults,
			change: map[string]string{"cmd/toy/main.go": "", "cmd/toy/main_test.go": "package main\n"},
			faults: []string{"cmd/toy has a floor but is not in the tree: remove it from floors"},
		},
		{
			name: "import_upwards", check: toy.floorFaults,
			change: map[string]string{words: file("words", module+"/pkg/shell")},
			faults: []string{"pkg/words/words.go must not import pkg/shell: same floor or above"},
		},
		{
			name: "import_sideways_behind_a_build_tag", check: toy.floorFaults,
			change: map[string]string{"agents/x.go": "//go:build never\n\npackage agents\n\nimport _ \"" + module + "/pkg/shell\"\n"},
			faults: []string{"agents/x.go must not import pkg/shell: same floor or above"},
		},
		{
			name: "import_of_a_room_without_floor", check: toy.floorFaults,
			change: map[string]string{shell: file("shell", module+"/pkg/gone")},
			faults: []string{"pkg/shell/shell.go must not import pkg/gone: it has no floor"},
		},
		{
			name: "guest_in_the_wrong_room", check: toy.floorFaults,
			change: map[string]string{port: file("port", "example.com/guest/sub")},
			faults: []string{"pkg/port/port.go must not import example.com/guest/sub: pkg/port is not on its guest list"},
		},
		{
			name: "guest_by_prefix_of_its_name_only", check: toy.floorFaults,
			change: map[string]string{shell: file("shell", "example.com/guesthouse")},
			faults: []string{"pkg/shell/shell.go must not import example.com/guesthouse: pkg/shell is not on its guest list"},
		},
		{
			name: "kit_outside_tests", check: toy.floorFaults,
			change: map[string]string{shell: file("shell", module+"/pkg/port/porttest")},
			faults: []string{"pkg/shell/shell.go must not import pkg/port/porttest: a kit is for tests"},
		},
		{
			name: "pkg_knows_no_agents", check: house{
				floors: map[string]float64{"pkg/words": 0, "pkg/port": 1, "pkg/port/porttest": 2, "pkg/shell": 3, "agents": 2, "cmd/toy": 4},
				kits:   toy.kits, guests: toy.guests,
			}.floorFaults,
			change: map[string]string{shell: file("shell", module+"/agents")},
			faults: []string{"pkg/shell/shell.go must not import agents: nothing under pkg/ knows the user's rooms"},
		},

		{name: "comments_hold", check: toy.commentFaults},
		{
			name: "no_package_comment", check: toy.commentFaults,
			change: map[string]string{words: "package words\n"},
			faults: []string{"pkg/words has 0 package comments: want one"},
		},
		{
			name: "two_package_comments", check: toy.commentFaults,
			change: map[string]string{"pkg/words/doc.go": file("words")},
			faults: []string{"pkg/words has 2 package comments: want one"},
		},
		{
			name: "comment_without_period", check: toy.commentFaults,
			change: map[string]string{words: "// Package words is a toy\npackage words\n"},
			faults: []string{`pkg/words: the package comment's first sentence must end with a period: "Package words is a toy"`},
		},

		{name: "lengths_hold", check: toy.lengthFaults, change: map[string]string{words: lines(500)}},
		{
			name: "long_file", check: toy.lengthFaults, change: map[string]string{words: lines(501)},
			remarks: []string{"pkg/words/words.go has 501 lines: aim for 500"},
		},
		{
			name: "faulty_file", check: toy.lengthFaults, change: map[string]string{words: lines(800)},
			faults: []string{"pkg/words/words.go has 800 lines: split it (800 is a fault)"},
		},
		{
			name: "long_room", check: toy.lengthFaults,
			change: map[string]string{
				"pkg/words/a.go": lines(500), "pkg/words/b.go": lines(500), "pkg/words/c.go": lines(500),
				"pkg/words/d.go": lines(500), "pkg/words/e.go": lines(500), words: lines(10),
			},
			faults: []string{"pkg/words has 2510 lines: more than 2500: split it, or give it a ceiling in the plan and say why in the commit"},
		},
		{
			name: "room_below_its_ceiling", check: ceiling(2510).lengthFaults,
			change: map[string]string{
				"pkg/words/a.go": lines(500), "pkg/words/b.go": lines(500), "pkg/words/c.go": lines(500),
				"pkg/words/d.go": lines(500), "pkg/words/e.go": lines(500), words: lines(10),
			},
		},
		{
			name: "room_above_its_ceiling", check: ceiling(2509).lengthFaults,
			change: map[string]string{
				"pkg/words/a.go": lines(500), "pkg/words/b.go": lines(500), "pkg/words/c.go": lines(500),
				"pkg/words/d.go": lines(500), "pkg/words/e.go": lines(500), words: lines(10),
			},
			faults: []string{"pkg/words has 2510 lines, and its ceiling is 2509: make it smaller, or raise the ceiling and say why in the commit"},
		},
		{
			name: "room_that_needs_no_ceiling", check: ceiling(3000).lengthFaults, change: map[string]string{words: lines(10)},
			faults: []string{"pkg/words has 10 lines: take its ceiling out of the plan"},
		},

		{name: "ports_hold", check: toy.portFaults},
		{
			name: "port_of_eight", check: toy.portFaults,
			change: map[string]string{port: methods("A", "B", "C", "D", "E", "F", "G", "H")},
			faults: []string{"pkg/port.Port has 8 methods: a port has at most 7"},
		},
		{
			name: "port_that_grew_by_embedding", check: toy.portFaults,
			change: map[string]string{"pkg/port/port.go": strings.Replace(toyTree[port], "G()", "G(); H()", 1)},
			faults: []string{"pkg/port.Port has 8 methods: a port has at most 7"},
		},
		{
			name: "port_that_embeds_a_stranger", check: toy.portFaults,
			change: map[string]string{port: file("port") + "type Port interface { io.Closer }\n"},
			faults: []string{"pkg/port: interface Port embeds what this test cannot count"},
		},
		{
			name: "port_gone", check: toy.portFaults,
			change: map[string]string{port: file("port")},
			faults: []string{"pkg/port: no interface Port"},
		},

		{name: "shape_holds", check: toy.shapeFaults},
		{
			name: "internal_is_no_depth", check: toy.shapeFaults,
			change: map[string]string{"pkg/a/b/internal/c/c.go": file("c")},
		},
		{
			name: "too_deep", check: toy.shapeFaults,
			change: map[string]string{"pkg/a/b/c/c.go": file("c")},
			faults: []string{"pkg/a/b/c is more than 2 folders below pkg/"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			faults, remarks, err := c.check(build(t, c.change))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(faults, c.faults) {
				t.Errorf("faults\n got %q\nwant %q", faults, c.faults)
			}
			if !slices.Equal(remarks, c.remarks) {
				t.Errorf("remarks\n got %q\nwant %q", remarks, c.remarks)
			}
		})
	}
}
