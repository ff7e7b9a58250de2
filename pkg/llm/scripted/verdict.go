package scripted

import (
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// verdict is what a user message turned out to be: plain text, a script, or
// something that was meant to be one.
type verdict struct {
	plain  bool
	script Script
	err    error
}

// mayBeScript tells most plain text from scripts at its first line, without
// reading the rest.
func mayBeScript(text string) bool {
	line := firstLine(text)
	return line == "-" || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "-\t") || strings.HasPrefix(line, "[")
}

// firstLine returns the first line that says something in YAML.
func firstLine(text string) string {
	text = strings.TrimPrefix(text, "\uFEFF")
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && line[0] != '#' && line[0] != '%' {
			return line
		}
		text = rest
	}
	return ""
}

// judge decides about a text for which mayBeScript is true. A list of anything
// but mappings (shopping, arguments for a vote) is plain text; a list of
// mappings, or one with an item that has a script's key, was meant as a script.
func judge(text string) verdict {
	root, err := load(text)
	if err != nil {
		if meant(text) {
			return verdict{err: err}
		}
		return verdict{plain: true}
	}
	if root == nil || root.Kind != yaml.SequenceNode || len(root.Content) == 0 {
		return verdict{plain: true}
	}
	all, some := true, false
	for _, item := range root.Content {
		mapping := item.Kind == yaml.MappingNode
		all = all && mapping
		some = some || mapping && len(item.Content) > 0 && isKey(item.Content[0].Value)
	}
	if !all && !some {
		return verdict{plain: true}
	}
	script, err := parseRoot(root)
	return verdict{script: script, err: err}
}

// meant reports whether a text that YAML cannot read was meant as a script:
// one of its lines starts an item with a key we know.
func meant(text string) bool {
	const most = 1 << 16 // a script shows itself early
	text = text[:min(len(text), most)]
	if first := firstLine(text); strings.HasPrefix(strings.ReplaceAll(first, " ", ""), "[{") {
		return true
	}
	for line := range strings.SplitSeq(text, "\n") {
		item, dashed := strings.CutPrefix(strings.TrimSpace(line), "-")
		key, _, colon := strings.Cut(item, ":")
		if dashed && colon && isKey(strings.Trim(key, " \t{\"'")) {
			return true
		}
	}
	return false
}

// The cache holds at most so many texts, and so many bytes of them.
const (
	cacheTexts = 64
	cacheBytes = 4 << 20
)

// cache remembers verdicts by text. When it is full it starts anew: a session
// asks for the same one or two texts again and again.
type cache struct {
	mu       sync.Mutex
	verdicts map[string]verdict
	bytes    int
}

func (c *cache) of(text string) verdict {
	if len(text) > MaxText {
		return judge(text) // which refuses it unread
	}
	c.mu.Lock()
	v, ok := c.verdicts[text]
	c.mu.Unlock()
	if ok {
		return v
	}
	v = judge(text)

	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.verdicts[text]; ok {
		return v
	}
	if c.verdicts == nil || len(c.verdicts) >= cacheTexts || c.bytes+len(text) > cacheBytes {
		c.verdicts, c.bytes = map[string]verdict{}, 0
	}
	c.verdicts[text] = v
	c.bytes += len(text)
	return v
}
