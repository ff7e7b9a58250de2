package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Tables of samconfig.toml. What a command's own table says comes before what the
// global one does.
const (
	globalTable   = "default.global.parameters"
	deployTable   = "default.deploy.parameters"
	overridesKey  = "parameter_overrides"
	overrideTable = deployTable + "." + overridesKey
)

// samconfig is the text of a samconfig.toml, in which keys are set line by line, so
// that comments and whatever is not ours stay as they are.
type samconfig struct {
	path string
	text string
}

// readConfig reads the file; one that is not there is empty.
func readConfig(path string) (*samconfig, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &samconfig{path: path, text: "version = 0.1\n"}, nil
	}
	if err != nil {
		return nil, err
	}
	c := &samconfig{path: path, text: string(raw)}
	if _, err := c.spans(); err != nil {
		return nil, err
	}
	return c, nil
}

// span is a header, or a key with its value, as it stands in the file.
type span struct {
	table, key string // key is "" of a header
	from, to   int    // bytes, whole lines
}

// spans finds headers and keys. A value ends with the first line that makes it
// whole, as the TOML library sees it.
func (c *samconfig) spans() ([]span, error) {
	var all []span
	table, from, piece := "", 0, ""
	at, n, began := 0, 0, 0
	for line := range strings.Lines(c.text) {
		n++
		at += len(line)
		if word := strings.TrimSpace(line); piece == "" && (word == "" || word[0] == '#') {
			from = at
			continue
		}
		if piece == "" {
			began = n
		}
		piece += line
		var any map[string]any
		parsed, err := toml.Decode(piece, &any)
		if err != nil {
			continue // the value goes on
		}
		name := parsed.Keys()[0].String()
		if strings.HasPrefix(strings.TrimSpace(piece), "[") {
			table, name = name, ""
		}
		all = append(all, span{table: table, key: name, from: from, to: at})
		from, piece = at, ""
	}
	var whole map[string]any
	if _, err := toml.Decode(c.text, &whole); err != nil || piece != "" {
		if err == nil {
			err = fmt.Errorf("line %d is not understood", began)
		}
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return all, nil
}

// tree is the file as values.
func (c *samconfig) tree() (map[string]any, error) {
	tree := map[string]any{}
	if _, err := toml.Decode(c.text, &tree); err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return tree, nil
}

// in returns the table of a dotted name, nil if it is not there.
func in(tree map[string]any, table string) map[string]any {
	for name := range strings.SplitSeq(table, ".") {
		tree, _ = tree[name].(map[string]any)
	}
	return tree
}

// word returns a text of the deploy table or, if it is not there, the global one.
func (c *samconfig) word(key string) (string, error) {
	tree, err := c.tree()
	if err != nil {
		return "", err
	}
	for _, table := range []string{deployTable, globalTable} {
		if text, ok := in(tree, table)[key].(string); ok {
			return text, nil
		}
	}
	return "", nil
}

// setWord sets a text where it stands, or else in the global table.
func (c *samconfig) setWord(key, value string) error {
	tree, err := c.tree()
	if err != nil {
		return err
	}
	table := globalTable
	if _, own := in(tree, deployTable)[key]; own {
		table = deployTable
	}
	return c.set(table, key, value)
}

// overrides returns the parameters the file sends, in any form that SAM takes: a
// text, a list, a table.
func (c *samconfig) overrides() (map[string]string, error) {
	tree, err := c.tree()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	if err := collect(found, in(tree, deployTable)[overridesKey]); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c.path, overridesKey, err)
	}
	return found, nil
}

func collect(found map[string]string, value any) error {
	switch value := value.(type) {
	case nil:
	case string:
		if strings.HasPrefix(value, "file://") {
			return fmt.Errorf("%s is a file: move its parameters into the table [%s]", value, overrideTable)
		}
		for _, form := range overrideForms {
			if pairs := form.FindAllStringSubmatch(" "+strings.TrimSpace(value), -1); pairs != nil {
				for _, pair := range pairs {
					found[unquote(pair[1])] = unquote(pair[2])
				}
				break
			}
		}
	case []any:
		for _, item := range value {
			if err := collect(found, item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			switch v := value[name].(type) {
			case string, int64, float64, bool:
				found[name] = fmt.Sprint(v)
			default:
				return fmt.Errorf("%s is neither a text nor a number: write it as a text", name)
			}
		}
	default:
		return fmt.Errorf("%v is no form of it that is known", value)
	}
	return nil
}

// overrideForms are SAM's own, of samcli/cli/types.py.
var overrideForms = func() (forms []*regexp.Regexp) {
	const key = `([A-Za-z0-9"']+)`
	const value = `("(?:\\.|[^"\\]+)*"|'(?:\\.|[^'\\]+)*'|(?:\\.|[^ "\\]+)+)`
	for _, form := range []string{"ParameterKey=" + key + ",ParameterValue=" + value, " " + key + "=" + value} {
		forms = append(forms, regexp.MustCompile(form))
	}
	return forms
}()

// unquote is what SAM makes of a value.
func unquote(s string) string {
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		s = s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\ `, " ", `\"`, `"`, `\'`, "'").Replace(s)
}

// setOverrides sets parameters, and takes those away whose value is nil. From then on
// all of them are a table, a line each.
func (c *samconfig) setOverrides(changes map[string]*string) error {
	all, err := c.overrides()
	if err != nil {
		return err
	}
	tree, err := c.tree()
	if err != nil {
		return err
	}
	// Another form than the table makes way for it.
	if _, table := in(tree, deployTable)[overridesKey].(map[string]any); !table {
		if err := c.remove(deployTable, overridesKey); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if err := c.set(overrideTable, name, all[name]); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if value := changes[name]; value == nil {
			err = c.remove(overrideTable, name)
		} else {
			err = c.set(overrideTable, name, *value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// set writes one key, where it stands or at the end of its table.
func (c *samconfig) set(table, key, value string) error {
	return c.edit(table, key, func(spans []span) string {
		line, end, last := key+" = "+quote(value)+"\n", 0, len(c.text)
		found := false
		for _, s := range spans {
			if s.table == table {
				if s.key == key {
					return c.text[:s.from] + line + c.text[s.to:]
				}
				found, end = true, s.to
			}
		}
		if found {
			return withNewline(c.text[:end]) + line + c.text[end:]
		}
		return withNewline(c.text[:last]) + "\n[" + table + "]\n" + line
	}, func(t map[string]any) { t[key] = value })
}

// remove takes a key away, if it is there.
func (c *samconfig) remove(table, key string) error {
	return c.edit(table, key, func(spans []span) string {
		for _, s := range spans {
			if s.table == table && s.key == key {
				return c.text[:s.from] + c.text[s.to:]
			}
		}
		return c.text
	}, func(t map[string]any) { delete(t, key) })
}

// edit changes the text, and holds the result to the same change of the values:
// whatever form the file has, nothing else is changed.
func (c *samconfig) edit(table, key string, text func([]span) string, change func(map[string]any)) error {
	spans, err := c.spans()
	if err != nil {
		return err
	}
	want, err := c.tree()
	if err != nil {
		return err
	}
	at := want
	for name := range strings.SplitSeq(table, ".") {
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	change(at)
	edited := &samconfig{path: c.path, text: text(spans)}
	got, err := edited.tree()
	if err != nil || !reflect.DeepEqual(prune(want), prune(got)) {
		return fmt.Errorf("%s: %s cannot be changed as the file is written: give the table [%s] lines of its own", c.path, key, table)
	}
	c.text = edited.text
	return nil
}

// prune takes empty tables away, which say nothing.
func prune(tree map[string]any) map[string]any {
	for name, value := range tree {
		if table, ok := value.(map[string]any); ok && len(prune(table)) == 0 {
			delete(tree, name)
		}
	}
	return tree
}

func withNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// quote writes a TOML text.
func quote(s string) string {
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") && plain {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// write puts the file in place whole.
func (c *samconfig) write() error {
	old, err := os.ReadFile(c.path)
	if err == nil && bytes.Equal(old, []byte(c.text)) {
		return nil
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(c.path); err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := os.CreateTemp(filepath.Dir(c.path), ".samconfig-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.WriteString(c.text)
	if err := errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), c.path)
}
