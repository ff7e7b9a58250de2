package session

import (
	"bytes"

	"github.com/adjourn/adjourn/pkg/llm"
)

// EventLimitWarning names the event of an entry with which a task has used four fifths of a limit. Its
// data is a [LimitUse]. Of each limit of a task there is one.
const EventLimitWarning = "limit_warning"

// LimitUse is how much of a limit is used.
type LimitUse struct {
	// Limit in the words of the JSON form of [Limits].
	Limit string `json:"limit"`
	// OfSession says that it is one of the session's limits; else it is one of the task's.
	OfSession bool  `json:"ofSession,omitempty"`
	Used      int64 `json:"used"`
	Of        int64 `json:"of"`
}

// Counts are what limits need of a session beside what entries say about it. They follow from the
// journal and are stored nowhere, so that they are right for sessions that began before the limits.
type Counts struct {
	// ToolCalls that the replies of the current task have asked for.
	ToolCalls int64
	// All is what all tasks used, AllToolCalls what they asked for.
	All          Amounts
	AllToolCalls int64
	// Repeated is how often in a row the same tool was called with the same arguments and had the
	// same result.
	Repeated int64
	// Warnings that the current task was given.
	Warnings []LimitUse

	// name, arguments and result of the newest call that has a result.
	name      string
	arguments []byte
	result    llm.ToolResult
}

// BeginTask forgets what counts for one task only.
func (c *Counts) BeginTask() {
	c.ToolCalls, c.Warnings, c.Repeated = 0, nil, 0
	c.name, c.arguments, c.result = "", nil, llm.ToolResult{}
}

// Count takes in the result of a call.
func (c *Counts) Count(call Call, result llm.ToolResult) {
	same := c.name == call.Name && bytes.Equal(c.arguments, call.Arguments) && c.result.Status == result.Status && bytes.Equal(c.result.Output, result.Output)
	if c.Repeated++; !same {
		c.Repeated = 1
	}
	c.name, c.arguments, c.result = call.Name, call.Arguments, result
}

// uses says of each limit that binds how much is used of it.
func uses(l Limits, used Amounts, toolCalls, repeated, stateBytes int64, ofSession bool) []LimitUse {
	var all []LimitUse
	for _, u := range [...]LimitUse{
		{Limit: "steps", Used: used.Steps, Of: l.Steps},
		{Limit: "tokens", Used: used.Tokens, Of: l.Tokens},
		{Limit: "activeMillis", Used: used.ActiveMillis, Of: l.ActiveMillis},
		{Limit: "costMicros", Used: used.CostMicros, Of: l.CostMicros},
		{Limit: "toolCalls", Used: toolCalls, Of: l.ToolCalls},
		{Limit: "repeatedCalls", Used: repeated, Of: l.RepeatedCalls},
		{Limit: "stateBytes", Used: stateBytes, Of: l.StateBytes},
	} {
		if u.OfSession = ofSession; u.Of > 0 {
			all = append(all, u)
		}
	}
	return all
}

// LimitUses says of each limit of the task, and of the session, how much is used of it.
func (s *Session) LimitUses() []LimitUse {
	state := int64(s.State.Size())
	of := uses(s.Rules.Limits, s.Used, s.Counts.ToolCalls, s.Counts.Repeated, state, false)
	return append(of, uses(s.Rules.SessionLimits, s.Counts.All, s.Counts.AllToolCalls, s.Counts.Repeated, state, true)...)
}

// Exhausted returns the first limit that leaves no further reply, nil if there is none.
func (s *Session) Exhausted() *LimitUse {
	for _, u := range s.LimitUses() {
		over := u.Used >= u.Of
		switch u.Limit {
		case "toolCalls": // a reply without calls needs none
			over = u.Used > u.Of
		case "stateBytes":
			over = u.Used > u.Of
		}
		if over {
			return &u
		}
	}
	return nil
}

// ExhaustedBy returns the limit that a reply with so many calls would exceed, nil if there is none.
func (s *Session) ExhaustedBy(calls int) *LimitUse {
	for _, u := range s.LimitUses() {
		if u.Limit == "toolCalls" && u.Used+int64(calls) > u.Of {
			u.Used += int64(calls)
			return &u
		}
	}
	return nil
}

// Warns reports whether so much is used of the limit that a task is warned: four fifths, but not yet
// all of it, for then it is too late.
func (u LimitUse) Warns() bool { return u.Used >= u.Of-u.Of/5 && u.Used < u.Of }

// Same reports whether both are about the same limit.
func (u LimitUse) Same(other LimitUse) bool {
	return u.Limit == other.Limit && u.OfSession == other.OfSession
}

// Needs names the features that a program must have to hold a task to the limits: one that does not
// know a limit would not hold the task to it.
func (l Limits) Needs() (words []string) {
	for _, limit := range [...]struct {
		word string
		is   int64
	}{{NeedsToolCalls, l.ToolCalls}, {NeedsRepeatedCalls, l.RepeatedCalls}, {NeedsStateBytes, l.StateBytes}} {
		if limit.is > 0 {
			words = append(words, limit.word)
		}
	}
	return words
}

// The words in the needs of rules, of waits and of entries (docs/design/format-1.md).
const (
	NeedsToolCalls     = "limit:toolCalls"
	NeedsRepeatedCalls = "limit:repeatedCalls"
	NeedsStateBytes    = "limit:stateBytes"
	NeedsSessionLimits = "limit:session"
	NeedsCancelAt      = "rules:cancelAt"
	NeedsToolPolicy    = "rules:policy"
	NeedsPolicyPause   = "rules:policyPause"
	NeedsProgramPolicy = "rules:programPolicy"
	// NeedsDismissal is on a wait that was dismissed, and on the entry that takes that in.
	NeedsDismissal = "answer:dismissal"
)
