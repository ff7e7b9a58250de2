// Package jsontype finds what encoding/json refuses in a Go type, or reads in another way than its schema says.
package jsontype

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Input says what is wrong with a type that arguments are read into.
func Input(t reflect.Type) []error {
	w := typeWalk{seen: map[reflect.Type]bool{}, input: true}
	w.walk(t, "")
	return w.problems
}

// Output says what is wrong with a type whose values become JSON.
func Output(t reflect.Type) []error {
	w := typeWalk{seen: map[reflect.Type]bool{}}
	w.walk(t, "")
	return w.problems
}

// typeWalk looks through a type for what encoding/json refuses, or reads in another way
// than the schema says. What decides about its JSON by itself is left alone.
type typeWalk struct {
	input    bool
	seen     map[reflect.Type]bool
	problems []error
}

func (w *typeWalk) wrong(at, format string, args ...any) {
	where := "its type "
	if at != "" {
		where = fmt.Sprintf("field %q ", at)
	}
	w.problems = append(w.problems, errors.New(where+fmt.Sprintf(format, args...)))
}

func (w *typeWalk) walk(t reflect.Type, at string) {
	if w.seen[t] || w.decidesItself(t) {
		return
	}
	w.seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		delete(w.seen, t) // it is told wherever it stands
		w.wrong(at, `is a %s, which has no JSON: take another type, or leave it out with json:"-"`, t)
	case reflect.Interface:
		delete(w.seen, t)
		if w.input && t.NumMethod() > 0 {
			w.wrong(at, "is the interface %s, which nothing can be read into: take a type, or any", t)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		w.walk(t.Elem(), at)
	case reflect.Map:
		if k := t.Key(); !keyOfJSON(k) {
			w.wrong(at, "is a map with keys of type %s, which JSON has not: take string", k)
		}
		w.walk(t.Elem(), at)
	case reflect.Struct:
		w.fields(t, at)
	default:
	}
}

// fields looks through those of a struct.
func (w *typeWalk) fields(t reflect.Type, at string) {
	names, exported := map[string]bool{}, false
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if exported = exported || f.IsExported() || f.Anonymous; !f.IsExported() && !f.Anonymous || name == "-" && options == "" {
			continue
		}
		if f.Anonymous && name == "" {
			w.walk(f.Type, at)
			continue
		}
		if name == "" {
			name = f.Name
		}
		here := name
		if at != "" {
			here = at + "." + name
		}
		if names[name] {
			w.wrong(at, "has two fields with the JSON name %q: encoding/json takes neither of them", name)
		}
		names[name] = true
		if !w.input {
			if !option(options, "omitzero") { // a func that is never set is left out
				w.walk(f.Type, here)
			}
			continue
		}
		if option(options, "string") && quotable(f.Type) {
			w.wrong(here, `has ",string" in its json tag, so a text is read where the schema says %s: leave it out`, f.Type)
		}
		if tag := f.Tag.Get("jsonschema"); keywordTag(tag) {
			w.wrong(here, "has the jsonschema tag %q: it is the description and nothing else, and does not begin with WORD=; keywords go into Properties", tag)
		}
		w.walk(f.Type, here)
	}
	if w.input && !exported && t.NumField() > 0 {
		w.wrong(at, "is a struct with unexported fields only, so no argument arrives: begin their names with a capital")
	}
}

// keywordTag reports whether a jsonschema tag begins as a list of keywords does, which
// the library that infers schemas refuses.
func keywordTag(tag string) bool {
	word, _, found := strings.Cut(tag, "=")
	return found && !strings.ContainsAny(word, " \t\n")
}

func option(options, name string) bool {
	for word := range strings.SplitSeq(options, ",") {
		if word == name {
			return true
		}
	}
	return false
}

// quotable reports whether encoding/json heeds the option "string" of a field.
func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	default:
		return false
	}
}

func keyOfJSON(t reflect.Type) bool {
	if t.Implements(textWriter) || reflect.PointerTo(t).Implements(textReader) {
		return true
	}
	return quotable(t) && t.Kind() != reflect.Bool && t.Kind() != reflect.Float32 && t.Kind() != reflect.Float64 && t.Kind() != reflect.Pointer
}

var (
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
)

// decidesItself reports whether a type says itself what its JSON is.
func (w *typeWalk) decidesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if w.input {
		return t.Kind() != reflect.Interface && (p.Implements(jsonReader) || p.Implements(textReader))
	}
	return t.Implements(jsonWriter) || t.Implements(textWriter) || p.Implements(jsonWriter) || p.Implements(textWriter)
}
