package scripted

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/adjourn/adjourn/pkg/llm"
)

// Parse reads a script. What is wrong with it is told by a [*ScriptError].
func Parse(text string) (Script, error) {
	root, err := load(text)
	if err != nil {
		return Script{}, err
	}
	return parseRoot(root)
}

func parseRoot(root *yaml.Node) (Script, error) {
	if root == nil || root.Kind != yaml.SequenceNode {
		return Script{}, wrong(0, root, "a script is a YAML list: start each item with %q, for example %q", "- ", "- say: hello")
	}
	if len(root.Content) == 0 {
		return Script{}, wrong(0, root, "the list is empty; the shortest script is %q", "- say: hello")
	}
	items := make([]Item, 0, len(root.Content))
	for i, node := range root.Content {
		item, err := parseItem(i+1, node)
		if err != nil {
			return Script{}, err
		}
		items = append(items, item)
	}
	return newScript(items), nil
}

// load returns the root of the document, nil if it is empty.
func load(text string) (*yaml.Node, error) {
	if len(text) > MaxText {
		return nil, wrong(0, nil, "%d bytes are too many, %d is the most; use repeat for long scripts", len(text), MaxText)
	}
	if firstLine(text) == "" {
		return nil, nil
	}
	var document yaml.Node
	if err := yaml.Load([]byte(text), &document); err != nil {
		failure := wrong(0, nil, "this is not valid YAML: %s; check indentation and quotes", err)
		failure.Cause = err
		var mark *yaml.LoadError
		if errors.As(err, &mark) {
			failure.Line = mark.Mark.Line
			failure.Item = itemAt(text, mark.Mark.Line)
			failure.Message = fmt.Sprintf("this is not valid YAML: %s; check indentation and quotes", mark.Message)
		}
		return nil, failure
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

// itemAt says which item a line is in when there is no tree to ask: it counts
// the dashes that stand as far left as the first one.
func itemAt(text string, line int) int {
	indent, item := -1, 0
	for i, l := range strings.Split(text, "\n") {
		if line > 0 && i >= line {
			break
		}
		trimmed := strings.TrimLeft(l, " ")
		if trimmed != "-" && !strings.HasPrefix(trimmed, "- ") {
			continue
		}
		if indent < 0 {
			indent = len(l) - len(trimmed)
		}
		if len(l)-len(trimmed) == indent {
			item++
		}
	}
	return item
}

func wrong(item int, node *yaml.Node, format string, args ...any) *ScriptError {
	e := &ScriptError{Code: CodeInvalidScript, Item: item, Message: fmt.Sprintf(format, args...)}
	if node != nil {
		e.Line = node.Line
	}
	return e
}

// The keys of an item. Of the bodies exactly one is there; each companion goes
// with the bodies listed, and with any when none is.
var (
	bodies     = []string{"call", "calls", "stream", "fail", "need", "say"}
	companions = map[string][]string{
		"with": {"call"}, "text": {"call", "calls"}, "every": {"stream"}, "after": {"fail"}, "think": nil, "repeat": nil,
	}
	companionNames = []string{"with", "text", "every", "after", "think", "repeat"}
)

func isKey(word string) bool {
	return slices.Contains(bodies, word) || slices.Contains(companionNames, word)
}

// fields returns the keys of a mapping with their values.
func fields(item int, node *yaml.Node, known []string) (map[string]*yaml.Node, error) {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return nil, wrong(item, node, "anchors and aliases are not read; write the item out, or use repeat")
	}
	if node.Kind != yaml.MappingNode {
		return nil, wrong(item, node, "this is %s, not a mapping; write a key and a value, for example %q", kindOf(node), "- say: hello")
	}
	found := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value) {
			return nil, wrong(item, key, "unknown key %q; the keys are %s", key.Value, strings.Join(known, ", "))
		}
		if found[key.Value] != nil {
			return nil, wrong(item, key, "%s is there twice; keep one", key.Value)
		}
		found[key.Value] = value
	}
	return found, nil
}

func parseItem(number int, node *yaml.Node) (Item, error) {
	found, err := fields(number, node, slices.Concat(bodies, companionNames))
	if err != nil {
		return Item{}, err
	}
	body, err := bodyOf(number, node, found)
	if err != nil {
		return Item{}, err
	}
	p := reader{item: number, found: found}
	item := Item{Number: number, Line: node.Line, Repeat: p.repeat(), Think: p.text("think"), Text: p.text("text")}
	switch body {
	case "call":
		item.Calls = []llm.ToolCall{p.call(found)}
	case "calls":
		item.Calls = p.calls(found["calls"])
	case "stream":
		item.Stream, item.Every = p.text("stream"), p.duration("every")
		if pauses := (len(strings.Fields(item.Stream)) - 1) / wordsPerDelta; pauses > 0 && item.Every > MaxStream/time.Duration(pauses) {
			p.fail(p.found["every"], "every %s the text takes more than %s; say it faster, or less", item.Every, MaxStream)
		}
	case "fail":
		item.Fail, item.After = p.class("fail"), p.duration("after")
	case "need":
		item.Need = p.text("need")
	case "say":
		item.Say = p.text("say")
	}
	if p.err != nil {
		return Item{}, p.err
	}
	return item, nil
}

// bodyOf returns the one body of an item, or says why there is none.
func bodyOf(number int, node *yaml.Node, found map[string]*yaml.Node) (string, error) {
	body := ""
	for _, name := range bodies {
		if found[name] == nil {
			continue
		}
		if body != "" {
			return "", wrong(number, found[name], "%s and %s are in one item; make two items of them", body, name)
		}
		body = name
	}
	if body == "" {
		if found["repeat"] != nil {
			return "", wrong(number, found["repeat"], "repeat has nothing to repeat; add one of %s to the same item", strings.Join(bodies, ", "))
		}
		return "", wrong(number, node, "the item says nothing; add one of %s", strings.Join(bodies, ", "))
	}
	for _, name := range companionNames {
		if with := companions[name]; found[name] != nil && with != nil && !slices.Contains(with, body) {
			return "", wrong(number, found[name], "%s goes with %s, not with %s", name, strings.Join(with, " or "), body)
		}
	}
	return body, nil
}

// reader takes values out of an item and keeps the first thing that is wrong.
type reader struct {
	item  int
	found map[string]*yaml.Node
	err   error
}

func (r *reader) fail(node *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = wrong(r.item, node, format, args...)
	}
}

func (r *reader) text(key string) string {
	node := r.found[key]
	if node == nil {
		return ""
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		r.fail(node, "%s must be text, not %s; put it in quotes", key, kindOf(node))
		return ""
	}
	if node.Value == "" {
		r.fail(node, "%s is empty; write some text", key)
	}
	return node.Value
}

func (r *reader) repeat() int {
	node := r.found["repeat"]
	if node == nil {
		return 1
	}
	n, err := strconv.Atoi(node.Value)
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!int" || err != nil || n < 1 || n > MaxRepeat {
		r.fail(node, "repeat must be a whole number from 1 to %d, not %s", MaxRepeat, valueOf(node))
		return 1
	}
	return n
}

func (r *reader) duration(key string) time.Duration {
	node := r.found[key]
	if node == nil {
		return 0
	}
	d, err := time.ParseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || d < 0 {
		r.fail(node, "%s must be a duration such as 50ms or 2s, not %s", key, valueOf(node))
		return 0
	}
	return d
}

var classes = []llm.ErrorClass{
	llm.ClassRateLimited, llm.ClassOverloaded, llm.ClassTimeout, llm.ClassContextOverflow,
	llm.ClassRefused, llm.ClassInvalid, llm.ClassAuth,
}

func (r *reader) class(key string) llm.ErrorClass {
	node := r.found[key]
	if class := llm.ErrorClass(node.Value); node.Kind == yaml.ScalarNode && slices.Contains(classes, class) {
		return class
	}
	names := make([]string, len(classes))
	for i, class := range classes {
		names[i] = string(class)
	}
	r.fail(node, "%s must be one of %s, not %s", key, strings.Join(names, ", "), valueOf(node))
	return ""
}

func (r *reader) call(found map[string]*yaml.Node) llm.ToolCall {
	node := found["call"]
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" || node.Value == "" {
		r.fail(node, "call must be the name of a tool, not %s", valueOf(node))
		return llm.ToolCall{}
	}
	call := llm.ToolCall{Name: node.Value, Arguments: llm.Arguments(nil)}
	with := found["with"]
	if with == nil || with.ShortTag() == "!!null" {
		return call
	}
	if with.Kind != yaml.MappingNode {
		r.fail(with, "with must be a mapping of arguments such as {text: hello}, not %s", valueOf(with))
		return call
	}
	arguments, err := toJSON(with)
	if err != nil {
		r.fail(err.node, "with: %s", err.message)
		return call
	}
	call.Arguments = llm.Arguments(arguments)
	return call
}

func (r *reader) calls(node *yaml.Node) []llm.ToolCall {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		r.fail(node, "calls must be a list of calls such as [{call: echo, with: {text: hello}}], not %s", valueOf(node))
		return nil
	}
	calls := make([]llm.ToolCall, 0, len(node.Content))
	for _, one := range node.Content {
		found, err := fields(r.item, one, []string{"call", "with"})
		if err != nil {
			if r.err == nil {
				r.err = err
			}
			return nil
		}
		if found["call"] == nil {
			r.fail(one, "each of calls needs a call: the name of the tool")
			return nil
		}
		calls = append(calls, r.call(found))
	}
	return calls
}

// kindOf names what a node is, in words of the person who wrote it.
func kindOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.DocumentNode, yaml.StreamNode:
		return "a document"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		switch node.ShortTag() {
		case "!!str":
			return "text"
		case "!!null":
			return "nothing"
		case "!!int", "!!float":
			return "a number"
		case "!!bool":
			return "true or false"
		case "!!timestamp":
			return "a date"
		}
		return node.ShortTag()
	}
	return "something else"
}

// valueOf shows a scalar as it was written, anything else by its kind.
func valueOf(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || node.Value == "" {
		return kindOf(node)
	}
	value := []rune(node.Value)
	if len(value) > 40 {
		value = append(value[:40], '…')
	}
	return strconv.Quote(string(value))
}
