package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool/internal/jsontype"
	"github.com/adjourn/adjourn/pkg/tool/internal/shape"
)

// DefaultTimeout is how long a tool may run whose [Spec] names no timeout.
const DefaultTimeout = 5 * time.Minute

// MaxResultBytes bounds the JSON of a tool's result.
const MaxResultBytes = 16 << 20

// Spec says what a tool is and how it is to be run. Only Name is required.
type Spec[In any] struct {
	// Name as models know it: 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells the model when to call the tool, and what comes back.
	Description string
	// Effect says what the tool does to the world; zero means [SideEffect].
	Effect Effect
	// Approve says whether a person must agree before a call with this input
	// runs. A rule that panics means yes. Nil means nobody is asked.
	Approve func(In) bool
	// Show makes what a person is shown of a call beside its arguments, when an approval is
	// asked for. It only looks: it may be called more than once. If it panics, or what it
	// returns is not as a [Preview] must be, the approval is asked all the same, says that
	// the preview failed, and has a high risk. It is bounded (16 KB): long texts of a diff are cut.
	Show func(In) Preview
	// Finish tools run after all others of a reply, one after the other.
	Finish bool
	// Timeout ends the context of one run; zero means [DefaultTimeout]. A tool that
	// ignores its context and still returns a value within the runtime's grace (5 s) has
	// succeeded. One that returns its context's error, or nothing by then, has timed out;
	// of a side effect the outcome is then unknown.
	Timeout time.Duration
	// OnUnknown says what happens when nobody knows whether the side effect
	// happened; zero means [UnknownTell]. For side effects only.
	OnUnknown UnknownPolicy
	// Probe finds out whether an earlier run had its effect; [UnknownProbe] requires it.
	// If happened is true, result is the result of the call, a success. If it is false,
	// the tool runs again. With an error the outcome stays unknown, and the model is told.
	// State and events of the run that was cut off are gone, and a probe cannot set them:
	// Append, Replace and Emit are errors there.
	Probe func(ctx context.Context, c *Call, in In) (result any, happened bool, err error)
	// Expiry of the approval or of the client's result; nil waits for ever.
	Expiry *Expiry
	// Who may approve or answer; empty, without Roles, means every caller who may see the session.
	Who []string
	// Roles may approve or answer as well, any one of them.
	Roles []string
	// Need is how many different people must approve a call, and Noes how many noes end it; zero is
	// one. They are for approvals alone. Where one person decides, or objects, nobody else is asked.
	Need, Noes int
	// NotRequester keeps everybody from answering who asked for the task: who began it, or told it
	// something since.
	NotRequester bool
	// Assurance is how sure it must be who answers; zero means [AssuranceLink].
	Assurance Assurance
	// Standing lets who approves a call allow later calls as well, in the same session and for a time
	// (docs/waiting.md). Nil asks for each call. A call whose preview has a high risk is always asked for.
	Standing *Standing
	// PolicyMayAllow lets the policy of the program (ADJOURN_POLICY) allow calls that Approve would have
	// asked about, by naming the tool with auto. Otherwise auto leaves them to Approve.
	PolicyMayAllow bool
	// Properties overlays the inferred schema: its keywords are added to those of
	// the property it is named after, as in {"amount": {"minimum": 1}}.
	Properties map[string]json.RawMessage
	// Schema replaces the inferred schema. Close its objects
	// (additionalProperties: false), or input may hold what nobody validated.
	Schema json.RawMessage
}

func (s *Spec[In]) answerRule() *session.AnswerRule {
	return &session.AnswerRule{Roles: slices.Clone(s.Roles), Need: s.Need, Noes: s.Noes, NotRequester: s.NotRequester, Assurance: s.Assurance}
}

// Always is an approval rule: a person must agree to every call.
func Always[In any](In) bool { return true }

// Tool is a tool of any input and output. It is a small value: copy it. The
// zero value is no tool, and its Err says so.
type Tool struct{ d *definition }

// definition is a Spec with its types hidden.
type definition struct {
	name, description string
	effect            session.Effect
	client, finish    bool
	mayAllow          bool // of a policy
	timeout           time.Duration
	onUnknown         session.UnknownPolicy
	expiry            *Expiry
	who               []string
	rule              *session.AnswerRule // nil where Who says all
	standing          time.Duration       // 0 where no permission stands
	schema            *schema
	raw               json.RawMessage
	digest            string // of all that matters, made once
	err               error

	shape *shape.Shape // of the input
	// decode reads the arguments into the input type, and returns a pointer to it.
	decode  func(args json.RawMessage) (any, error)
	approve func(args json.RawMessage) bool
	show    func(args json.RawMessage) (Preview, error)
	run     func(ctx context.Context, c *Call, args json.RawMessage) (any, error)
	probe   func(ctx context.Context, c *Call, args json.RawMessage) (any, bool, error)
}

var errZero = errors.New("this is the zero Tool: make tools with tool.Define or tool.DefineClient")

var zero = &definition{err: errZero, raw: json.RawMessage(`{"type":"object"}`)}

func (t Tool) def() *definition {
	if t.d == nil {
		return zero
	}
	return t.d
}

// Define makes a tool of a function. It never panics: every mistake of the spec
// is kept and told by [Tool.Err].
func Define[In, Out any](spec Spec[In], fn func(ctx context.Context, c *Call, in In) (Out, error)) Tool {
	d := define(spec, false)
	if fn == nil {
		d.err = errors.Join(d.err, &SpecError{Tool: spec.Name, Field: "fn", Problem: "the function is nil"})
	}
	for _, problem := range jsontype.Output(reflect.TypeFor[Out]()) {
		d.err = errors.Join(d.err, &SpecError{Tool: spec.Name, Field: "Out", Problem: problem.Error()})
	}
	d.run = func(ctx context.Context, c *Call, args json.RawMessage) (any, error) {
		in, err := decode[In](args)
		if err != nil {
			return nil, err
		}
		return fn(ctx, c, in)
	}
	return Tool{d}
}

// DefineClient makes a tool that runs in the client: a call of it suspends the
// session until the client brings the result. It never panics either.
func DefineClient[In any](spec Spec[In]) Tool {
	return Tool{define(spec, true)}
}

func define[In any](spec Spec[In], client bool) *definition {
	d := &definition{
		name: spec.Name, description: spec.Description, effect: spec.Effect, client: client, finish: spec.Finish,
		timeout: spec.Timeout, onUnknown: spec.OnUnknown, expiry: spec.Expiry.clone(), who: slices.Clone(spec.Who), mayAllow: spec.PolicyMayAllow,
		shape: shape.Of(reflect.TypeFor[In]()),
		decode: func(args json.RawMessage) (any, error) {
			in := new(In)
			return in, decodeInto(args, in)
		},
	}
	if rule := spec.answerRule(); !rule.IsZero() {
		d.rule = rule
	}
	if spec.Standing != nil {
		d.standing = cmp.Or(spec.Standing.MaxAge, session.MaxStanding)
	}
	if d.effect == "" {
		d.effect = session.SideEffect
	}
	if d.timeout == 0 {
		d.timeout = DefaultTimeout
	}
	if d.onUnknown == "" {
		d.onUnknown = session.UnknownTell
	}
	if spec.Approve != nil {
		d.approve = func(args json.RawMessage) bool {
			in, err := decode[In](args)
			return err != nil || spec.Approve(in)
		}
	}
	if spec.Show != nil {
		d.show = func(args json.RawMessage) (Preview, error) {
			in, err := decode[In](args)
			if err != nil {
				return Preview{}, err
			}
			return spec.Show(in), nil
		}
	}
	if spec.Probe != nil {
		d.probe = func(ctx context.Context, c *Call, args json.RawMessage) (any, bool, error) {
			in, err := decode[In](args)
			if err != nil {
				return nil, false, err
			}
			return spec.Probe(ctx, c, in)
		}
	}
	var err error
	d.schema, d.raw, err = specSchema[In](spec.Name, spec.Schema, spec.Properties)
	d.err = errors.Join(check(spec, client), err)
	d.digest = d.makeDigest()
	return d
}

// Err returns every mistake of the definition, joined, or nil. Each is a
// [*SpecError].
func (t Tool) Err() error { return t.def().err }

// Name returns the name models know the tool by.
func (t Tool) Name() string { return t.def().name }

// Description returns what models are told about the tool.
func (t Tool) Description() string { return t.def().description }

// Effect returns what the tool does to the world, never empty.
func (t Tool) Effect() Effect {
	if e := t.def().effect; e != "" {
		return e
	}
	return session.SideEffect
}

// Client reports whether the tool runs in the client.
func (t Tool) Client() bool { return t.def().client }

// Finish reports whether the tool runs after all others of a reply.
func (t Tool) Finish() bool { return t.def().finish }

// Timeout returns how long one run may take, never zero for a defined tool.
func (t Tool) Timeout() time.Duration { return t.def().timeout }

// OnUnknown returns what happens when the outcome of a side effect is not known.
func (t Tool) OnUnknown() UnknownPolicy { return t.def().onUnknown }

// Schema returns the JSON Schema of the arguments, an object at its top.
func (t Tool) Schema() json.RawMessage { return slices.Clone(t.def().raw) }

// Expiry returns the deadline of the approval or of the client's result; nil
// waits for ever.
func (t Tool) Expiry() *Expiry { return t.def().expiry.clone() }

// Who returns who may approve or answer, by name; empty, without roles in the rule, means everyone
// who sees the session.
func (t Tool) Who() []string { return slices.Clone(t.def().who) }

// Rule returns who else may answer, and how many must; nil where Who says all.
func (t Tool) Rule() *session.AnswerRule {
	rule := t.def().rule
	if rule == nil {
		return nil
	}
	own := *rule
	own.Roles = slices.Clone(rule.Roles)
	return &own
}

// Standing returns how long a standing permission for calls of the tool lasts at most; 0 where there
// can be none.
func (t Tool) Standing() time.Duration { return t.def().standing }

// HasApproval reports whether the tool has an approval rule.
func (t Tool) HasApproval() bool { return t.def().approve != nil }

// PolicyMayAllow reports whether the policy of the program may let calls run that the approval rule asks about.
func (t Tool) PolicyMayAllow() bool { return t.def().mayAllow }

// Spec returns what the model is told about the tool.
func (t Tool) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: t.Name(), Description: t.Description(), Schema: t.Schema()}
}

// Digest identifies the definition: it changes with everything that matters for
// the promise that what was approved is what runs, and with nothing else.
func (t Tool) Digest() string {
	d := t.def()
	if d.digest == "" {
		return d.makeDigest()
	}
	return d.digest
}

func (d *definition) makeDigest() string {
	raw, err := json.Marshal(struct {
		Name, Description        string
		Schema                   json.RawMessage
		Effect                   session.Effect
		Approval, Client, Finish bool
		Timeout                  time.Duration
		OnUnknown                session.UnknownPolicy
		Who                      []string
		Rule                     *session.AnswerRule `json:",omitempty"`
		Standing                 time.Duration       `json:",omitempty"`
		Escalate                 *session.Escalation `json:",omitempty"`
		PolicyMayAllow           bool                `json:",omitempty"`
	}{d.name, d.description, d.raw, d.effect, d.approve != nil, d.client, d.finish, d.timeout, d.onUnknown, d.who, d.rule, d.standing, d.expiry.escalate(), d.mayAllow})
	if err != nil {
		// A schema that is no JSON: the definition has told its mistake already.
		raw = []byte(d.name + "\x00" + string(d.raw))
	}
	return journal.Digest(raw)
}
