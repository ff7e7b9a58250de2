package session

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// StateChange is one operation of a JSON Patch (RFC 6902): add, remove or replace.
type StateChange struct {
	Op string `json:"op"`
	// Path is a JSON Pointer (RFC 6901) to a key of the state.
	Path string `json:"path"`
	// Value is left out of a remove.
	Value json.RawMessage `json:"value,omitempty"`
}

// pointerEscapes are those of RFC 6901.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Diff returns the operations that make to of s, each about a whole key, in the order of the keys.
func (s *State) Diff(to *State) []StateChange {
	before, after := s.Snapshot(), to.Snapshot()
	all := maps.Clone(before)
	maps.Copy(all, after)
	changes := []StateChange{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		old, was := before[key]
		value, is := after[key]
		change := StateChange{Op: "replace", Path: "/" + pointerEscapes.Replace(key), Value: value}
		switch {
		case !is:
			change.Op = "remove"
		case !was:
			change.Op = "add"
		case bytes.Equal(compact(old), compact(value)):
			continue
		}
		changes = append(changes, change)
	}
	return changes
}

// compact returns valid JSON without the space between its parts.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}
