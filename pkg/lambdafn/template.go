package lambdafn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/template"
)

// ErrInvalidTemplate says that an input template cannot be used as it is written.
var ErrInvalidTemplate = errors.New("invalid event template")

// Template makes the start of a session out of an event. It is safe for concurrent use.
type Template struct {
	agent, input, session *template.Template
}

// ParseTemplate reads an input template: a JSON object of the texts "agent",
// "input" and, if the session's id is to be chosen, "session". Each is a Go
// text/template with the event as its data:
//
//	{"agent": "clerk", "input": "A file arrived: {{unescape .s3.object.key}} ({{.s3.object.size}} bytes)"}
//
// Each text is rendered for itself, after the object was read, so what stands in
// an event stays within its text. Something the event does not have, or has as
// null, is an error. Numbers are written as the event wrote them, objects and
// lists as JSON. Beside what Go has there are two functions: unescape undoes the URL escaping
// of S3's keys, json reads a text that is JSON, so that {{(json .Sns.Message).order}} is a field of it.
//
// Errors wrap [ErrInvalidTemplate].
func ParseTemplate(text string) (*Template, error) {
	var fields struct{ Agent, Input, Session string }
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf(`%w: it is no JSON object of the texts "agent", "input" and "session": %w`, ErrInvalidTemplate, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the JSON object", ErrInvalidTemplate)
	}
	var faults []error
	if fields.Input == "" {
		faults = append(faults, fmt.Errorf(`%w: "input" is missing: say what the agent is to do`, ErrInvalidTemplate))
	}
	if fields.Agent == "" && fields.Session == "" {
		faults = append(faults, fmt.Errorf(`%w: "agent" is missing: say which agent begins a new session`, ErrInvalidTemplate))
	}
	parse := func(name, text string) *template.Template {
		if text == "" {
			return nil
		}
		t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"unescape": url.QueryUnescape, "json": readJSON}).Parse(text)
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: %w", ErrInvalidTemplate, err))
		}
		return t
	}
	t := &Template{agent: parse("agent", fields.Agent), input: parse("input", fields.Input), session: parse("session", fields.Session)}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return t, nil
}

// render fills the template with an event.
func (t *Template) render(event []byte) (startEvent, error) {
	data, err := readJSON(string(event))
	if err != nil {
		return startEvent{}, err
	}
	var faults []error
	fill := func(t *template.Template) string {
		if t == nil {
			return ""
		}
		var b strings.Builder
		err := t.Execute(&b, data)
		if err == nil && strings.Contains(b.String(), nullMark) {
			err = fmt.Errorf("%s: the event has null where the template wants a value", t.Name())
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("event template: %w", err))
		}
		return b.String()
	}
	s := startEvent{Agent: fill(t.agent), Input: fill(t.input), Session: fill(t.session)}
	return s, errors.Join(faults...)
}

// The data of a template: what JSON decodes to, except that objects and lists
// print as JSON, numbers as they were written and nulls as a mark that is found.
type (
	object map[string]any
	list   []any
	null   struct{}
)

// nullMark is what a null prints. An event can hold it only to spoil its own start.
const nullMark = "\x00null\x00"

// String returns the object as JSON.
func (o object) String() string { return asJSON(o) }

// String returns the list as JSON.
func (l list) String() string { return asJSON(l) }

// String returns the mark of nulls. The receiver is a nil pointer, so that a null is false to {{if}}.
func (*null) String() string { return nullMark }

func asJSON(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func readJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: something follows the value")
	}
	return printable(value), nil
}

func printable(value any) any {
	switch v := value.(type) {
	case map[string]any:
		o := make(object, len(v))
		for name, field := range v {
			o[name] = printable(field)
		}
		return o
	case []any:
		l := make(list, len(v))
		for i, item := range v {
			l[i] = printable(item)
		}
		return l
	case nil:
		return (*null)(nil)
	default:
		return v
	}
}
