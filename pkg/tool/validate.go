package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/adjourn/adjourn/pkg/tool/internal/shape"
)

// shownProblems is how many problems the text of an [ArgumentError] spells out.
const shownProblems = 50

// ArgumentError lists everything that is wrong with the arguments of a call. Its
// text is written for the model, to repair the call with.
type ArgumentError struct {
	Tool     string
	Problems []Problem
}

// Problem is one thing that is wrong with the arguments of a call.
type Problem struct {
	// At is the JSON pointer of the value: "" is the arguments as a whole. Of a missing
	// property it is the pointer it would have, of an unknown one that of its value.
	At string
	// Message says what is there and what was expected.
	Message string
}

// Error names every problem with its place, the first fifty spelled out.
func (e *ArgumentError) Error() string {
	return "The arguments of " + e.Tool + " are not valid. Correct them and call it again:" + e.List()
}

// List returns every problem in a line of its own, for a text other than Error's:
// one that a person reads.
func (e *ArgumentError) List() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "\n- and %d more problems", len(e.Problems)-i)
			break
		}
		at := p.At
		if at == "" {
			at = "arguments"
		}
		fmt.Fprintf(&b, "\n- %s: %s", at, p.Message)
	}
	return b.String()
}

// Validate checks the arguments of a call as [Tool.Effective] does, and returns its error.
func (t Tool) Validate(args json.RawMessage) error {
	_, err := t.Effective(args)
	return err
}

// Effective checks the arguments of a call against the schema and the input type, and returns them
// as the tool's function gets them: with the defaults of the schema, without what the input type
// has no field for, and a null that it cannot keep as what it is read as. Nothing else of them is
// changed; where nothing is, args come back as they are. The error is an [*ArgumentError] with every
// problem: also what Go would read as another value than it is written, such as a number that
// float64 cannot hold. No arguments are an empty object.
//
// What runs in the client is read there: of its arguments only the defaults are filled in.
func (t Tool) Effective(args json.RawMessage) (json.RawMessage, error) {
	d := t.def()
	if d.schema == nil {
		return nil, &ArgumentError{Tool: d.name, Problems: []Problem{{Message: "the tool's definition has mistakes: " + fmt.Sprint(d.err)}}}
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage(`{}`)
	}
	effective, changed, problems := d.effective(args)
	if changed && len(problems) == 0 {
		var again json.RawMessage
		if again, _, problems = d.effective(effective); len(problems) == 0 && !bytes.Equal(again, effective) {
			problems = []Problem{{Message: "the tool would get other arguments than those that are shown"}}
		}
	}
	if len(problems) > 0 {
		return nil, &ArgumentError{Tool: d.name, Problems: problems}
	}
	return effective, nil
}

// surrogate is how JSON writes one half of a character outside the basic plane. Half a pair alone
// is read as another character.
var surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

func (d *definition) effective(args json.RawMessage) (effective json.RawMessage, changed bool, problems []Problem) {
	if !utf8.Valid(args) {
		return nil, false, []Problem{{Message: "this is not text in UTF-8"}}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return nil, false, []Problem{{Message: "this is not valid JSON: " + err.Error()}}
	}
	if text, ok := doc.(string); ok {
		return nil, false, []Problem{{Message: fmt.Sprintf("expected a JSON object, got the text %s", quote(text))}}
	}
	if problems := scan(args); len(problems) > 0 {
		return nil, false, problems // what is ambiguous is not judged further
	}
	changed = surrogate.Match(args)
	if d.schema.defaults {
		filled, err := shape.Fill(d.schema.doc, doc)
		if err != nil {
			return nil, false, []Problem{{Message: err.Error()}}
		}
		changed = changed || filled
	}
	if changed {
		if args, err = json.Marshal(doc); err != nil {
			return nil, false, []Problem{{Message: err.Error()}}
		}
	}
	in, problems := d.check(doc, args)
	if len(problems) > 0 || d.client {
		return args, changed, problems
	}
	read, other, differences := d.shape.Effective(doc, reflect.ValueOf(in))
	if problems = placed(differences); other && len(problems) == 0 {
		changed = true
		if args, err = json.Marshal(read); err != nil {
			problems = []Problem{{Message: err.Error()}}
		}
	}
	return args, changed, problems
}

// placed returns problems with their places as pointers.
func placed(found []shape.Problem) []Problem {
	var problems []Problem
	for _, p := range found {
		problems = append(problems, Problem{At: pointer(p.At), Message: p.Message})
	}
	return problems
}

// check holds arguments, also as decoded JSON, against the schema and reads them.
func (d *definition) check(doc any, args json.RawMessage) (in any, problems []Problem) {
	sorted := func() []Problem {
		slices.SortStableFunc(problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Message, b.Message))
		})
		return slices.Compact(problems)
	}
	if err := d.schema.compiled.Validate(doc); err != nil {
		var invalid *jsonschema.ValidationError
		if !errors.As(err, &invalid) {
			return nil, []Problem{{Message: err.Error()}}
		}
		d.schema.collect(invalid, &problems)
		return nil, sorted()
	}
	if problems = placed(d.shape.Misspelled(doc)); len(problems) > 0 {
		return nil, sorted()
	}
	in, err := d.tryDecode(args)
	if err != nil {
		return nil, []Problem{decodeProblem(err)}
	}
	return in, nil
}

// tryDecode guards against input types whose UnmarshalJSON panics.
func (d *definition) tryDecode(args json.RawMessage) (in any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the value cannot be read: %s", short(fmt.Sprint(v), 200))
		}
	}()
	return d.decode(args)
}

func decodeProblem(err error) Problem {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return Problem{Message: err.Error()}
	}
	at := ""
	if typed.Field != "" {
		at = "/" + strings.ReplaceAll(typed.Field, ".", "/")
	}
	if strings.HasPrefix(typed.Value, "number") && strings.Contains(typed.Type.Kind().String(), "int") {
		return Problem{At: at, Message: fmt.Sprintf("expected a whole number that fits %s, without fraction or exponent, got %s", typed.Type.Kind(), typed.Value)}
	}
	return Problem{At: at, Message: fmt.Sprintf("expected %s, got %s", typed.Type.Kind(), typed.Value)}
}

// collect turns the validator's tree into a list.
func (s *schema) collect(e *jsonschema.ValidationError, out *[]Problem) {
	add := func(at []string, format string, args ...any) {
		*out = append(*out, Problem{At: pointer(at), Message: fmt.Sprintf(format, args...)})
	}
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		add(at, "expected %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		for _, name := range k.Missing {
			add(append(slices.Clone(at), name), "missing, but required%s", s.expected(e.SchemaURL, name))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(append(slices.Clone(at), name), "unknown property%s", s.known(e.SchemaURL))
		}
	case *kind.Enum:
		add(at, "expected one of %s, got %s", list(k.Want), value(k.Got))
	case *kind.Const:
		add(at, "expected %s, got %s", value(k.Want), value(k.Got))
	case *kind.Format:
		add(at, "expected the format %s, got %s%s", k.Want, value(k.Got), formatHint(k.Want))
	case *kind.Pattern:
		add(at, "expected text that matches %s, got %s", k.Want, quote(k.Got))
	case *kind.FalseSchema:
		add(at, "must not be here")
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) == 0 {
			add(at, "fits more than one of the allowed forms: %s", s.words(e))
			return
		}
		add(at, "fits none of the allowed forms: %s", s.alternatives(e.Causes))
	default:
		if len(e.Causes) == 0 {
			add(at, "%s", s.words(e))
			return
		}
		for _, cause := range e.Causes {
			s.collect(cause, out)
		}
	}
}

// words is what the validator says of one error.
func (s *schema) words(e *jsonschema.ValidationError) string {
	unit := (&jsonschema.ValidationError{SchemaURL: e.SchemaURL, InstanceLocation: e.InstanceLocation, ErrorKind: e.ErrorKind}).BasicOutput()
	if unit.Error == nil {
		return "not valid"
	}
	return short(unit.Error.String(), 300)
}

func (s *schema) alternatives(causes []*jsonschema.ValidationError) string {
	forms := make([]string, 0, len(causes))
	for i, cause := range causes {
		var problems []Problem
		s.collect(cause, &problems)
		parts := make([]string, 0, len(problems))
		for _, p := range problems {
			parts = append(parts, strings.TrimPrefix(p.At+": "+p.Message, ": "))
		}
		forms = append(forms, fmt.Sprintf("(%d) %s", i+1, strings.Join(parts, ", ")))
	}
	return short(strings.Join(forms, "; "), 1000)
}

// at returns the part of the schema an error's URL points to.
func (s *schema) at(url string) map[string]any {
	_, fragment, _ := strings.Cut(url, "#")
	object, _ := shape.At(s.doc, fragment).(map[string]any)
	return object
}

func (s *schema) properties(url string) map[string]any {
	properties, _ := s.at(url)["properties"].(map[string]any)
	return properties
}

// expected describes a property that is missing.
func (s *schema) expected(url, name string) string {
	property, _ := s.properties(url)[name].(map[string]any)
	var parts []string
	switch v := property["type"].(type) {
	case string:
		parts = append(parts, v)
	case []any:
		types := make([]string, 0, len(v))
		for _, name := range v {
			types = append(types, fmt.Sprint(name))
		}
		parts = append(parts, strings.Join(types, " or "))
	}
	if enum, ok := property["enum"].([]any); ok {
		parts = append(parts, "one of "+list(enum))
	}
	if text, ok := property["description"].(string); ok {
		parts = append(parts, "("+short(text, 200)+")")
	}
	if len(parts) == 0 {
		return ""
	}
	return ": expected " + strings.Join(parts, " ")
}

// known lists the properties there are.
func (s *schema) known(url string) string {
	properties := s.properties(url)
	if len(properties) == 0 {
		return ": no properties are expected"
	}
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return ": expected only " + short(strings.Join(names, ", "), 500)
}

func formatHint(format string) string {
	if format == "date-time" {
		return " (like 2026-01-31T09:30:00Z)"
	}
	return ""
}

func pointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(short(strings.NewReplacer("~", "~0", "/", "~1").Replace(token), 200))
	}
	return b.String()
}

func quote(text string) string { return strconv.Quote(short(text, 80)) }

func value(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	return short(string(raw), 80)
}

func list(values []any) string {
	parts := make([]string, 0, len(values))
	for _, v := range values {
		parts = append(parts, value(v))
	}
	return short(strings.Join(parts, ", "), 500)
}
