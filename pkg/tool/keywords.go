package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	infer "github.com/google/jsonschema-go/jsonschema"
)

// schemaKeywords are those of JSON Schema 2020-12, each with the types it says something
// about; none means all.
var schemaKeywords = map[string][]string{
	"$ref": nil, "$defs": nil, "$anchor": nil, "$comment": nil, "$dynamicAnchor": nil, "$dynamicRef": nil, "$id": nil, "$schema": nil, "$vocabulary": nil,
	"type": nil, "enum": nil, "const": nil, "title": nil, "description": nil, "default": nil, "deprecated": nil, "examples": nil, "readOnly": nil, "writeOnly": nil,
	"allOf": nil, "anyOf": nil, "oneOf": nil, "not": nil, "if": nil, "then": nil, "else": nil, "format": nil,
	"minLength": {"string"}, "maxLength": {"string"}, "pattern": {"string"}, "contentEncoding": {"string"}, "contentMediaType": {"string"}, "contentSchema": {"string"},
	"minimum": {"integer", "number"}, "maximum": {"integer", "number"}, "exclusiveMinimum": {"integer", "number"}, "exclusiveMaximum": {"integer", "number"}, "multipleOf": {"integer", "number"},
	"items": {"array"}, "prefixItems": {"array"}, "contains": {"array"}, "minContains": {"array"}, "maxContains": {"array"}, "minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"}, "unevaluatedItems": {"array"},
	"properties": {"object"}, "patternProperties": {"object"}, "additionalProperties": {"object"}, "propertyNames": {"object"}, "unevaluatedProperties": {"object"}, "required": {"object"},
	"minProperties": {"object"}, "maxProperties": {"object"}, "dependentRequired": {"object"}, "dependentSchemas": {"object"},
}

// keywordProblems says which keywords of a property say nothing: those that do not exist,
// and those for another type. A schema takes both, and nobody is held to them.
func keywordProblems(given map[string]json.RawMessage, types []string) error {
	var errs []error
	for _, word := range slices.Sorted(maps.Keys(given)) {
		fits, known := schemaKeywords[word]
		switch {
		case strings.HasPrefix(word, "x-"):
		case !known:
			errs = append(errs, fmt.Errorf("%q is no keyword of JSON Schema%s", word, like(word)))
		case fits != nil && len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return slices.Contains(fits, t) }):
			errs = append(errs, fmt.Errorf("%q is for type %s, and its type is %s", word, strings.Join(fits, " or "), strings.Join(types, " or ")))
		}
	}
	return errors.Join(errs...)
}

// like names the keyword that was meant, if one differs in a letter or two.
func like(word string) string {
	best, least := "", 3
	for _, known := range slices.Sorted(maps.Keys(schemaKeywords)) {
		if d := distance(strings.ToLower(word), strings.ToLower(known)); d < least {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance counts the letters to add, drop or change that make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// typesOf returns the types a schema allows; none means all.
func typesOf(s *infer.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// readable reports whether values of a type may be read into what Go has for these types.
func readable(word string, types []string) bool {
	return len(types) == 0 || slices.Contains(types, word) || word == "integer" && slices.Contains(types, "number")
}

// typeConflicts says where a schema that was written asks for types that Go cannot read
// into the input: every call would pass the schema, and then not be decoded.
func typeConflicts(written any, inferred *infer.Schema, at string) (errs []error) {
	object, ok := written.(map[string]any)
	if !ok || inferred == nil {
		return nil
	}
	var types []string
	switch of := object["type"].(type) {
	case string:
		types = []string{of}
	case []any:
		for _, word := range of {
			text, _ := word.(string)
			types = append(types, text)
		}
	}
	has := typesOf(inferred)
	if len(types) > 0 && !slices.ContainsFunc(types, func(word string) bool {
		return readable(word, has) || word == "number" && slices.Contains(has, "integer")
	}) {
		what := "it"
		if at != "" {
			what = fmt.Sprintf("property %q", at)
		}
		return []error{fmt.Errorf("%s has the type %s, and In has %s there: no call could be read", what, strings.Join(types, " or "), strings.Join(has, " or "))}
	}
	properties, _ := object["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		here := name
		if at != "" {
			here = at + "." + name
		}
		errs = append(errs, typeConflicts(properties[name], inferred.Properties[name], here)...)
	}
	return append(errs, typeConflicts(object["items"], inferred.Items, at+"[]")...)
}

// narrows refuses types that are none of those that Go can read.
func narrows(given json.RawMessage, types []string) error {
	var words []string
	if word := ""; json.Unmarshal(given, &word) == nil {
		words = []string{word}
	} else if json.Unmarshal(given, &words) != nil {
		return nil // it is absent, or told with the other values
	}
	for _, word := range words {
		if !readable(word, types) {
			return fmt.Errorf("its type is %s in Go, and %q cannot be read into that", strings.Join(types, " or "), word)
		}
	}
	return nil
}

// wrongValue says of the value of a keyword what it must be.
func wrongValue(err error) error {
	wrong := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	must := "another type"
	switch wrong.Type.Kind() {
	case reflect.Float64, reflect.Float32:
		must = "a number"
	case reflect.Int, reflect.Int64, reflect.Int32:
		must = "a whole number"
	case reflect.String:
		must = "a text"
	case reflect.Bool:
		must = "true or false"
	case reflect.Slice:
		must = "a list"
	case reflect.Map, reflect.Struct:
		must = "an object"
	default:
	}
	return fmt.Errorf("%q must be %s, not a %s", wrong.Field[strings.LastIndex(wrong.Field, ".")+1:], must, wrong.Value)
}
