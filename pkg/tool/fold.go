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
// those that are equal under Unicode's simple case folding. It is the text itself
// where all its letters are small ones of ASCII.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		if 'A' <= least && least <= 'Z' { // the Kelvin sign, a long s
			least += 'a' - 'A'
		}
		return least
	}, key)
}

// misspelled looks for properties that Go would put into a field of another case.
// The schema knows them as unknown ones, and an open schema takes them unseen.
func misspelled(s *shape, doc any, at []string) []Problem {
	if s == nil {
		return nil
	}
	var problems []Problem
	switch doc := doc.(type) {
	case map[string]any:
		for key, value := range doc {
			of, exact := s.fields[key]
			if !exact {
				if name, known := s.folded[fold(key)]; known {
					here := append(at[:len(at):len(at)], key)
					problems = append(problems, Problem{At: pointer(here), Message: "unknown property: expected " + quote(name) + ", in the same case"})
					continue
				}
				of = s.values
			}
			if of != nil {
				problems = append(problems, misspelled(of, value, append(at[:len(at):len(at)], key))...)
			}
		}
	case []any:
		for i, value := range doc {
			if s.items != nil {
				problems = append(problems, misspelled(s.items, value, append(at[:len(at):len(at)], strconv.Itoa(i)))...)
			}
		}
	}
	return problems
}

// shape is what encoding/json looks for in a value: the fields of a struct, what
// is in a map or a list. Nil, where it looks for no name.
type shape struct {
	fields map[string]*shape
	folded map[string]string // the names of the fields, by what they fold to
	values *shape            // of a map
	items  *shape            // of a slice or an array
}

// shapeOf returns the shape of a type. seen has those of the types it stands in,
// which may be its own.
func shapeOf(t reflect.Type, seen map[reflect.Type]*shape) *shape {
	for range maxEmbedded {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	if s, known := seen[t]; known || readsItself(t) {
		return s
	}
	s := new(shape)
	switch t.Kind() {
	case reflect.Struct:
		seen[t] = s
		f := fields{exact: map[string]reflect.Type{}, folded: map[string]string{}}
		f.gather(t, 0)
		s.folded, s.fields = f.folded, make(map[string]*shape, len(f.exact))
		for name, of := range f.exact {
			s.fields[name] = shapeOf(of, seen)
		}
	case reflect.Map:
		seen[t] = s
		s.values = shapeOf(t.Elem(), seen)
	case reflect.Slice, reflect.Array:
		seen[t] = s
		s.items = shapeOf(t.Elem(), seen)
	default:
		return nil
	}
	return s
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

// maxEmbedded bounds structs embedded in one another, and pointers to pointers,
// which may be circular.
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
