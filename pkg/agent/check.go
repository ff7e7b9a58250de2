package agent

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/toolcall"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// DefinitionError is one mistake of a definition: where it is, what is wrong,
// what to do.
type DefinitionError struct {
	// Agent is empty for mistakes that are no single agent's.
	Agent string
	// Tool is set for mistakes of one of the agent's tools.
	Tool string
	// Field of the [Agent], of its tool's spec or of the [Config].
	Field   string
	Problem string
	// Do says how to mend it.
	Do string
	// Cause is the tool's own error, a [*tool.SpecError], if it has one.
	Cause error
}

// Error says it all in one line.
func (e *DefinitionError) Error() string {
	var b strings.Builder
	if e.Agent != "" {
		fmt.Fprintf(&b, "agent %q: ", e.Agent)
	}
	if e.Tool != "" {
		fmt.Fprintf(&b, "tool %q: ", e.Tool)
	}
	fmt.Fprintf(&b, "%s: %s", e.Field, e.Problem)
	if e.Do != "" {
		fmt.Fprintf(&b, ": %s", e.Do)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *DefinitionError) Unwrap() error { return e.Cause }

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checker gathers mistakes.
type checker struct {
	agent  string
	models Models
	errs   []error
}

func (c *checker) wrong(field, problem, do string) {
	c.errs = append(c.errs, &DefinitionError{Agent: c.agent, Field: field, Problem: problem, Do: do})
}

func checkConfig(cfg Config) error {
	c := checker{models: cfg.Models}
	for _, prefix := range slices.Sorted(maps.Keys(cfg.Models)) {
		if prefix == "" || strings.Contains(prefix, ":") {
			c.wrong("Models", fmt.Sprintf("%q is no prefix", prefix), "use a word without a colon")
		}
		if cfg.Models[prefix] == nil {
			c.wrong("Models", fmt.Sprintf("the provider %q has no Open", prefix), "give it the function that opens its models")
		}
	}
	if len(cfg.Agents) == 0 {
		c.wrong("Agents", "there are none", "define at least one")
	}
	seen := map[string]bool{}
	for i, a := range cfg.Agents {
		c.agent = a.Name
		if a.Name == "" {
			c.agent = fmt.Sprintf("#%d", i+1)
		}
		if !namePattern.MatchString(a.Name) {
			c.wrong("Name", fmt.Sprintf("%q is no name", a.Name), "use 1 to 64 letters, digits, _ or -")
		} else if seen[a.Name] {
			c.wrong("Name", "another agent has it", "rename one of them")
		}
		seen[a.Name] = true
		c.planning(a)
		c.tools(a)
		c.limits(a)
		c.people(a)
	}
	return errors.Join(c.errs...)
}

// planning: one of Model, Planner and Offline, and none that never plans.
func (c *checker) planning(a Agent) {
	if a.Model != "" {
		if problem := c.models.problem(a.Model); problem != "" {
			c.wrong("Model", fmt.Sprintf("%q", a.Model), problem)
		}
	}
	model := "Model"
	if len(c.models) > 0 {
		model += " (" + c.models.forms() + ")"
	}
	switch {
	case a.Planner != nil && a.Model != "":
		c.wrong("Model", "no model is ever asked, for Planner plans always", "remove one of them, or make the planner Offline and leave Model empty")
	case a.Model != "" && a.Offline != nil:
		c.wrong("Offline", "it never plans, for Model names a model", "remove one of them")
	case a.Planner == nil && a.Model == "" && a.Offline == nil:
		c.wrong("Model", "the agent has nothing that plans", "set "+model+", Planner or Offline")
	}
	if a.Planner != nil && a.Offline != nil {
		c.wrong("Offline", "it never plans, for Planner plans always", "remove one of them")
	}
	c.planner("Planner", a.Planner)
	c.planner("Offline", a.Offline)
	if a.MaxOutputTokens < 0 {
		c.wrong("MaxOutputTokens", fmt.Sprintf("%d is negative", a.MaxOutputTokens), "leave it zero for the provider's default")
	}
	if r := a.Retry; r.Attempts < 0 || r.Base < 0 || r.Max < 0 {
		c.wrong("Retry", "a field is negative", "leave fields zero for the defaults")
	} else if r.Max > 0 && r.withDefaults().Base > r.Max {
		c.wrong("Retry", fmt.Sprintf("Base %s is more than Max %s", r.withDefaults().Base, r.Max), "raise Max or lower Base")
	}
}

// planner: a function that is there, replies that can be given.
func (c *checker) planner(field string, p Planner) {
	switch p := p.(type) {
	case PlannerFunc:
		if p == nil {
			c.wrong(field, "the function is nil", "give it one, or leave "+field+" empty")
		}
	case replies:
		for i, reply := range p {
			if _, err := reply.Message(); err != nil {
				c.wrong(field, fmt.Sprintf("number %d of agent.Replies can never be given: %v", i+1, err), "")
			}
		}
	}
}

func (c *checker) tools(a Agent) {
	seen := map[string]bool{}
	for i, t := range a.Tools {
		name := t.Name()
		shown := name
		if name == "" {
			shown = fmt.Sprintf("#%d", i+1)
		}
		wrong := func(field, problem, do string, cause error) {
			c.errs = append(c.errs, &DefinitionError{Agent: c.agent, Tool: shown, Field: field, Problem: problem, Do: do, Cause: cause})
		}
		if name == FinishTool {
			wrong("Name", "it is reserved for structured output", "rename the tool, or set Output", nil)
		} else if name != "" && seen[name] {
			wrong("Name", "another tool of the agent has it", "rename one of them", nil)
		}
		seen[name] = true
		for _, err := range unjoin(t.Err()) {
			var mistake *tool.SpecError
			if errors.As(err, &mistake) {
				wrong(mistake.Field, mistake.Problem, "", err)
			} else {
				wrong("Tools", err.Error(), "", err)
			}
		}
	}
	if a.Output != nil {
		err := a.Output.err
		if err == nil {
			err = finishTool(a.Output.schema).Err()
		}
		if err != nil {
			c.errs = append(c.errs, &DefinitionError{
				Agent: c.agent, Field: "Output", Problem: err.Error(),
				Do: "use OutputOf with a struct, or OutputSchema with an object schema", Cause: err,
			})
		}
	}
}

// unjoin returns the errors that errors.Join put together, at any depth.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, unjoin(e)...)
	}
	return all
}

func (c *checker) limits(a Agent) {
	c.limitsOf("Limits.", a.Limits)
	c.limitsOf("SessionLimits.", a.SessionLimits)
}

func (c *checker) limitsOf(field string, limits session.Limits) {
	for _, l := range []struct {
		name  string
		value int64
	}{
		{"Steps", limits.Steps},
		{"Tokens", limits.Tokens},
		{"ActiveMillis", limits.ActiveMillis},
		{"CostMicros", limits.CostMicros},
		{"ToolCalls", limits.ToolCalls},
		{"RepeatedCalls", limits.RepeatedCalls},
		{"StateBytes", limits.StateBytes},
		{"Depth", limits.Depth},
		{"Children", limits.Children},
	} {
		if l.value < 0 && l.value != session.Unlimited {
			c.wrong(field+l.name, fmt.Sprintf("%d is negative", l.value), "use agent.Unlimited for no limit, zero for the default")
		}
	}
}

// people: what the agent decided about waiting.
func (c *checker) people(a Agent) {
	switch a.Policy.OnChange {
	case "", session.ChangeGoOn, session.ChangeReask, session.ChangeFail:
	default:
		c.wrong("Policy.OnChange", fmt.Sprintf("%q is no policy", a.Policy.OnChange), "use agent.ChangeGoOn, ChangeReask or ChangeFail")
	}
	for _, err := range unjoin(toolcall.CheckExpiry(a.InputExpiry, session.WaitInput)) {
		c.wrong("InputExpiry", err.Error(), "")
	}
	if a.Retention < 0 {
		c.wrong("Retention", fmt.Sprintf("%s is negative", a.Retention), "use zero to keep sessions for ever")
	}
}
