// Package jsonbody reads the JSON bodies of requests strictly: what one does not say exactly is refused, never
// guessed.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/refused"
)

// maxDepth bounds how deeply a body may nest. What a caller sends is kept in a
// journal, inside other JSON, and has to be readable there for ever.
const maxDepth = 100

// Read reads the body of a request of at most limit bytes; nil if there is none.
func Read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case err != nil && r.Context().Err() != nil:
		return nil, r.Context().Err()
	case err != nil:
		return nil, refused.New(codes.BodyUnreadable, "the body ended before it was whole")
	case len(bytes.TrimSpace(raw)) == 0:
		return nil, nil
	}
	return raw, nil
}

func tooLarge(limit int64) error {
	return refused.New(codes.BodyTooLarge, "the body is larger than %d bytes. Put large data where a tool can read it", limit)
}

func checkMedia(header http.Header) error {
	given := header.Values("Content-Type")
	media, params, err := mime.ParseMediaType(strings.Join(given, ", "))
	if err != nil || len(given) != 1 || media != client.MediaJSON {
		return refused.New(codes.UnsupportedMediaType, "the body must be JSON: send the header Content-Type: %s", client.MediaJSON)
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return refused.New(codes.UnsupportedMediaType, "the body must be JSON in UTF-8: send the header Content-Type: %s", client.MediaJSON)
		}
	}
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refused.New(codes.UnsupportedMediaType, "the body must not be compressed")
	}
	return nil
}

// Decode reads one JSON object into a struct, and goes through it once more for what
// encoding/json takes as it is: the last of two fields of one name, names in any case,
// names that are none. Bytes that are not text it would replace. On an error the struct
// holds anything.
func Decode(raw []byte, into any) error {
	misfit, err := Parse(raw, into)
	if err != nil {
		return err
	}
	if raw[len(raw)-len(bytes.TrimLeft(raw, " \t\r\n"))] != '{' {
		return refused.New(codes.MalformedJSON, "the body must be a JSON object")
	}
	if err := CheckFields(raw, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	if mistake := (*json.UnmarshalTypeError)(nil); errors.As(misfit, &mistake) {
		return refused.New(codes.InvalidField, "%s is a JSON %s, which does not belong there", mistake.Field, mistake.Value)
	} else if misfit != nil {
		return refused.New(codes.InvalidField, "%v", misfit)
	}
	return nil
}

// Parse decodes what is JSON in UTF-8 as a whole, and returns whether it misfits; what is not is refused.
func Parse(raw []byte, into any) (misfit, refusal error) {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, malformed(raw, i, "this is not UTF-8")
		}
		i += size
	}
	// Nothing is decoded of what is not JSON as a whole, so that this is found first.
	misfit = json.Unmarshal(raw, into)
	if syntax := (*json.SyntaxError)(nil); errors.As(misfit, &syntax) {
		at := int(syntax.Offset) // bytes read, so that the last of them is the mistake
		if !strings.HasPrefix(syntax.Error(), "unexpected end") {
			at--
		}
		return nil, malformed(raw, at, syntax.Error())
	}
	return misfit, nil
}

// CheckFields walks through valid JSON and refuses a field that is there twice, and one that a struct of
// the type has not; a nil type lets any field stand.
func CheckFields(raw []byte, t reflect.Type) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	strict := strictness{decoder: decoder}
	return strict.value(t)
}

// malformed says where in the body the mistake is, in lines and characters from 1.
func malformed(raw []byte, offset int, what string) error {
	offset = min(max(offset, 0), len(raw))
	line := 1 + bytes.Count(raw[:offset], []byte("\n"))
	column := 1 + utf8.RuneCount(raw[bytes.LastIndexByte(raw[:offset], '\n')+1:offset])
	return refused.New(codes.MalformedJSON, "the body is not JSON: line %d, character %d: %s", line, column, what)
}

// strictness walks through valid JSON and refuses what a struct has no field
// for, and a field that is there twice, also where anything may stand.
type strictness struct {
	decoder *json.Decoder
	// path leads to where the walk is. It becomes text only in a refusal: names are
	// as long as a caller likes, and lists as well.
	path []segment
}

// segment is one step down: to a field, or to an item of a list.
type segment struct {
	name  string
	index int
	item  bool
}

func (s *strictness) value(t reflect.Type) error {
	if len(s.path) >= maxDepth {
		return refused.New(codes.MalformedJSON, "the body is nested more than %d deep", maxDepth)
	}
	token, err := s.decoder.Token()
	if err != nil {
		return refused.New(codes.MalformedJSON, "the body is not JSON: %v", err)
	}
	switch token {
	case nil:
		return s.null(t)
	case "":
		if s.atID(t) {
			return refused.New(codes.InvalidField, "%s is empty: leave it out, or say which is meant", Quoted(where(s.path)))
		}
	case json.Delim('{'):
		return s.object(t)
	case json.Delim('['):
		for i := 0; s.decoder.More(); i++ {
			if err := s.step(segment{index: i, item: true}, element(t)); err != nil {
				return err
			}
		}
		_, err = s.decoder.Token()
		return err
	}
	return nil
}

// null refuses null for what says what is asked, such as decisions, a message or a
// checkpoint: who sends it may have lost what he meant, and without it a request to go
// on is left. For other fields it is as if they were not there.
func (s *strictness) null(t reflect.Type) error {
	object := t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
	if !object && t != reflect.TypeFor[client.Content]() && !s.atID(t) {
		return nil
	}
	return refused.New(codes.InvalidField, "%s is null: leave it out, or say what is meant", Quoted(where(s.path)))
}

// atID reports whether the walk is at a field that names something, such as waitId.
// Without its value a request would be about whatever there is by now.
func (s *strictness) atID(t reflect.Type) bool {
	if len(s.path) == 0 || t == nil || t.Kind() != reflect.String {
		return false
	}
	name := s.path[len(s.path)-1].name
	return name == "id" || strings.HasSuffix(name, "Id")
}

// step walks through the value one step down.
func (s *strictness) step(to segment, t reflect.Type) error {
	s.path = append(s.path, to)
	err := s.value(t)
	s.path = s.path[:len(s.path)-1]
	return err
}

func (s *strictness) object(t reflect.Type) error {
	fields := fieldsOf(t)
	seen := map[string]bool{}
	for s.decoder.More() {
		token, err := s.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the key of an object is a string
		if seen[name] {
			return refused.New(codes.DuplicateField, "the field %s is there twice", Quoted(s.at(name)))
		}
		seen[name] = true
		inner, known := fields[name]
		if fields != nil && !known {
			return refused.New(codes.UnknownField, "there is no field %s here; the fields are %s", Quoted(s.at(name)), strings.Join(fieldNames(t), ", "))
		}
		if fields == nil {
			inner = element(t)
		}
		if err := s.step(segment{name: name}, inner); err != nil {
			return err
		}
	}
	_, err := s.decoder.Token()
	return err
}

// at writes the path to a field.
func (s *strictness) at(name string) string { return where(append(s.path, segment{name: name})) }

func where(path []segment) string {
	var b strings.Builder
	for _, to := range path {
		switch {
		case to.item:
			fmt.Fprintf(&b, "[%d]", to.index)
		case b.Len() > 0:
			b.WriteString("." + to.name)
		default:
			b.WriteString(to.name)
		}
	}
	return b.String()
}

// Quoted is a name of the caller's as it may be told back: quoted, and not at any length.
func Quoted(path string) string {
	if len(path) > 200 {
		path = strings.ToValidUTF8(path[:200], "") + "…"
	}
	return fmt.Sprintf("%q", path)
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// fieldsOf returns the fields of a struct by their names in JSON; nil where any name may stand.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		fields[nameOf(field)] = field.Type
	}
	return fields
}

// fieldNames returns the names in JSON of the fields of a struct, as they are declared.
func fieldNames(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for field := range t.Fields() {
		names = append(names, nameOf(field))
	}
	return names
}

func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// element returns what a list or a map holds; nil where anything may stand.
func element(t reflect.Type) reflect.Type {
	if t == nil || t == rawMessage {
		return nil
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		return t.Elem()
	}
	return nil
}
