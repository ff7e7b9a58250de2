package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// LimitFailure is the failure of a task that used a limit up.
func LimitFailure(use session.LimitUse, rules session.Rules) *session.Failure {
	whose, field := "task", "Limits"
	if use.OfSession {
		whose, field = "session", "SessionLimits"
	}
	said := map[string]any{"limit": use.Limit, "agent": rules.Agent}
	if use.Limit == "stateBytes" { // it does not count from zero in the next task
		said["used"] = use.Used
	}
	if use.OfSession {
		said["ofSession"] = true
	}
	data, err := json.Marshal(said)
	if err != nil {
		data = nil // a map of such values always has a JSON form
	}
	raise := "Raise " + field + " in the agent's definition if it needs more"
	if asked(use, rules) {
		raise = "Its caller asked for that limit: try it again with a higher one"
	}
	return &session.Failure{
		Type: "limit_reached", Retryable: true, Data: data,
		Message: fmt.Sprintf("The %s used up its limit of %s%s. %s, or start another session.", whose, use.Limit, howMuch(use), raise),
	}
}

// asked reports whether the limit is one that a caller asked for.
func asked(use session.LimitUse, rules session.Rules) bool {
	if use.OfSession || rules.Asked == nil {
		return false
	}
	limits := session.Limits(rules.Asked.Limits)
	return slices.ContainsFunc(limits.Named(), func(l session.NamedLimit) bool { return l.Name == use.Limit && *l.Value != 0 })
}

// howMuch tells what is not plain from the limit's name.
func howMuch(use session.LimitUse) string {
	switch use.Limit {
	case "toolCalls":
		return fmt.Sprintf(" (%d were asked for, and %d are allowed)", use.Used, use.Of)
	case "repeatedCalls":
		return fmt.Sprintf(": the same tool was called %d times in a row with the same arguments and the same result, so the agent is stuck", use.Used)
	case "stateBytes":
		return fmt.Sprintf(" (its state has %d bytes, and %d are allowed)", use.Used, use.Of)
	}
	if use.OfSession {
		return fmt.Sprintf(" (%d of %d, by all its tasks)", use.Used, use.Of)
	}
	return ""
}

// count takes in what an entry says about limits, before its messages are taken.
func count(s *session.Session, e *journal.Entry) {
	c := &s.Counts
	c.All = c.All.Add(e.Used.Amounts)
	for _, m := range e.Messages {
		n := int64(len(m.ToolCalls()))
		c.ToolCalls, c.AllToolCalls = c.ToolCalls+n, c.AllToolCalls+n
		for _, p := range m.Parts {
			if p.ToolResult == nil {
				continue
			}
			if call, ok := callOf(s, e, p.ToolResult.CallID); ok {
				c.Count(call, *p.ToolResult)
			}
		}
	}
	for _, event := range e.Events {
		var use session.LimitUse
		if event.Call == "" && event.Name == session.EventLimitWarning && json.Unmarshal(event.Data, &use) == nil {
			c.Warnings = append(slices.Clip(c.Warnings), use)
		}
	}
}

// forgetWarnings leaves out the warnings of limits that have changed: of the new ones the task is warned
// anew.
func forgetWarnings(s *session.Session) {
	if len(s.Counts.Warnings) == 0 {
		return
	}
	uses := s.LimitUses()
	s.Counts.Warnings = slices.DeleteFunc(slices.Clone(s.Counts.Warnings), func(w session.LimitUse) bool {
		return !slices.ContainsFunc(uses, func(use session.LimitUse) bool { return use.Same(w) && use.Of == w.Of })
	})
}

// callOf returns the call of a result: one that is open, or one of this very entry.
func callOf(s *session.Session, e *journal.Entry, id string) (session.Call, bool) {
	for _, call := range s.Calls {
		if call.ID == id {
			return call, true
		}
	}
	for _, m := range e.Messages {
		for _, call := range m.ToolCalls() {
			if call.ID == id {
				return session.Call{ID: id, Name: call.Name, Arguments: call.Arguments}, true
			}
		}
	}
	return session.Call{}, false
}

// warn adds an event to an entry for each limit of which four fifths are used with it, unless the task
// was warned of that before.
func warn(s *session.Session, e *journal.Entry) {
	after := *s
	after.Used = e.Used.Task
	count(&after, e)
	if len(e.StateOps) > 0 {
		if state, err := s.State.With(e.StateOps); err == nil {
			after.State = state
		}
	}
	for _, use := range after.LimitUses() {
		if !use.Warns() || use.Limit == "repeatedCalls" && use.Used < 2 || slices.ContainsFunc(s.Counts.Warnings, use.Same) {
			continue
		}
		if data, err := json.Marshal(use); err == nil {
			e.Events = append(slices.Clip(e.Events), session.CustomEvent{Name: session.EventLimitWarning, Data: data})
		}
	}
}
