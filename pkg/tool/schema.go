package tool

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	infer "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/adjourn/adjourn/pkg/tool/internal/jsontype"
	"github.com/adjourn/adjourn/pkg/tool/internal/shape"
)

// schema is a JSON Schema, compiled once.
type schema struct {
	compiled *jsonschema.Schema
	// doc is the schema as decoded JSON, to say what was expected where.
	doc any
	// defaults says that it has some.
	defaults bool
}

// schemaURL is where a schema pretends to live. Nothing is ever fetched.
const schemaURL = "https://schema.invalid/arguments.json"

// SchemaOf infers the JSON Schema of T: of a struct, as its json and jsonschema
// tags say. It is an error if T has no schema that is an object at its top.
func SchemaOf[T any]() (json.RawMessage, error) {
	_, raw, err := specSchema[T]("", nil, nil)
	var mistake *SpecError
	if errors.As(err, &mistake) {
		return nil, errors.New(mistake.Problem)
	}
	return raw, err
}

// specSchema is the schema of a spec, inferred or given.
func specSchema[In any](name string, given json.RawMessage, properties map[string]json.RawMessage) (*schema, json.RawMessage, error) {
	field, raw := "Schema", given
	wrong := func(format string, args ...any) (*schema, json.RawMessage, error) {
		return nil, json.RawMessage(`{"type":"object"}`), &SpecError{Tool: name, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if given == nil {
		field = "In"
		if problems := jsontype.Input(reflect.TypeFor[In]()); len(problems) > 0 {
			errs := make([]error, 0, len(problems))
			for _, problem := range problems {
				errs = append(errs, &SpecError{Tool: name, Field: field, Problem: problem.Error()})
			}
			_, raw, _ := wrong("")
			return nil, raw, errors.Join(errs...)
		}
		inferred, err := inferSchema(reflect.TypeFor[In]())
		if err != nil {
			return wrong("no schema can be inferred: %v: change the type, or set Schema", err)
		}
		if len(properties) > 0 {
			field = "Properties"
			if err := overlay(inferred, properties); err != nil {
				return wrong("%v", err)
			}
		}
		tidy(inferred)
		if raw, err = json.Marshal(inferred); err != nil {
			return wrong("%v", err)
		}
		raw = bytes.ReplaceAll(raw, []byte(`{"`+anything+`":true}`), []byte(`{}`))
	} else if len(properties) > 0 {
		field = "Properties"
		return wrong("Schema is set, which replaces the inferred one: write the keywords there")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return wrong("it is not JSON: %v", err)
	}
	if object, ok := doc.(map[string]any); !ok || object["type"] != "object" {
		return wrong("the arguments of a tool are an object: %q must be \"object\" at the top (a struct or a map in Go)", "type")
	}
	if given != nil {
		if inferred, err := inferSchema(reflect.TypeFor[In]()); err == nil && len(jsontype.Input(reflect.TypeFor[In]())) == 0 {
			if conflicts := typeConflicts(doc, inferred, ""); len(conflicts) > 0 {
				return wrong("%v", errors.Join(conflicts...))
			}
		}
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return wrong("%v", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return wrong("it does not compile: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	var wrongDefaults []string
	defaults := shape.Defaults(doc, func(pointer string, value any) {
		at, err := compiler.Compile(schemaURL + "#" + (&url.URL{Path: pointer}).EscapedPath())
		if err == nil {
			err = at.Validate(value)
		}
		if err != nil {
			wrongDefaults = append(wrongDefaults, fmt.Sprintf("the default of %s does not fit its own schema: %s", cmp.Or(pointer, "the whole"), strings.ReplaceAll(err.Error(), "\n", " ")))
		}
	})
	if len(wrongDefaults) > 0 {
		slices.Sort(wrongDefaults)
		return wrong("%s", strings.Join(wrongDefaults, "; "))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return wrong("it is not JSON: %v", err)
	}
	return &schema{compiled: compiled, doc: doc, defaults: defaults}, compact.Bytes(), nil
}

// noLoader refuses every $ref that leaves the schema.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref to %s: nothing is fetched, copy the definition into $defs", url)
}

// inferSchema is jsonschema.ForType with what it gets wrong put right.
func inferSchema(t reflect.Type) (s *infer.Schema, err error) {
	defer func() {
		if v := recover(); v != nil {
			s, err = nil, fmt.Errorf("%v", v)
		}
		for err != nil && strings.HasPrefix(err.Error(), "ForType(") && errors.Unwrap(err) != nil {
			err = errors.Unwrap(err) // which prints the whole type
		}
	}()
	for t.Kind() == reflect.Pointer {
		t = t.Elem() // arguments are an object, never null
	}
	types := map[reflect.Type]*infer.Schema{
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[json.Number]():     {Type: "number"},
	}
	special(t, types, map[reflect.Type]bool{})
	return infer.ForType(t, &infer.ForOptions{TypeSchemas: types})
}

// special finds the types whose JSON is not what their Go shape suggests: those
// that unmarshal themselves, and bytes, which are base64.
func special(t reflect.Type, types map[reflect.Type]*infer.Schema, seen map[reflect.Type]bool) {
	if seen[t] || types[t] != nil {
		return
	}
	seen[t] = true
	pointer := reflect.PointerTo(t)
	switch {
	case t.PkgPath() == "math/big" || t.PkgPath() == "log/slog": // known to the library
		return
	case t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer:
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		types[t] = &infer.Schema{}
		return
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		types[t] = &infer.Schema{Type: "string"}
		return
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && t.Elem().NumMethod() == 0:
		types[t] = &infer.Schema{Type: "string", ContentEncoding: "base64"}
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		special(t.Elem(), types, seen)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			if field.IsExported() {
				special(field.Type, types, seen)
			}
		}
	default:
	}
}

// anything marks schemas that allow everything until they are written down.
const anything = "x-adjourn-anything"

// tidy puts right what some providers refuse: ["null","array"], which a nil slice
// is to Go and no model needs, becomes "array"; the schema that allows everything
// is written {} and not true.
func tidy(s *infer.Schema) {
	if s == nil {
		return
	}
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Type, s.Types = "array", nil
	}
	tidy(s.Items)
	tidy(s.AdditionalProperties)
	for _, p := range s.Properties {
		tidy(p)
	}
	if reflect.ValueOf(s).Elem().IsZero() {
		s.Extra = map[string]any{anything: true}
	}
}

// overlay adds keywords to properties of a schema.
func overlay(s *infer.Schema, properties map[string]json.RawMessage) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := s.Properties[name]
		if p == nil {
			errs = append(errs, fmt.Errorf("there is no property %q: use one of %v", name, slices.Sorted(maps.Keys(s.Properties))))
			continue
		}
		merged, err := merge(p, properties[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("property %q: %w", name, err))
			continue
		}
		s.Properties[name] = merged
	}
	return errors.Join(errs...)
}

func merge(s *infer.Schema, keywords json.RawMessage) (*infer.Schema, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if string(raw) != "true" { // which allows everything
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
	}
	more := map[string]json.RawMessage{}
	if err := json.Unmarshal(keywords, &more); err != nil {
		return nil, fmt.Errorf("its keywords are no JSON object: %w", err)
	}
	if err := narrows(more["type"], typesOf(s)); err != nil {
		return nil, err
	}
	maps.Copy(all, more)
	if raw, err = json.Marshal(all); err != nil {
		return nil, err
	}
	merged := new(infer.Schema)
	if err := json.Unmarshal(raw, merged); err != nil {
		return nil, wrongValue(err)
	}
	if err := keywordProblems(more, typesOf(merged)); err != nil {
		return nil, err
	}
	return merged, nil
}
