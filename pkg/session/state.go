package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// StateOpKind says how a state operation changes its key.
type StateOpKind string

// The state operations.
const (
	StateAppend  StateOpKind = "append"
	StateReplace StateOpKind = "replace"
)

// StateOp is one change of the custom state. Entries hold operations, never the
// whole state, so that what a step writes does not grow with the session.
type StateOp struct {
	Op    StateOpKind     `json:"op"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// State is the custom state of a session: JSON values by key. Appending to a
// key costs the same however long its list is. The zero value is empty.
// Reading is safe from many goroutines, changing is not.
type State struct {
	values map[string]stateValue
}

type stateValue struct {
	list  []json.RawMessage // of a list
	whole json.RawMessage   // of anything else
	size  int               // of all of it, in bytes
	// used is how much of list's array is taken by the longest of the states that
	// share it: only that one may append in place.
	used *int
}

// with returns the value with one more item; v itself is not changed.
func (v stateValue) with(item json.RawMessage) stateValue {
	list, size := v.list, v.size+len(item)
	if v.whole != nil {
		list = []json.RawMessage{v.whole}
	}
	used := v.used
	if used == nil || *used != len(list) {
		list, used = slices.Clip(list), new(int)
	}
	list = append(list, item)
	*used = len(list)
	return stateValue{list: list, size: size, used: used}
}

// Apply carries out one operation. Appending to a key that is not set makes a
// list of one; appending to a value that is not a list makes a list of both.
func (s *State) Apply(op StateOp) error {
	if s.values == nil {
		s.values = map[string]stateValue{}
	}
	switch op.Op {
	case StateReplace:
		v, err := newStateValue(op.Value)
		if err != nil {
			return fmt.Errorf("replace state %q: %w", op.Key, err)
		}
		s.values[op.Key] = v
	case StateAppend:
		if !json.Valid(op.Value) {
			return fmt.Errorf("append to state %q: not valid JSON", op.Key)
		}
		s.values[op.Key] = s.values[op.Key].with(op.Value)
	default:
		return fmt.Errorf("state %q: unknown operation %q", op.Key, op.Op)
	}
	return nil
}

func newStateValue(raw json.RawMessage) (stateValue, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) > 0 && trimmed[0] == '[' {
		list := []json.RawMessage{}
		if err := json.Unmarshal(trimmed, &list); err != nil {
			return stateValue{}, err
		}
		return stateValue{list: list, size: len(trimmed)}, nil
	}
	if !json.Valid(trimmed) {
		return stateValue{}, fmt.Errorf("not valid JSON")
	}
	return stateValue{whole: trimmed, size: len(trimmed)}, nil
}

// Get returns the value of a key as JSON, and whether it is set.
func (s *State) Get(key string) (json.RawMessage, bool) {
	v, ok := s.values[key]
	if !ok {
		return nil, false
	}
	return v.json(), true
}

func (v stateValue) json() json.RawMessage {
	if v.whole != nil {
		return v.whole
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, item := range v.list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// Size returns about how many bytes the values take in memory.
func (s *State) Size() int {
	size := 0
	for _, v := range s.values {
		size += v.size
	}
	return size
}

// Keys returns the keys that are set, sorted.
func (s *State) Keys() []string { return slices.Sorted(maps.Keys(s.values)) }

// Snapshot returns every key with its value as JSON.
func (s *State) Snapshot() map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(s.values))
	for key, v := range s.values {
		out[key] = v.json()
	}
	return out
}

// With returns the state after the operations and leaves s unchanged for its readers. Long lists
// are shared with s, and the first state made from s appends to the same array; any other one
// copies.
func (s *State) With(ops []StateOp) (State, error) {
	out := State{values: make(map[string]stateValue, len(s.values)+len(ops))}
	maps.Copy(out.values, s.values)
	for _, op := range ops {
		if err := out.Apply(op); err != nil {
			return State{}, err
		}
	}
	return out, nil
}

// Clone returns a copy that can be changed without touching s.
func (s *State) Clone() State {
	out := State{values: make(map[string]stateValue, len(s.values))}
	for key, v := range s.values {
		out.values[key] = stateValue{list: v.list, whole: v.whole, size: v.size} // without used: the first append copies
	}
	return out
}
