package lambdafn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// ErrInvalidTemplate says that an input template cannot be used as it is written.
var ErrInvalidTemplate = errors.New("invalid event template")

// Template makes the start of a session out of an event. It is safe for concurrent use.
type Template struct {
	agent, input, session *template.Template // nil for an empty text
}

// ParseTemplate reads an input template: a JSON object of the texts "agent",
// "input" and, if the session's id is to be chosen, "session". Each is written as
// in Go's text/template, with the event as its data:
//
//	{"agent": "clerk", "input": "A file arrived: {{unescape .s3.object.key}} ({{.s3.object.size}} bytes)"}
//
// Each text is rendered for itself, after the object was read, so what stands in
// an event stays within its text. To print something the event does not have, or
// has as null, is an error. Numbers are written as the event wrote them (zero as
// 0), objects and lists as JSON. Beside the functions of text/template, unescape
// undoes the URL escaping of S3's keys, and json reads a text that is JSON, so that
// {{(json .Sns.Message).order}} is a field of it.
//
// Errors wrap [ErrInvalidTemplate].
func ParseTemplate(source string) (*Template, error) {
	var fields struct{ Agent, Input, Session string }
	decoder := json.NewDecoder(strings.NewReader(source))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf(`%w: it is no JSON object of the texts "agent", "input" and "session": %w`, ErrInvalidTemplate, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the JSON object", ErrInvalidTemplate)
	}
	var faults []error
	if fields.Input == "" {
		faults = append(faults, fmt.Errorf(`%w: "input" is missing: say what the agent is to do`, ErrInvalidTemplate))
	}
	if fields.Agent == "" && fields.Session == "" {
		faults = append(faults, fmt.Errorf(`%w: "agent" is missing: say which agent begins a new session`, ErrInvalidTemplate))
	}
	read := func(name, source string) *template.Template {
		t, err := parseText(name, source)
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: %w", ErrInvalidTemplate, err))
		}
		return t
	}
	t := &Template{agent: read("agent", fields.Agent), input: read("input", fields.Input), session: read("session", fields.Session)}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return t, nil
}

// render fills the template with an event.
func (t *Template) render(event []byte) (startEvent, error) {
	data, err := readJSON(string(event))
	if err != nil {
		return startEvent{}, err
	}
	var faults []error
	fill := func(t *template.Template) string {
		var rendered strings.Builder
		if t == nil {
			return ""
		}
		if err := t.Execute(&rendered, data); err != nil {
			faults = append(faults, fmt.Errorf("event template: %w", err))
		}
		return rendered.String()
	}
	s := startEvent{Agent: fill(t.agent), Input: fill(t.input), Session: fill(t.session)}
	return s, errors.Join(faults...)
}

// parseText reads one text, nil for an empty one. What its actions print goes through [said] first.
func parseText(name, source string) (*template.Template, error) {
	if source == "" {
		return nil, nil
	}
	t, err := template.New(name).Funcs(functions).Parse(source)
	if err != nil {
		return nil, err
	}
	for _, each := range t.Templates() {
		sayAll(each.Tree, each.Root)
	}
	return t, nil
}

// sayAll ends each pipe that prints with the function said: {{.a}} becomes {{.a | said ".a"}}.
func sayAll(tree *parse.Tree, node parse.Node) {
	branch := func(b *parse.BranchNode) {
		sayAll(tree, b.List)
		sayAll(tree, b.ElseList)
	}
	switch n := node.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				sayAll(tree, child)
			}
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 { // a declaration prints nothing
			name := &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: strconv.Quote(n.Pipe.String()), Text: n.Pipe.String()}
			said := parse.NewIdentifier("said").SetTree(tree).SetPos(n.Pos)
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{said, name}})
		}
	}
}

// functions are those that text/template does not have, or has for Go's numbers alone.
var functions = template.FuncMap{
	"said": said,
	"eq":   equal,
	"ne":   func(value any, others ...any) (bool, error) { same, err := equal(value, others...); return !same, err },
	"json": readJSON,
	// S3 writes the keys of objects as a query does.
	"unescape": url.QueryUnescape,
}

// said is how a value is printed. What the event does not have is an error, never a hole in the text.
func said(name string, value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", fmt.Errorf("the event has no %s, or null there", name)
	case map[string]any, []any:
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(v)
		return strings.TrimSuffix(b.String(), "\n"), err
	}
	return fmt.Sprint(value), nil
}

// equal reports whether a value is the same text, number, truth or null as one of the others.
func equal(value any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("it takes two arguments or more")
	}
	for _, other := range append(others, value) {
		switch other.(type) {
		case map[string]any, []any:
			return false, errors.New("lists and objects cannot be compared")
		}
	}
	return slices.ContainsFunc(others, func(other any) bool {
		_, text := value.(string)
		_, also := other.(string)
		return text == also && fmt.Sprint(value) == fmt.Sprint(other)
	}), nil
}

// readJSON reads a text that is JSON. Numbers keep their digits.
func readJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: something follows the value")
	}
	return withZeros(value), nil
}

// withZeros makes numbers that are zero Go's 0, which is false in a condition as
// text/template has it; [json.Number] is a text to it.
func withZeros(value any) any {
	switch v := value.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && f == 0 {
			return 0
		}
	case []any:
		for i := range v {
			v[i] = withZeros(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = withZeros(v[name])
		}
	}
	return value
}
