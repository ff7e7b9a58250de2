package journal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/adjourn/adjourn/pkg/session"
)

// A record may have been written by a newer program, with fields this one does not have. They are
// ignored (needs names what must not be ignored) and kept when the record is written again.
// Otherwise an older program would undo what a newer one did.

// kept holds the fields of a stored object that this program does not have, and those of the
// objects in it. Nil for a record without such fields that is as it was written.
type kept struct {
	fields map[string]json.RawMessage
	// inner has the objects and lists in it that hold any, by name or index.
	inner map[string]*kept
	// was is what this program knew of the object when it was read: one that was
	// replaced since does not get the fields of the one before.
	was []byte
	// seal is what was found out when the record was read ([SetSeal]).
	seal Seal
}

// keeper is a record that keeps unknown fields.
type keeper interface{ unknown() **kept }

func (h *Head) unknown() **kept         { return &h.kept }
func (r *WaitRecord) unknown() **kept   { return &r.kept }
func (r *ToolRecord) unknown() **kept   { return &r.kept }
func (m *Mail) unknown() **kept         { return &m.kept }
func (a *Audit) unknown() **kept        { return &a.kept }
func (n *Notice) unknown() **kept       { return &n.kept }
func (i *Idempotency) unknown() **kept  { return &i.kept }
func (r *TenantRecord) unknown() **kept { return &r.kept }

func keeps(record any) bool {
	switch record.(type) {
	case keeper, *session.Run:
		return true
	}
	return false
}

// keptOf returns what a record keeps.
func keptOf(record any) *kept {
	switch r := record.(type) {
	case keeper:
		return *r.unknown()
	case *session.Run: // its type is in another package
		k, _ := r.Unknown.(*kept)
		return k
	}
	return nil
}

// keep has a record keep fields.
func keep(record any, k *kept) {
	switch r := record.(type) {
	case keeper:
		*r.unknown() = k
	case *session.Run:
		if r.Unknown = nil; k != nil {
			r.Unknown = k
		}
	}
}

// MarshalRecord returns the JSON of a record, given as a pointer, with the unknown fields that
// [UnmarshalRecord] found in it.
func MarshalRecord(record any) ([]byte, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	if k := keptOf(record); k != nil && len(k.fields)+len(k.inner) > 0 {
		return k.restore(raw)
	}
	return raw, nil
}

// UnmarshalRecord reads what [MarshalRecord] wrote, or what a newer program's did,
// into a record, given as a pointer. Errors that wrap [ErrNeeds] say that this
// program must not act on it.
func UnmarshalRecord(raw []byte, record any) error {
	if !decodeKnown(raw, record) {
		// Usually the record has unknown fields. All of it is read once more, because the decoder
		// stopped at the first of them.
		if err := json.Unmarshal(raw, record); err != nil {
			return err
		}
		if keeps(record) {
			known, err := json.Marshal(record)
			if err != nil {
				return err
			}
			keep(record, unknownIn(raw, known))
		}
	}
	if w, ok := record.(*WaitRecord); ok {
		return checkWait(&w.Wait)
	}
	return nil
}

// strictDecoder reads one record after the other: each claim of a lease reads HEAD,
// and a decoder of its own for each would cost more than the reading.
type strictDecoder struct {
	from bytes.Reader
	json *json.Decoder
}

var strictDecoders = sync.Pool{New: func() any {
	d := new(strictDecoder)
	d.json = json.NewDecoder(&d.from)
	d.json.DisallowUnknownFields()
	return d
}}

// roomKept is how large a record a decoder may have read that is used again, which keeps the
// room it needed. It is the same for what writes entries.
const roomKept = 64 << 10

// decodeKnown reads a record that has no field that is not known, and reports
// whether it was one.
func decodeKnown(raw []byte, record any) bool {
	d, _ := strictDecoders.Get().(*strictDecoder)
	d.from.Reset(raw)
	begin := d.json.InputOffset()
	if err := d.json.Decode(record); err != nil {
		return false // and the decoder has stopped somewhere in the text
	}
	rest := raw[d.json.InputOffset()-begin:]
	if len(rest) == 0 && len(raw) <= roomKept {
		d.from.Reset(nil)
		strictDecoders.Put(d)
	}
	return len(bytes.TrimSpace(rest)) == 0
}

// unknownIn returns what is in the JSON of an object, or a list, and not in what
// is known of it; nil for nothing.
func unknownIn(raw, known []byte) *kept {
	k := &kept{fields: map[string]json.RawMessage{}, inner: map[string]*kept{}, was: known}
	all, some := members(raw), members(known)
	for name, value := range all {
		of, isKnown := some[name]
		if !isKnown {
			k.fields[name] = value
			continue
		}
		if inner := unknownIn(value, of); inner != nil {
			k.inner[name] = inner
		}
	}
	if len(k.fields) == 0 && len(k.inner) == 0 {
		return nil
	}
	return k
}

// members returns the members of an object by name, the items of a list by
// index; nil for all else.
func members(raw []byte) map[string]json.RawMessage {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return nil
	}
	switch trimmed[0] {
	case '{':
		var of map[string]json.RawMessage
		if json.Unmarshal(trimmed, &of) == nil {
			return of
		}
	case '[':
		var of []json.RawMessage
		if json.Unmarshal(trimmed, &of) == nil {
			out := make(map[string]json.RawMessage, len(of))
			for i, item := range of {
				out[strconv.Itoa(i)] = item
			}
			return out
		}
	}
	return nil
}

// restore returns the JSON of the object with the fields that were kept. The fields of this
// program come before them.
func (k *kept) restore(raw []byte) ([]byte, error) {
	of := members(raw)
	if bytes.HasPrefix(raw, []byte("[")) {
		list := make([]json.RawMessage, len(of))
		for name, value := range of {
			i, err := strconv.Atoi(name)
			if err != nil {
				return nil, err
			}
			if list[i], err = k.restoreInner(name, value); err != nil {
				return nil, err
			}
		}
		return json.Marshal(list)
	}
	for name, value := range of {
		var err error
		if of[name], err = k.restoreInner(name, value); err != nil {
			return nil, err
		}
	}
	for name, value := range k.fields {
		if _, ours := of[name]; !ours {
			of[name] = value
		}
	}
	return json.Marshal(of)
}

func (k *kept) restoreInner(name string, value json.RawMessage) (json.RawMessage, error) {
	if inner := k.inner[name]; inner != nil && bytes.Equal(inner.was, value) {
		return inner.restore(value)
	}
	return value, nil
}
