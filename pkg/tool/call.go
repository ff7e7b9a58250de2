package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

const (
	// MaxValueBytes bounds the JSON of one state value, event or Once result.
	MaxValueBytes = 1 << 20
	// MaxChangesBytes bounds what one call may add to state and events together:
	// it is written in the entry of the step.
	MaxChangesBytes = 4 << 20
	// MaxKeyBytes bounds the keys of state and Once, the names of events and the
	// ids of questions. All of them are UTF-8.
	MaxKeyBytes = 256
)

// errProbing refuses changes in a probe: they would be dropped.
var errProbing = errors.New("a Probe cannot change state or send events: it only looks, and returns what it found")

// ErrCallOver says that the call has ended: its changes are taken and nothing can be added.
var ErrCallOver = errors.New("the call is over")

// Call is one call of a tool: who it is and what it may do while it runs. It is
// safe for concurrent use by the goroutines of the tool. The runtime makes it; package
// tooltest does in tests.
type Call struct {
	cfg  config
	base *session.State

	logging sync.Once
	log     *slog.Logger

	mu        sync.Mutex
	over      bool
	probing   bool
	size      int
	ops       []session.StateOp
	events    []session.CustomEvent
	questions []Question
	replied   map[string]*session.Question // those whose answers this run got, by id
	memo      map[string]json.RawMessage
	running   map[string]chan struct{} // Once by key; held while its function runs
}

// config is what a [Call] is made of.
type config = toolcall.Config[Files]

// taken is what a call leaves behind.
type taken = toolcall.Taken[Question]

var _ = toolcall.Provide(toolcall.Functions[Call, Files, Question, Expiry]{
	New: newCall, Take: (*Call).take, Shown: Question.shown, CheckExpiry: (*Expiry).check,
})

// newCall returns the call a tool is run with.
func newCall(cfg config) *Call {
	c := &Call{cfg: cfg, base: cfg.State, memo: maps.Clone(cfg.Memo), running: map[string]chan struct{}{}}
	if c.base == nil {
		c.base = new(session.State)
	}
	if c.memo == nil {
		c.memo = map[string]json.RawMessage{}
	}
	return c
}

// ID returns the id of the call, the same on every run.
func (c *Call) ID() string { return c.cfg.ID }

// Session returns the session the call belongs to.
func (c *Call) Session() session.Key { return c.cfg.Session }

// Task returns the number of the task the call belongs to.
func (c *Call) Task() int64 { return c.cfg.Task }

// Name returns the name of the tool.
func (c *Call) Name() string { return c.cfg.Name }

// IdempotencyKey returns the key of this call, to be handed to the service the tool
// calls. It is tenant.session.call, the same on every run, and within one data file or
// table that of no other call (the id of a deleted session is not used again there). A
// session of the same id in another data file or stack, in one that was begun anew or
// set back to an earlier time, has the same keys: the service should compare what it is
// asked for (amount, customer) with what it did under the key, as good payment providers do.
func (c *Call) IdempotencyKey() string { return c.cfg.IdempotencyKey }

// Log returns the logger of the call, never nil. Its lines name session, call and tool.
func (c *Call) Log() *slog.Logger {
	c.logging.Do(func() { // few tools write lines
		if c.cfg.Log == nil {
			c.log = slog.New(slog.DiscardHandler)
			return
		}
		c.log = c.cfg.Log.With("session", c.cfg.Session.String(), "call", c.cfg.ID, "tool", c.cfg.Name)
	})
	return c.log
}

// Append adds a value to the list under a key of the session's state. Appends of
// the calls of one step compose in the order of the calls.
func (c *Call) Append(key string, value any) error {
	return c.change(session.StateAppend, key, value)
}

// Replace sets a key of the session's state. Of the calls of one step the last
// one in their order wins.
func (c *Call) Replace(key string, value any) error {
	return c.change(session.StateReplace, key, value)
}

func (c *Call) change(op session.StateOpKind, key string, value any) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("%s state: key %w", op, err)
	}
	raw, err := marshalValue(value)
	if err != nil {
		return fmt.Errorf("%s state %q: %w", op, key, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.grow(len(key) + len(raw)); err != nil {
		return fmt.Errorf("%s state %q: %w", op, key, err)
	}
	c.ops = append(c.ops, session.StateOp{Op: op, Key: key, Value: raw})
	return nil
}

// Emit sends an event to whoever watches the session. It is part of the step's
// entry: what a run emits that does not count is never seen.
func (c *Call) Emit(name string, data any) error {
	if err := checkKey(name); err != nil {
		return fmt.Errorf("emit: name %w", err)
	}
	raw, err := marshalValue(data)
	if err != nil {
		return fmt.Errorf("emit %q: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.grow(len(name) + len(raw)); err != nil {
		return fmt.Errorf("emit %q: %w", name, err)
	}
	c.events = append(c.events, session.CustomEvent{Call: c.cfg.ID, Name: name, Data: raw})
	return nil
}

// grow counts n more bytes. The lock is held.
func (c *Call) grow(n int) error {
	if c.over {
		return ErrCallOver
	}
	if c.probing {
		return errProbing
	}
	if c.size+n > MaxChangesBytes {
		return fmt.Errorf("this call would add more than %d bytes to state and events", MaxChangesBytes)
	}
	c.size += n
	return nil
}

// State reads a key of the session's state as T: as it was when the step began,
// with the call's own changes. A key that is not set is the zero T, false and no error.
func State[T any](c *Call, key string) (T, bool, error) {
	var value T
	raw, ok, err := c.state(key)
	if err != nil || !ok {
		return value, false, err
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		var zero T
		return zero, true, fmt.Errorf("state %q: %w", key, err)
	}
	return value, true, nil
}

func (c *Call) state(key string) (json.RawMessage, bool, error) {
	c.mu.Lock()
	var ops []session.StateOp
	for _, op := range c.ops {
		if op.Key == key {
			ops = append(ops, op)
		}
	}
	c.mu.Unlock()
	raw, ok := c.base.Get(key)
	if len(ops) == 0 {
		return raw, ok, nil
	}
	var own session.State
	if ok {
		ops = append([]session.StateOp{{Op: session.StateReplace, Key: key, Value: raw}}, ops...)
	}
	for _, op := range ops {
		if err := own.Apply(op); err != nil {
			return nil, false, err
		}
	}
	raw, ok = own.Get(key)
	return raw, ok, nil
}

// take ends the call and returns what it leaves behind. From then on a
// goroutine the tool left running changes nothing: it gets [ErrCallOver].
func (c *Call) take() taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return taken{StateOps: slices.Clone(c.ops), Events: slices.Clone(c.events), Questions: slices.Clone(c.questions)}
}

// probe marks the call as one that is looked for, until the function it returns is called.
func (c *Call) probe() (end func()) {
	if c == nil {
		return func() {}
	}
	set := func(probing bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.probing = probing
	}
	set(true)
	return func() { set(false) }
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("is empty")
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("has %d bytes: at most %d are allowed", len(key), MaxKeyBytes)
	}
	return checkText(key)
}

// checkText refuses a name that the journal would give back as another: it would never
// be found again.
func checkText(name string) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("%q is not UTF-8: quote it (strconv.Quote), or give it a number", name)
	}
	return nil
}

func marshalValue(value any) (raw json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			raw, err = nil, fmt.Errorf("the value cannot be made JSON: %s", short(fmt.Sprint(v), 200))
		}
	}()
	raw, err = json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the value cannot be made JSON: %w", err)
	}
	if len(raw) > MaxValueBytes {
		return nil, fmt.Errorf("the value has %d bytes as JSON: at most %d are allowed", len(raw), MaxValueBytes)
	}
	if err := journal.CheckValue(raw); err != nil {
		return nil, fmt.Errorf("the value %w", err)
	}
	return raw, nil
}
