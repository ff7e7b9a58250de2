package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/adjourn/adjourn/pkg/session/journal"
)

// PanicError is a tool that panicked.
type PanicError struct {
	Tool string
	// Value is what it panicked with.
	Value any
	// Stack of the goroutine, for logs; it is not part of the message.
	Stack []byte
	// of says that it was not the tool's function but another one of its definition.
	of string
}

// Error says which tool panicked with what, in one short line without the stack.
func (e *PanicError) Error() string {
	what := "tool " + e.Tool
	if e.of != "" {
		what = e.of + " of " + what
	}
	return fmt.Sprintf("%s panicked: %s", what, short(fmt.Sprint(e.Value), 500))
}

// Unwrap returns the value the tool panicked with, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Run decodes the arguments, calls the tool's function and returns its result
// as JSON. A panic is a [*PanicError]; an error of the function comes back as
// it is. Validate the arguments first: Run only decodes them.
func (t Tool) Run(ctx context.Context, c *Call, args json.RawMessage) (result json.RawMessage, err error) {
	d := t.def()
	switch {
	case d.client:
		return nil, fmt.Errorf("run tool %s: it runs in the client", d.name)
	case d.run == nil:
		return nil, fmt.Errorf("run tool %q: %w", d.name, d.err)
	}
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, &PanicError{Tool: d.name, Value: v, Stack: debug.Stack()}
		}
	}()
	out, err := d.run(ctx, c, args)
	if err != nil {
		return nil, err
	}
	return marshal(d.name, out)
}

// Probe asks the tool whether an earlier run of the call had its effect, and
// what its result was. It is an error for a tool without a probe; a panic is a
// [*PanicError].
func (t Tool) Probe(ctx context.Context, c *Call, args json.RawMessage) (result json.RawMessage, happened bool, err error) {
	d := t.def()
	if d.probe == nil {
		return nil, false, fmt.Errorf("probe tool %q: it has no probe", d.name)
	}
	defer func() {
		if v := recover(); v != nil {
			result, happened, err = nil, false, &PanicError{Tool: d.name, Value: v, Stack: debug.Stack(), of: "the probe"}
		}
	}()
	defer c.probe()()
	out, happened, err := d.probe(ctx, c, args)
	if err != nil || !happened {
		return nil, false, err
	}
	result, err = marshal(d.name, out)
	return result, err == nil, err
}

// NeedsApproval reports whether a person must agree before a call with these
// arguments runs. It fails closed: a rule that panics, or arguments that cannot
// be decoded, mean yes. Without a rule nobody is asked.
func (t Tool) NeedsApproval(args json.RawMessage) (needed bool) {
	approve := t.def().approve
	if approve == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			needed = true
		}
	}()
	return approve(args)
}

// Preview returns what the tool shows people of a call with these arguments; shows is false for
// a tool without Show. A panic is a [*PanicError].
func (t Tool) Preview(args json.RawMessage) (p Preview, shows bool, err error) {
	d := t.def()
	if d.show == nil {
		return Preview{}, false, nil
	}
	defer func() {
		if v := recover(); v != nil {
			p, shows, err = Preview{}, true, &PanicError{Tool: d.name, Value: v, Stack: debug.Stack(), of: "Show"}
		}
	}()
	p, err = d.show(args)
	return p, true, err
}

// marshal is the result of a tool as JSON.
func marshal(name string, out any) (json.RawMessage, error) {
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("tool %s ran, but its result is not JSON: %w", name, err)
	}
	if len(raw) > MaxResultBytes {
		return nil, fmt.Errorf("tool %s ran, but its result has %d bytes: at most %d are kept", name, len(raw), MaxResultBytes)
	}
	if err := journal.CheckValue(raw); err != nil {
		return nil, fmt.Errorf("tool %s ran, but its result %w", name, err)
	}
	return raw, nil
}

// decode reads arguments into the input type. No arguments are an empty object.
func decode[In any](args json.RawMessage) (In, error) {
	var in In
	err := decodeInto(args, &in)
	return in, err
}

func decodeInto(args json.RawMessage, in any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage(`{}`)
	}
	if err := json.Unmarshal(args, in); err != nil {
		return fmt.Errorf("decode arguments: %w", err)
	}
	return nil
}

// short cuts text for a message: to valid UTF-8 of at most n bytes.
func short(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
