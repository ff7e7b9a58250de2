// Package logged writes the log lines of a runtime that others read: how long waits took, and what a policy
// names in vain.
package logged

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// WaitOver logs what became of a wait, for those who measure how long people take. Of tools only those have
// their names there that the program has: each makes a metric of its own.
func WaitOver(log *slog.Logger, registry *agent.Registry, key session.Key, w journal.WaitOver) {
	tool := w.Tool
	if _, has := registry.Tool(w.Agent, w.Tool); tool == "" {
		tool = "none"
	} else if !has {
		tool = "other"
	}
	log.Info("wait over", "session", key.ID, "tenant", key.Tenant, "wait", w.Wait, "kind", w.Kind, "tool", tool, "outcome", w.Outcome, "millis", w.Took.Milliseconds())
}

// PolicyInVain tells of the names in the policy of the program that no tool of its agents has: a name that
// is misspelt denies nothing.
func PolicyInVain(log *slog.Logger, registry *agent.Registry, policy *session.ToolPolicy) {
	if policy == nil {
		return
	}
	for _, tool := range slices.Sorted(maps.Keys(policy.Tools)) {
		if !slices.ContainsFunc(registry.Names(), func(agent string) bool { _, has := registry.Tool(agent, tool); return has }) {
			log.Warn("the policy names a tool that no agent here has", "tool", tool)
		}
	}
}
