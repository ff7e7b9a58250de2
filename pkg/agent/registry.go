package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// ModelVariable names the model of every agent that has no Planner, over what
// the agents' definitions say.
const ModelVariable = "ADJOURN_MODEL"

// TrialVariable is the setting with which a server and a deployed bundle offer
// agents marked as Trial: "true".
const TrialVariable = "ADJOURN_LAB"

// ErrUnknownAgent says that the registry has no agent of that name.
var ErrUnknownAgent = errors.New("unknown agent")

// UnknownAgentError wraps [ErrUnknownAgent] and lists the agents there are.
type UnknownAgentError struct {
	Name  string
	Known []string
}

// Error says which agent was asked for and which there are.
func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("%s %q: there are %s", ErrUnknownAgent, e.Name, strings.Join(e.Known, ", "))
}

// Unwrap returns [ErrUnknownAgent].
func (e *UnknownAgentError) Unwrap() error { return ErrUnknownAgent }

// ErrNotOffered says that the registry has the agent and does not offer it.
var ErrNotOffered = errors.New("agent not offered")

// NotOfferedError wraps [ErrNotOffered] and says how to ask for the agent.
type NotOfferedError struct{ Name string }

// Error says which agent is not offered, and how it is asked for.
func (e *NotOfferedError) Error() string {
	return fmt.Sprintf("agent %q is there to try things out and is not offered here, because whoever may start it can do what its tools do. "+
		"To offer it: adjourn dev --lab, the stack parameter Lab=true, or %s=true", e.Name, TrialVariable)
}

// Unwrap returns [ErrNotOffered].
func (e *NotOfferedError) Unwrap() error { return ErrNotOffered }

// ModelError is a model that cannot be asked: no provider of its prefix, or it
// does not open.
type ModelError struct {
	Agent string
	// Model as it was named.
	Model string
	// Problem says what is wrong and what to do, naming the variable if one is at fault.
	Problem string
	// Cause is what the provider's Open said, if it was asked.
	Cause error
}

// Error says agent, model and problem.
func (e *ModelError) Error() string {
	text := fmt.Sprintf("agent %s: model %q: %s", e.Agent, e.Model, e.Problem)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Cause }

// Env looks up a setting, "" if it is not set. Agents read no environment: app hands it in.
type Env func(key string) string

// get is Env for which nil is an empty environment.
func (e Env) get(key string) string {
	if e == nil {
		return ""
	}
	return e(key)
}

// Open opens a model of a provider by its name, without the prefix. It is called once
// for each model: when a task starts in a program that also works on it, otherwise when
// the first reply is planned. Settings such as keys come from env, and an error names
// those that are missing.
type Open func(ctx context.Context, name string, env func(string) string) (llm.Model, error)

// Models says by prefix how models are opened: "openai" opens "openai:gpt-5".
type Models map[string]Open

// Config is everything a registry is made of.
type Config struct {
	Models Models
	Agents []Agent
}

// Registry holds the agents of a program. It is safe for concurrent use.
type Registry struct {
	models Models
	agents map[string]Agent
	// withheld are agents that are there and not offered.
	withheld map[string]bool

	mu   sync.Mutex
	open map[string]*opened
}

// opened is a model that was opened, or is being opened by who holds the turn.
type opened struct {
	turn  chan struct{} // capacity 1
	model llm.Model
}

// NewRegistry checks every definition and returns the registry, or every mistake
// of every definition, joined. Each is a [*DefinitionError].
func NewRegistry(cfg Config) (*Registry, error) {
	if err := checkConfig(cfg); err != nil {
		return nil, err
	}
	r := &Registry{models: maps.Clone(cfg.Models), agents: map[string]Agent{}, open: map[string]*opened{}}
	for _, a := range cfg.Agents {
		a.Tools = slices.Clone(a.Tools)
		if a.Output != nil {
			a.Tools = append(a.Tools, finishTool(a.Output.schema))
		}
		slices.SortFunc(a.Tools, func(a, b tool.Tool) int { return cmp.Compare(a.Name(), b.Name()) })
		r.agents[a.Name] = a
	}
	return r, nil
}

// Offered returns a registry of the agents that are for everybody, where trial is
// false: those marked as Trial are withheld.
func (r *Registry) Offered(trial bool) *Registry {
	offered := &Registry{models: r.models, agents: map[string]Agent{}, withheld: map[string]bool{}, open: map[string]*opened{}}
	for name, a := range r.agents {
		if a.Trial && !trial {
			offered.withheld[name] = true
			continue
		}
		offered.agents[name] = a
	}
	return offered
}

// AllWithheld returns the names of the agents that are there and not offered, sorted.
func (r *Registry) AllWithheld() []string { return slices.Sorted(maps.Keys(r.withheld)) }

// Withheld reports whether there is an agent of that name that is not offered.
func (r *Registry) Withheld(name string) bool { return r.withheld[name] }

// Agent returns an agent by name, with its tools sorted and [FinishTool] among
// them if it has an output.
func (r *Registry) Agent(name string) (Agent, bool) {
	a, ok := r.agents[name]
	a.Tools = slices.Clone(a.Tools)
	return a, ok
}

// Names returns the names of all agents, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.agents)) }

// Tool returns a tool of an agent, [FinishTool] included.
func (r *Registry) Tool(agent, name string) (tool.Tool, bool) {
	for _, t := range r.agents[agent].Tools {
		if t.Name() == name {
			return t, true
		}
	}
	return tool.Tool{}, false
}

// Rules returns what a task of the agent that starts now is held to. Errors are
// an [*UnknownAgentError], a [*NotOfferedError], or a [*ModelError] if env names a
// model of no provider.
func (r *Registry) Rules(name string, env Env) (session.Rules, error) {
	a, ok := r.agents[name]
	if !ok {
		return session.Rules{}, r.missing(name)
	}
	model := a.effectiveModel(env)
	if model != "" {
		if _, _, err := r.provider(a.Name, model, model == env.get(ModelVariable)); err != nil {
			return session.Rules{}, err
		}
	}
	rules := session.Rules{
		Agent: name, Model: model, Limits: a.Limits.Or(session.DefaultLimits()), SessionLimits: a.SessionLimits, Policy: a.Policy,
		Retention: a.Retention,
	}
	// Depth and Children bound new sub-agents of one task.
	rules.SessionLimits.Depth, rules.SessionLimits.Children = 0, 0
	rules.Needs = needs(rules)
	for _, t := range a.Tools {
		rules.Tools = append(rules.Tools, t.Name())
	}
	var err error
	rules.Digest, err = digest(a, rules)
	return rules, err
}

// missing says why there is no agent of that name.
func (r *Registry) missing(name string) error {
	if r.withheld[name] {
		return &NotOfferedError{Name: name}
	}
	return &UnknownAgentError{Name: name, Known: r.Names()}
}

func (a Agent) effectiveModel(env Env) string {
	if a.Planner != nil {
		return ""
	}
	return cmp.Or(env.get(ModelVariable), a.Model)
}

// digest identifies what a task is held to.
func digest(a Agent, rules session.Rules) (string, error) {
	var planner string
	switch {
	case a.Planner != nil:
		planner = "planner"
	case rules.Model == "":
		planner = "offline"
	}
	tools := make([]string, 0, len(a.Tools))
	for _, t := range a.Tools {
		tools = append(tools, t.Digest())
	}
	raw, err := json.Marshal(struct {
		Name, System, Model, Planner string
		Tools                        []string
		Output                       json.RawMessage
		Policy                       session.Policy
		Limits                       session.Limits
		SessionLimits                session.Limits `json:",omitzero"`
	}{a.Name, a.System, rules.Model, planner, tools, a.Output.Schema(), rules.Policy, rules.Limits, rules.SessionLimits})
	if err != nil {
		return "", fmt.Errorf("digest of agent %s: %w", a.Name, err)
	}
	return journal.Digest(raw), nil
}

// Planner returns what plans the replies of a task with these rules. A model is
// opened at the first call for it and kept; one that does not open is tried anew
// at the next call. Errors are an [*UnknownAgentError], a [*NotOfferedError] or a
// [*ModelError]. A planner that panics returns a [*PanicError].
func (r *Registry) Planner(ctx context.Context, rules session.Rules, env Env) (Planner, error) {
	a, ok := r.agents[rules.Agent]
	if !ok {
		return nil, r.missing(rules.Agent)
	}
	if a.Planner != nil {
		return safely(a.Name, a.Planner), nil
	}
	name := rules.Model
	if name == "" {
		if a.Offline != nil {
			return safely(a.Name, a.Offline), nil
		}
		// The task was started when the agent planned without a model.
		name = a.effectiveModel(env)
	}
	model, err := r.model(ctx, a.Name, name, env)
	if err != nil {
		return nil, err
	}
	return safely(a.Name, newModelPlanner(model, a, rules.Tools, rules.Policy.TextNeedsInput)), nil
}

// forms lists how models can be named.
func (m Models) forms() string {
	forms := make([]string, 0, len(m))
	for _, prefix := range slices.Sorted(maps.Keys(m)) {
		forms = append(forms, prefix+":<name>")
	}
	return strings.Join(forms, ", ")
}

// provider splits the name of a model and finds who opens it.
func (r *Registry) provider(agent, model string, fromEnv bool) (open Open, name string, err error) {
	problem := r.models.problem(model)
	if problem == "" {
		prefix, name, _ := strings.Cut(model, ":")
		return r.models[prefix], name, nil
	}
	if fromEnv {
		problem += "; it is named by " + ModelVariable
	}
	return nil, "", &ModelError{Agent: agent, Model: model, Problem: problem}
}

// adapters are the packages below pkg/llm that open models of providers.
var adapters = []string{"openai", "anthropic"}

// problem says what is wrong with the name of a model, or "".
func (m Models) problem(model string) string {
	prefix, name, ok := strings.Cut(model, ":")
	switch {
	case len(m) == 0:
		if !slices.Contains(adapters, prefix) {
			prefix = adapters[0]
		}
		return fmt.Sprintf("this program has no model providers: import github.com/adjourn/adjourn/pkg/llm/%[1]s "+
			`and set Models: agent.Models{"%[1]s": %[1]s.Open} in the Config`, prefix)
	case !ok:
		return "it names no provider: write " + m.forms()
	case m[prefix] == nil && slices.Contains(adapters, prefix):
		return fmt.Sprintf("this program has no provider %[1]q: import github.com/adjourn/adjourn/pkg/llm/%[1]s and add "+
			`"%[1]s": %[1]s.Open to the Models of its Config, or write %[2]s`, prefix, m.forms())
	case m[prefix] == nil:
		return fmt.Sprintf("no provider %q: write %s", prefix, m.forms())
	case name == "":
		return fmt.Sprintf("it names no model of %s: write %s:<name>", prefix, prefix)
	}
	return ""
}

// model opens a model once. Callers that come meanwhile wait for the first.
func (r *Registry) model(ctx context.Context, agent, full string, env Env) (llm.Model, error) {
	open, name, err := r.provider(agent, full, full == env.get(ModelVariable))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	o := r.open[full]
	if o == nil {
		o = &opened{turn: make(chan struct{}, 1)}
		r.open[full] = o
	}
	r.mu.Unlock()
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("open model %q: %w", full, context.Cause(ctx))
	}
	if o.model != nil {
		return o.model, nil
	}
	model, err := open(ctx, name, env.get)
	if err == nil && model == nil {
		err = errors.New("the provider returned no model")
	}
	if err != nil {
		return nil, &ModelError{Agent: agent, Model: full, Problem: "it does not open", Cause: err}
	}
	o.model = model
	return model, nil
}
