package tool

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// fold returns the same text for texts that encoding/json takes for one field:
// those that are equal under Unicode's simple case folding.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, key)
}

// misspelled looks for properties that Go would put into a field of another case.
// The schema knows them as unknown ones, and an open schema takes them unseen.
func misspelled(t reflect.Type, doc any, at []string) []Problem {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsItself(t) {
		return nil
	}
	var problems []Problem
	switch doc := doc.(type) {
	case map[string]any:
		fields := fields{exact: map[string]reflect.Type{}, folded: map[string]string{}}
		if t.Kind() == reflect.Struct {
			fields.gather(t, 0)
		}
		for key, value := range doc {
			here := append(at[:len(at):len(at)], key)
			of, exact := fields.exact[key]
			name, known := fields.folded[fold(key)]
			switch {
			case exact:
				problems = append(problems, misspelled(of, value, here)...)
			case known:
				problems = append(problems, Problem{At: pointer(here), Message: "unknown property: expected " + quote(name) + ", in the same case"})
			case t.Kind() == reflect.Map:
				problems = append(problems, misspelled(t.Elem(), value, here)...)
			}
		}
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for i, value := range doc {
				problems = append(problems, misspelled(t.Elem(), value, append(at[:len(at):len(at)], strconv.Itoa(i)))...)
			}
		}
	}
	return problems
}

var (
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether a type decides by itself what it makes of JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonReader) || p.Implements(textReader)
}

// fields are those of a struct that encoding/json knows: their types by name, and
// their names by what they fold to.
type fields struct {
	exact  map[string]reflect.Type
	folded map[string]string
}

// maxEmbedded bounds structs embedded in one another, which may be circular.
const maxEmbedded = 16

// gather adds the fields of a struct, an outer one before one of the same name in
// an embedded struct.
func (s *fields) gather(t reflect.Type, depth int) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		case !f.IsExported() && (!f.Anonymous || inner.Kind() != reflect.Struct): // a named struct is read, whatever its type's name
		default:
			if name == "" {
				name = f.Name
			}
			if _, known := s.exact[name]; !known {
				s.exact[name], s.folded[fold(name)] = f.Type, name
			}
		}
	}
	for _, inner := range embedded {
		if depth < maxEmbedded {
			s.gather(inner, depth+1)
		}
	}
}
