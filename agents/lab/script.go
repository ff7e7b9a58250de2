package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/adjourn/adjourn/pkg/llm"
)

const (
	maxScript = 1 << 20          // bytes of text
	maxRepeat = 1_000_000        // of one item
	maxStream = 15 * time.Minute // that saying a text may take
	maxDepth  = 64               // of nested arguments
)

// Item is one entry of a script: what the model says in one reply, or in Repeat replies. Exactly one of
// the call, Calls, Stream, Fail, Need and Say is set.
type Item struct {
	Call   `yaml:",inline"`
	Calls  []Call         `yaml:"calls"`
	Text   string         `yaml:"text"` // said before the calls
	Stream string         `yaml:"stream"`
	Every  time.Duration  `yaml:"every"` // the pause between two pieces of Stream
	Fail   llm.ErrorClass `yaml:"fail"`
	After  time.Duration  `yaml:"after"` // what the failure says as retry-after
	Need   string         `yaml:"need"`  // a question to a person
	Say    string         `yaml:"say"`
	Think  string         `yaml:"think"` // reasoning, before the rest
	Repeat int            `yaml:"repeat"`
	Cost   int64          `yaml:"cost"` // of the reply, in millionths
}

// Call is one call of a tool.
type Call struct {
	Tool string    `yaml:"call"`
	With Arguments `yaml:"with"`
}

// Arguments is a JSON object, written in YAML.
type Arguments json.RawMessage

// ToolCalls returns the calls of the item.
func (i Item) ToolCalls() []llm.ToolCall {
	calls := i.Calls
	if i.Tool != "" {
		calls = []Call{i.Call}
	}
	made := make([]llm.ToolCall, len(calls))
	for k, c := range calls {
		made[k] = llm.ToolCall{Name: c.Tool, Arguments: llm.Arguments(c.With)}
	}
	return made
}

// Script is a list of items.
type Script []Item

// Len returns how many replies the script holds, repeats counted.
func (s Script) Len() int {
	n := 0
	for _, item := range s {
		n += item.Repeat
	}
	return n
}

// Reply returns the number of the item, from 1, that the k-th reply (from 0) says. It is 0 past the end.
func (s Script) Reply(k int) (number int) {
	for i, item := range s {
		if k -= item.Repeat; k < 0 {
			return i + 1
		}
	}
	return 0
}

const (
	bodies   = "call, calls, stream, fail, need, say"
	keys     = "with, text, every, after, think, repeat, cost, " + bodies
	callKeys = "call, with"
)

// texts are the keys whose value is text: "say: 5" and "say: 2026-01-01" want quotes.
var texts = []string{"call", "text", "stream", "fail", "need", "say", "think"}

// Parse reads a script. The error says which item and line is wrong, and how.
func Parse(text string) (Script, error) {
	if len(text) > maxScript {
		return nil, fmt.Errorf("script: %d bytes are too many, %d is the most; use repeat for long scripts", len(text), maxScript)
	}
	var nodes []yaml.Node
	if err := yaml.Load([]byte(text), &nodes); err != nil {
		line, err := place(err, 1)
		if errors.Is(err, errType) {
			return nil, fmt.Errorf("script: line %d: this is no list of items in YAML, such as \"- say: hello\"", line)
		}
		return nil, fmt.Errorf("script: line %d: this is no list of items in YAML, such as \"- say: hello\": %w; check indentation and quotes", line, err)
	}
	if len(nodes) == 0 {
		return nil, errors.New(`script: the list is empty; the shortest script is "- say: hello"`)
	}
	script := make(Script, len(nodes))
	for i := range nodes {
		var err error
		if script[i], err = parseItem(&nodes[i]); err != nil {
			line, err := place(err, nodes[i].Line)
			return nil, fmt.Errorf("script: item %d, line %d: %w; the keys are %s", i+1, line, err, keys)
		}
	}
	return script, nil
}

// errType stands for what the decoder says of types of Go.
var errType = errors.New("a value has the wrong type: repeat and cost are whole numbers, every and after are durations such as 250ms")

// place returns the line of a mistake, or another where it has none, and what is wrong there.
func place(err error, otherwise int) (line int, what error) {
	at := new(yaml.LoadError)
	switch {
	case !errors.As(err, &at):
		return otherwise, err
	case strings.HasPrefix(at.Message, "cannot construct "):
		return max(at.Mark.Line, otherwise), errType
	}
	return max(at.Mark.Line, otherwise), errors.New(at.Message)
}

func parseItem(node *yaml.Node) (Item, error) {
	if aliased(node) {
		return Item{}, errors.New("aliases are not read; write the value out, or use repeat")
	}
	if err := checkKeys(node); err != nil {
		return Item{}, err
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if slices.Contains(texts, key) && (value.ShortTag() != "!!str" || value.Value == "") {
			return Item{}, fmt.Errorf("%s must be text; put it in quotes", key)
		}
	}
	item := Item{Repeat: 1}
	if err := node.Load(&item, yaml.WithKnownFields()); err != nil {
		return Item{}, err
	}
	return item, item.check()
}

// checkKeys refuses keys that there are not, before the decoder does in words of Go.
func checkKeys(item *yaml.Node) error {
	if item.Kind != yaml.MappingNode && item.ShortTag() != "!!null" {
		return mistake(item, "an item is a mapping such as {say: hello}")
	}
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, value := item.Content[i], item.Content[i+1]
		if !known(key, keys) {
			return mistake(key, "unknown key "+key.Value)
		}
		if key.Value != "calls" || value.ShortTag() == "!!null" {
			continue
		}
		if value.Kind != yaml.SequenceNode {
			return mistake(value, "calls must be a list of calls such as [{call: echo}]")
		}
		for _, call := range value.Content {
			if call.Kind != yaml.MappingNode && call.ShortTag() != "!!null" {
				return mistake(call, "each of calls is a mapping such as {call: echo}")
			}
			for k := 0; k < len(call.Content); k += 2 {
				if key := call.Content[k]; !known(key, callKeys) {
					return mistake(key, "unknown key "+key.Value+" in calls, where there are "+callKeys)
				}
			}
		}
	}
	return nil
}

// known leaves to the decoder what is no plain key.
func known(key *yaml.Node, among string) bool {
	return key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || slices.Contains(strings.Split(among, ", "), key.Value)
}

func mistake(at *yaml.Node, what string) error {
	return &yaml.LoadError{Message: what, Mark: yaml.Mark{Line: at.Line, Column: at.Column}}
}

// aliased reports whether a node holds an alias: a few of them can stand for very many values.
func aliased(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, aliased)
}

func (i Item) check() error {
	var found []string
	for name, is := range map[string]bool{
		"call": i.Tool != "", "calls": len(i.Calls) > 0, "stream": i.Stream != "", "fail": i.Fail != "", "need": i.Need != "", "say": i.Say != "",
	} {
		if is {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	pauses := (len(strings.Fields(i.Stream)) - 1) / wordsPerDelta
	switch {
	case len(found) == 0:
		return errors.New("the item says nothing; add one of " + bodies)
	case len(found) > 1:
		return fmt.Errorf("%s are in one item; make two items of them", strings.Join(found, " and "))
	case i.Repeat < 1 || i.Repeat > maxRepeat:
		return fmt.Errorf("repeat must be a whole number from 1 to %d, not %d", maxRepeat, i.Repeat)
	case i.With != nil && i.Tool == "":
		return fmt.Errorf("with goes with call, not with %s", found[0])
	case i.Text != "" && i.Tool == "" && len(i.Calls) == 0:
		return fmt.Errorf("text goes with call or calls, not with %s", found[0])
	case i.Every != 0 && i.Stream == "":
		return fmt.Errorf("every goes with stream, not with %s", found[0])
	case i.After != 0 && i.Fail == "":
		return fmt.Errorf("after goes with fail, not with %s", found[0])
	case i.Every < 0 || i.After < 0 || i.Cost < 0:
		return errors.New("every, after and cost must not be negative")
	case i.Cost != 0 && i.Fail != "":
		return errors.New("cost goes with a reply, not with fail")
	case pauses > 0 && i.Every > maxStream/time.Duration(pauses):
		return fmt.Errorf("every %s the text takes more than %s; say it faster, or less", i.Every, maxStream)
	case i.Fail != "" && !slices.Contains(classes, i.Fail):
		return fmt.Errorf("fail must be one of %s, not %q", listed(classes), i.Fail)
	case slices.ContainsFunc(i.Calls, func(c Call) bool { return c.Tool == "" }):
		return errors.New("each of calls needs a call: the name of the tool")
	}
	return nil
}

var classes = []llm.ErrorClass{
	llm.ClassRateLimited, llm.ClassOverloaded, llm.ClassTimeout, llm.ClassContextOverflow,
	llm.ClassRefused, llm.ClassInvalid, llm.ClassAuth,
}

func listed(all []llm.ErrorClass) string {
	texts := make([]string, len(all))
	for i, class := range all {
		texts[i] = string(class)
	}
	return strings.Join(texts, ", ")
}

// UnmarshalYAML turns the arguments into JSON. Decoding into a map would lose the order of keys and the
// digits of large numbers.
func (a *Arguments) UnmarshalYAML(node *yaml.Node) error {
	if node.ShortTag() == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return errors.New("with must be a mapping of arguments such as {text: hello}")
	}
	var b bytes.Buffer
	if err := writeJSON(&b, node, 0); err != nil {
		return fmt.Errorf("with: %w", err)
	}
	*a = b.Bytes()
	return nil
}

func writeJSON(b *bytes.Buffer, node *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return fmt.Errorf("nested more than %d deep", maxDepth)
	case node.Kind == yaml.ScalarNode:
		return writeScalar(b, node)
	}
	open, end, separators := byte('['), byte(']'), ","
	if node.Kind == yaml.MappingNode {
		open, end, separators = '{', '}', ",:"
	}
	seen := map[string]bool{}
	b.WriteByte(open)
	for i, value := range node.Content {
		if i > 0 {
			b.WriteByte(separators[i%len(separators)])
		}
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if value.ShortTag() != "!!str" || seen[value.Value] {
				return fmt.Errorf("the key %s must be text, and be there once; put it in quotes", value.Value)
			}
			seen[value.Value] = true
		}
		if err := writeJSON(b, value, depth+1); err != nil {
			return err
		}
	}
	b.WriteByte(end)
	return nil
}

// writeScalar keeps dates and decimal numbers as they were written: no Go number holds all of these.
func writeScalar(b *bytes.Buffer, node *yaml.Node) error {
	var value any = node.Value
	switch tag := node.ShortTag(); tag {
	case "!!str", "!!timestamp":
	case "!!int", "!!float", "!!bool", "!!null":
		if strings.Trim(node.Value, "-.0123456789") == "" && json.Valid([]byte(node.Value)) {
			b.WriteString(node.Value)
			return nil
		}
		if err := node.Decode(&value); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the tag %s is not read; write a plain value", tag)
	}
	text, err := json.Marshal(value)
	if err != nil { // .nan and .inf
		return fmt.Errorf("%q has no form in JSON; put it in quotes", node.Value)
	}
	b.Write(text)
	return nil
}

// early is how far into a message the first of our keys is looked for.
const early = 1 << 16

var (
	listStart = regexp.MustCompile(`^\x{FEFF}?(?:[ \t]*(?:#.*|---)?\r?\n)*[ \t]*[-\[]`)
	itemStart = regexp.MustCompile(`(?m)^\s*[-\[]\s*\{?\s*["']?(?:call|with|calls|text|stream|every|fail|after|need|say|think|repeat|cost)["']?\s*:`)
)

// isScript reports whether a message is a script, right or wrong: a list in YAML one of whose items begins
// with a key of ours, or all of whose items are mappings. Other lists (shopping) are plain text.
func isScript(text string) bool {
	if !listStart.MatchString(text) {
		return false
	}
	if itemStart.MatchString(text[:min(len(text), early)]) {
		return true
	}
	var items []map[string]any
	return len(text) <= maxScript && yaml.Load([]byte(text), &items) == nil && len(items) > 0
}
