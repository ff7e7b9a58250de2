package lambdafn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template/parse"
)

// ErrInvalidTemplate says that an input template cannot be used as it is written.
var ErrInvalidTemplate = errors.New("invalid event template")

// Template makes the start of a session out of an event. It is safe for concurrent use.
type Template struct {
	agent, input, session *text
}

// ParseTemplate reads an input template: a JSON object of the texts "agent",
// "input" and, if the session's id is to be chosen, "session". Each is written as
// in Go's text/template, with the event as its data:
//
//	{"agent": "clerk", "input": "A file arrived: {{unescape .s3.object.key}} ({{.s3.object.size}} bytes)"}
//
// Each text is rendered for itself, after the object was read, so what stands in
// an event stays within its text. To print something the event does not have, or
// has as null, is an error. Numbers are written as the event wrote them, objects
// and lists as JSON. Of text/template it knows fields, $, if, with, range, else and
// the functions and, or, not, eq, ne, index, len; beside them unescape undoes the
// URL escaping of S3's keys, and json reads a text that is JSON, so that
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
	read := func(name, source string) *text {
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
	fill := func(t *text) string {
		rendered, err := t.render(data)
		if err != nil {
			faults = append(faults, fmt.Errorf("event template: %w", err))
		}
		return rendered
	}
	s := startEvent{Agent: fill(t.agent), Input: fill(t.input), Session: fill(t.session)}
	return s, errors.Join(faults...)
}

// text is one text of a template. It is evaluated here and not by text/template:
// that package looks for methods by name, for which the linker keeps every method
// of every type, a quarter more of the function's size.
type text struct {
	name string
	root *parse.ListNode
}

func parseText(name, source string) (*text, error) {
	known := map[string]any{}
	for f := range functions {
		known[f] = true
	}
	trees, err := parse.Parse(name, source, "", "", known)
	if err != nil {
		return nil, err
	}
	for other := range trees {
		if other != name {
			return nil, fmt.Errorf("template: %s: {{define}} and {{block}} are not known here", name)
		}
	}
	t := &text{name: name}
	if tree := trees[name]; tree != nil { // an empty text has none
		t.root = tree.Root
		if err := checkNode(tree.Root); err != nil {
			return nil, fmt.Errorf("template: %s: %w", name, err)
		}
	}
	return t, nil
}

// checkNode refuses what the parser knows and the evaluation does not.
func checkNode(node parse.Node) error {
	branch := func(b *parse.BranchNode) error {
		err := errors.Join(checkPipe(b.Pipe), checkNode(b.List))
		if b.ElseList != nil {
			err = errors.Join(err, checkNode(b.ElseList))
		}
		return err
	}
	switch n := node.(type) {
	case *parse.ListNode:
		var faults []error
		for _, child := range n.Nodes {
			faults = append(faults, checkNode(child))
		}
		return errors.Join(faults...)
	case *parse.TextNode, *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		return checkPipe(n.Pipe)
	case *parse.IfNode:
		return branch(&n.BranchNode)
	case *parse.WithNode:
		return branch(&n.BranchNode)
	case *parse.RangeNode:
		return branch(&n.BranchNode)
	}
	return fmt.Errorf("%s is not known here", node)
}

func checkPipe(pipe *parse.PipeNode) error {
	if len(pipe.Decl) > 0 {
		return fmt.Errorf("{{%s}}: variables are not known here", pipe)
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			switch a := arg.(type) {
			case *parse.PipeNode:
				if err := checkPipe(a); err != nil {
					return err
				}
			case *parse.ChainNode:
				if inner, ok := a.Node.(*parse.PipeNode); ok {
					if err := checkPipe(inner); err != nil {
						return err
					}
				}
			case *parse.NilNode:
				return fmt.Errorf("{{%s}}: nil is not known here", pipe)
			}
		}
	}
	return nil
}
