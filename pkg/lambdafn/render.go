package lambdafn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// The values of a template are those of JSON as encoding/json decodes them, with
// [json.Number] for numbers, and missing for what is not there.
type missing struct{ what string }

// render evaluates the text with data as its dot.
func (t *text) render(data any) (string, error) {
	if t == nil || t.root == nil {
		return "", nil
	}
	r := rendering{root: data}
	if err := r.list(t.root, data); err != nil {
		return "", fmt.Errorf("%s: %w", t.name, err)
	}
	return r.out.String(), nil
}

type rendering struct {
	out  strings.Builder
	root any
}

func (r *rendering) list(list *parse.ListNode, dot any) error {
	for _, node := range list.Nodes {
		if err := r.node(node, dot); err != nil {
			return err
		}
	}
	return nil
}

func (r *rendering) node(node parse.Node, dot any) error {
	switch n := node.(type) {
	case *parse.TextNode:
		r.out.Write(n.Text)
	case *parse.ActionNode:
		value, err := r.pipe(n.Pipe, dot)
		if err != nil {
			return err
		}
		return r.print(n.Pipe, value)
	case *parse.IfNode:
		value, err := r.pipe(n.Pipe, dot)
		return r.branch(&n.BranchNode, value, err, dot, dot)
	case *parse.WithNode:
		value, err := r.pipe(n.Pipe, dot)
		return r.branch(&n.BranchNode, value, err, value, dot)
	case *parse.RangeNode:
		return r.rangeOver(n, dot)
	}
	return nil
}

// branch takes the list with its dot where value is true, else the other one.
func (r *rendering) branch(b *parse.BranchNode, value any, err error, then, otherwise any) error {
	switch {
	case err != nil:
		return err
	case truth(value):
		return r.list(b.List, then)
	case b.ElseList != nil:
		return r.list(b.ElseList, otherwise)
	}
	return nil
}

func (r *rendering) rangeOver(n *parse.RangeNode, dot any) error {
	value, err := r.pipe(n.Pipe, dot)
	if err != nil {
		return err
	}
	var items []any
	switch v := value.(type) {
	case []any:
		items = v
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			items = append(items, v[name])
		}
	case nil:
	default:
		return fmt.Errorf("{{range %s}}: %s is no list", n.Pipe, kindOf(value))
	}
	if len(items) == 0 && n.ElseList != nil {
		return r.list(n.ElseList, dot)
	}
	for _, item := range items {
		if err := r.list(n.List, item); err != nil {
			return err
		}
	}
	return nil
}

func (r *rendering) print(pipe *parse.PipeNode, value any) error {
	switch v := value.(type) {
	case missing:
		return fmt.Errorf("{{%s}}: %s", pipe, v.what)
	case nil:
		return fmt.Errorf("{{%s}}: the event has null there", pipe)
	case string:
		r.out.WriteString(v)
	case json.Number:
		r.out.WriteString(v.String())
	default:
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(v); err != nil {
			return fmt.Errorf("{{%s}}: %w", pipe, err)
		}
		r.out.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
	return nil
}

// pipe evaluates commands, each with the value of the one before as its last argument.
func (r *rendering) pipe(pipe *parse.PipeNode, dot any) (any, error) {
	var value any
	for i, command := range pipe.Cmds {
		var piped []any
		if i > 0 {
			piped = []any{value}
		}
		var err error
		if value, err = r.command(command, dot, piped); err != nil {
			return nil, err
		}
	}
	return value, nil
}

func (r *rendering) command(command *parse.CommandNode, dot any, piped []any) (any, error) {
	function, ok := command.Args[0].(*parse.IdentifierNode)
	if !ok {
		if len(command.Args) > 1 || len(piped) > 0 {
			return nil, fmt.Errorf("{{%s}}: %s is no function", command, command.Args[0])
		}
		return r.arg(command.Args[0], dot)
	}
	args := make([]any, 0, len(command.Args))
	for _, node := range command.Args[1:] {
		value, err := r.arg(node, dot)
		if err != nil {
			return nil, err
		}
		args = append(args, value)
	}
	args = append(args, piped...)
	for _, arg := range args {
		if absent, is := arg.(missing); is && !mayMiss[function.Ident] {
			return nil, fmt.Errorf("{{%s}}: %s", command, absent.what)
		}
	}
	value, err := functions[function.Ident](args)
	if err != nil {
		return nil, fmt.Errorf("{{%s}}: %w", command, err)
	}
	return value, nil
}

func (r *rendering) arg(node parse.Node, dot any) (any, error) {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode: // $ alone: others are not declared
		return fields(r.root, n.Ident[1:])
	case *parse.ChainNode:
		value, err := r.arg(n.Node, dot)
		if err != nil {
			return nil, err
		}
		return fields(value, n.Field)
	case *parse.PipeNode:
		return r.pipe(n, dot)
	case *parse.IdentifierNode:
		return functions[n.Ident](nil)
	case *parse.StringNode:
		return n.Text, nil
	case *parse.NumberNode:
		return json.Number(n.Text), nil
	case *parse.BoolNode:
		return n.True, nil
	}
	return nil, fmt.Errorf("{{%s}} is not known here", node)
}

// fields follows names into objects. What the last one does not find is missing,
// which if and with take as false; an earlier one must find an object.
func fields(value any, names []string) (any, error) {
	for i, name := range names {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf(".%s: %s has no fields", strings.Join(names[:i+1], "."), kindOf(value))
		}
		if value, ok = object[name]; !ok {
			if i < len(names)-1 {
				return nil, fmt.Errorf(".%s: the event has no %q", strings.Join(names, "."), name)
			}
			return missing{fmt.Sprintf("the event has no %q", name)}, nil
		}
	}
	return value, nil
}

// functions are those of a template, by name.
var functions = map[string]func([]any) (any, error){
	"and": func(args []any) (any, error) { return pick(args, false) },
	"or":  func(args []any) (any, error) { return pick(args, true) },
	"not": one(func(v any) (any, error) { return !truth(v), nil }),
	"eq":  func(args []any) (any, error) { return equal(args) },
	"ne": func(args []any) (any, error) {
		same, err := equal(args)
		return !same, err
	},
	"len":   one(length),
	"index": index,
	"json": one(func(v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%s is no text", kindOf(v))
		}
		return readJSON(s)
	}),
	"unescape": one(func(v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%s is no text", kindOf(v))
		}
		return url.QueryUnescape(s)
	}),
}

// mayMiss are the functions that take what is not there.
var mayMiss = map[string]bool{"and": true, "or": true, "not": true, "eq": true, "ne": true}

// one makes a function of one argument.
func one(f func(any) (any, error)) func([]any) (any, error) {
	return func(args []any) (any, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("it takes one argument, not %d", len(args))
		}
		return f(args[0])
	}
}

// pick returns the first argument whose truth is want, or the last one.
func pick(args []any, want bool) (any, error) {
	for i, arg := range args {
		if truth(arg) == want || i == len(args)-1 {
			return arg, nil
		}
	}
	return nil, errors.New("it takes one argument or more")
}

// equal reports whether the first argument is the same text, number, truth or null as one of the others.
func equal(args []any) (bool, error) {
	if len(args) < 2 {
		return false, errors.New("it takes two arguments or more")
	}
	for _, arg := range args {
		switch arg.(type) {
		case map[string]any, []any:
			return false, fmt.Errorf("%s cannot be compared", kindOf(arg))
		}
	}
	return slices.Contains(args[1:], args[0]), nil
}

func length(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return json.Number(strconv.Itoa(len(v))), nil
	case []any:
		return json.Number(strconv.Itoa(len(v))), nil
	case map[string]any:
		return json.Number(strconv.Itoa(len(v))), nil
	}
	return nil, fmt.Errorf("%s has no length", kindOf(value))
}

// index follows names into objects and numbers into lists.
func index(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("it takes one argument or more")
	}
	value := args[0]
	for _, key := range args[1:] {
		switch v := value.(type) {
		case map[string]any:
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("%s names no field", kindOf(key))
			}
			if value, ok = v[name]; !ok {
				value = missing{fmt.Sprintf("the event has no %q", name)}
			}
		case []any:
			number, _ := key.(json.Number)
			i, err := strconv.Atoi(string(number))
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("a list of %d has no item %v", len(v), key)
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("%s has nothing in it", kindOf(value))
		}
	}
	return value, nil
}

// truth is that of text/template: what is empty, zero or not there is false.
func truth(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "nothing"
}

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
	return value, nil
}
