// Package shape knows what encoding/json makes of the arguments of a call: which names it reads into
// a type, what it leaves out, and what it reads in another way than it is written.
package shape

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Fold returns the same text for texts that encoding/json takes for one field:
// those that are equal under Unicode's simple case folding. It is the text itself
// where all its letters are small ones of ASCII.
func Fold(key string) string {
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

// Problem is one thing that is wrong with a value, with the names that lead to it.
type Problem struct {
	At      []string
	Message string
}

// below returns the place of what has a name in the value at a place.
func below(at []string, name string) []string { return append(at[:len(at):len(at)], name) }

// Misspelled looks for properties that Go would put into a field of another case.
// The schema knows them as unknown ones, and an open schema takes them unseen.
func (s *Shape) Misspelled(doc any) []Problem { return s.misspelled(doc, nil) }

func (s *Shape) misspelled(doc any, at []string) []Problem {
	if s == nil {
		return nil
	}
	var problems []Problem
	switch doc := doc.(type) {
	case map[string]any:
		for key, value := range doc {
			of := s.fields[key].shape
			if _, exact := s.fields[key]; !exact {
				if name, known := s.folded[Fold(key)]; known {
					problems = append(problems, Problem{At: below(at, key), Message: "unknown property: expected " + strconv.Quote(name) + ", in the same case"})
					continue
				}
				of = s.values
			}
			if of != nil {
				problems = append(problems, of.misspelled(value, below(at, key))...)
			}
		}
	case []any:
		for i, value := range doc {
			if s.items != nil {
				problems = append(problems, s.items.misspelled(value, below(at, strconv.Itoa(i)))...)
			}
		}
	}
	return problems
}

// Shape is what encoding/json looks for in a value: the fields of a struct, what
// is in a map or a list. Nil, where it looks for no name.
type Shape struct {
	fields map[string]field
	folded map[string]string // the names of the fields, by what they fold to
	values *Shape            // of a map
	items  *Shape            // of a slice or an array
}

// field is one of a struct, with its place in it.
type field struct {
	shape *Shape
	index []int
}

// Of returns the shape of a type.
func Of(t reflect.Type) *Shape { return shapeOf(t, map[reflect.Type]*Shape{}) }

// shapeOf returns the shape of a type. seen has those of the types it stands in,
// which may be its own.
func shapeOf(t reflect.Type, seen map[reflect.Type]*Shape) *Shape {
	for range maxEmbedded {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	if s, known := seen[t]; known || readsItself(t) {
		return s
	}
	s := new(Shape)
	switch t.Kind() {
	case reflect.Struct:
		seen[t] = s
		f := fields{exact: map[string]reflect.StructField{}, folded: map[string]string{}}
		f.gather(t, nil)
		s.folded, s.fields = f.folded, make(map[string]field, len(f.exact))
		for name, of := range f.exact {
			s.fields[name] = field{shape: shapeOf(of.Type, seen), index: of.Index}
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

// fields are those of a struct that encoding/json knows: by name, with the index in the outermost
// struct, and their names by what they fold to.
type fields struct {
	exact  map[string]reflect.StructField
	folded map[string]string
}

// maxEmbedded bounds structs embedded in one another, and pointers to pointers,
// which may be circular.
const maxEmbedded = 16

// gather adds the fields of a struct, an outer one before one of the same name in
// an embedded struct.
func (s *fields) gather(t reflect.Type, at []int) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(at[:len(at):len(at)], i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			f.Type = inner
			embedded = append(embedded, f)
		case !f.IsExported() && (!f.Anonymous || inner.Kind() != reflect.Struct): // a named struct is read, whatever its type's name
		default:
			if name == "" {
				name = f.Name
			}
			if _, known := s.exact[name]; !known {
				s.exact[name], s.folded[Fold(name)] = f, name
			}
		}
	}
	for _, inner := range embedded {
		if len(at) < maxEmbedded {
			s.gather(inner.Type, inner.Index)
		}
	}
}
