package standing

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	scalar kind = iota
	object
	array
)

// maxDepth bounds how deep values are in each other.
const maxDepth = 100

// value is a JSON value. The members of an object are sorted by their names, and none of them is there twice.
type value struct {
	kind kind
	// key is the name in an object, or the place in an array.
	key   string
	items []*value
	// raw is a scalar in canonical form, and anything else as it was written.
	raw string
	// text of a text whose characters are all known.
	text *string
}

// parse reads one JSON value. ok is false for what is none, and for what does not mean one thing: an object
// with a name twice, a text with half a character.
func parse(raw json.RawMessage) (v *value, ok bool) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, false
	}
	return parseValid(raw, "", 0)
}

func parseValid(raw json.RawMessage, key string, depth int) (*value, bool) {
	raw = bytes.TrimSpace(raw)
	v := &value{key: key, raw: string(raw)}
	if depth > maxDepth {
		return nil, false
	}
	switch raw[0] {
	case '{':
		v.kind = object
		return v, v.members(raw, depth)
	case '[':
		v.kind = array
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return nil, false
		}
		for i, item := range items {
			in, ok := parseValid(item, strconv.Itoa(i), depth+1)
			if !ok {
				return nil, false
			}
			v.items = append(v.items, in)
		}
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil || strings.ContainsRune(text, utf8.RuneError) {
			return nil, false // it may be half a character that was replaced
		}
		canonical, err := json.Marshal(text)
		if err != nil {
			return nil, false
		}
		v.raw, v.text = string(canonical), &text
	}
	return v, true
}

func (v *value) members(raw json.RawMessage, depth int) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return false
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		if err != nil || !isName || strings.ContainsRune(name, utf8.RuneError) {
			return false
		}
		var member json.RawMessage
		if decoder.Decode(&member) != nil {
			return false
		}
		in, ok := parseValid(member, name, depth+1)
		if !ok {
			return false
		}
		v.items = append(v.items, in)
	}
	slices.SortFunc(v.items, func(a, b *value) int { return strings.Compare(a.key, b.key) })
	for i := range v.items[min(1, len(v.items)):] {
		if v.items[i].key == v.items[i+1].key {
			return false
		}
	}
	return true
}

// at returns what a JSON pointer leads to; nil for nothing.
func (v *value) at(field string) *value {
	for _, name := range strings.Split(field, "/")[1:] {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		i := slices.IndexFunc(v.items, func(item *value) bool { return item.key == name })
		if i < 0 {
			return nil
		}
		v = v.items[i]
	}
	return v
}
