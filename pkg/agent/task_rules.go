package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/session"
)

// NotAskedError is what a caller asked of a task, and may not have or cannot.
type NotAskedError struct {
	// Forbidden says that the agent's definition could allow it, and does not.
	Forbidden bool
	Reason    string
}

// Error says what it is.
func (e *NotAskedError) Error() string { return e.Reason }

// TaskRules are the [Registry.Rules] of a task of which a caller asks something. What may not be
// asked is a [*NotAskedError].
func (r *Registry) TaskRules(name string, asked session.TaskRules, env Env) (session.Rules, error) {
	if asked.IsZero() {
		return r.Rules(name, env)
	}
	a, ok := r.agents[name]
	if !ok {
		return session.Rules{}, r.missing(name)
	}
	if asked.Model != "" {
		switch own := a.effectiveModel(env); {
		case a.Planner != nil:
			return session.Rules{}, &NotAskedError{Reason: fmt.Sprintf("agent %q plans without a model: leave model out", name)}
		case asked.Model != own && !slices.Contains(a.Callers.Models, asked.Model):
			return session.Rules{}, &NotAskedError{Forbidden: true, Reason: fmt.Sprintf("model %.80q is not one that callers of agent %q may choose", asked.Model, name)}
		}
		given := env
		env = func(variable string) string {
			if variable == ModelVariable {
				return asked.Model
			}
			return given.get(variable)
		}
	}
	rules, err := r.Rules(name, env)
	if err != nil {
		return rules, err
	}
	var raised *session.RaisedLimitError
	if rules.Limits, err = rules.Limits.Asked(asked.Limits, a.Callers.RaiseLimits); errors.As(err, &raised) {
		return session.Rules{}, &NotAskedError{Forbidden: true, Reason: raised.Error()}
	} else if err != nil {
		return session.Rules{}, &NotAskedError{Reason: err.Error()}
	}
	rules.Needs = needs(rules)
	switch after := asked.CancelAfterMillis; {
	case after < session.Unlimited || after > session.MaxCancelAfter.Milliseconds():
		return session.Rules{}, &NotAskedError{Reason: fmt.Sprintf("cancelAfterMillis %d: it is 1 to %d, or -1 for none", after, session.MaxCancelAfter.Milliseconds())}
	case after > 0:
		rules.Needs = append(rules.Needs, session.NeedsCancelAt)
	}
	if err := asked.Policy.Validate(); err != nil {
		return session.Rules{}, &NotAskedError{Reason: err.Error()}
	}
	rules.HoldToAsked(asked.Policy)
	if asked.AllowedTools != nil {
		for _, tool := range asked.AllowedTools {
			if !slices.Contains(rules.Tools, tool) {
				return session.Rules{}, &NotAskedError{Reason: fmt.Sprintf("agent %q has no tool %.80q; it has %s", name, tool, strings.Join(rules.Tools, ", "))}
			}
		}
		rules.Tools = slices.Compact(slices.Sorted(slices.Values(asked.AllowedTools)))
	}
	rules.Policy.HoldBatch = rules.Policy.HoldBatch || asked.HoldBatch != nil && *asked.HoldBatch
	rules.Asked = &asked
	return rules, nil
}

// needs are what a program must know to hold a task to its limits.
func needs(rules session.Rules) []string {
	words := slices.Compact(slices.Sorted(slices.Values(append(rules.Limits.Needs(), rules.SessionLimits.Needs()...))))
	if rules.SessionLimits != (session.Limits{}) {
		words = append(words, session.NeedsSessionLimits)
	}
	return words
}
