package engine

import (
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// hold makes the entry the one that holds the rules of the task that begins with it.
func hold(e *journal.Entry, rules session.Rules) {
	rules.CancelAt = rules.Asked.CancelAt(e.At)
	e.Rules, e.RulesAt, e.Used = &rules, e.Seq, journal.Used{}
}

// ChangeRules has a move change what its task is held to: given is what a caller asks for now, and
// rules are what a task would be held to that began now with just that. Only what is asked for
// changes; what was asked before, and what the agent's definition decided about the task, stays.
func (m *Move) ChangeRules(s *session.Session, rules session.Rules, given session.TaskRules) {
	held := s.Rules
	held.Asked = new(given.Over(s.Rules.Asked))
	asked, now := session.Limits(given.Limits), rules.Limits.Named()
	for i, limit := range asked.Named() {
		if *limit.Value != 0 {
			*held.Limits.Named()[i].Value = *now[i].Value
		}
	}
	if given.HoldBatch != nil {
		held.Policy.HoldBatch = rules.Policy.HoldBatch
	}
	held.Needs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(held.Needs, rules.Needs))))
	if given.AllowedTools != nil {
		held.Tools = rules.Tools
	}
	if given.Model != "" {
		held.Model, held.Digest = rules.Model, rules.Digest
	}
	if given.CancelAfterMillis != 0 {
		held.CancelAt = given.CancelAt(m.Entry.At)
	}
	m.Entry.Rules, m.Entry.RulesAt = &held, m.Entry.Seq
}
