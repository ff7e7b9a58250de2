package session

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// NeedsEscalation is the word in the needs of a wait whose deadline escalates it: a program that does not
// know that would end the wait at its first deadline.
const NeedsEscalation = "escalation"

// MaxReminders is how many moments before its deadline a wait may be reminded of, and MaxReminded how many
// reminders it gives in all, however often it is extended.
const (
	MaxReminders = 4
	MaxReminded  = 16
)

// Escalation is who may answer a wait as well when its deadline has passed, and how long it then waits
// for an answer of anybody. After that comes the outcome of the deadline.
type Escalation struct {
	Who   []string `json:"who,omitempty"`
	Roles []string `json:"roles,omitempty"`
	// After is the time from the escalation to the deadline that follows, in nanoseconds.
	After time.Duration `json:"after"`
}

// Clone returns a copy that shares nothing; nil of nil.
func (e *Escalation) Clone() *Escalation {
	if e == nil {
		return nil
	}
	return &Escalation{Who: slices.Clone(e.Who), Roles: slices.Clone(e.Roles), After: e.After}
}

// Check says what is wrong with an escalation; nil of none.
func (e *Escalation) Check() error {
	switch {
	case e == nil:
	case e.After <= 0:
		return fmt.Errorf("escalation for %s: the time to answer must be more than zero", e.After)
	case len(e.Who)+len(e.Roles) == 0 || slices.Contains(e.Who, "") || slices.Contains(e.Roles, ""):
		return errors.New("escalation to nobody: name who may answer then, in Who or Roles, and leave no name empty")
	}
	return nil
}

// CheckReminders says what is wrong with reminders so long before a deadline that comes after a time.
func CheckReminders(after time.Duration, remind []time.Duration) error {
	if len(remind) > MaxReminders {
		return fmt.Errorf("expiry with %d reminders: at most %d are given", len(remind), MaxReminders)
	}
	for i, before := range remind {
		switch {
		case before <= 0 || before >= after:
			return fmt.Errorf("a reminder %s before a deadline after %s: it must come after the asking and before the deadline", before, after)
		case slices.Contains(remind[:i], before):
			return fmt.Errorf("two reminders %s before the deadline: name each once", before)
		}
	}
	return nil
}

// Due returns when time next does something to an open wait with these acts: reminds of it, escalates it or
// ends it. It is nil of a wait without a deadline.
func (w *Wait) Due(acts []WaitAct) *time.Time {
	if w.Deadline == nil {
		return nil
	}
	due := w.Deadline.At
	if at := w.remindAt(acts); at != nil && at.Before(due) {
		due = *at
	}
	return &due
}

// remindAt returns the next moment to remind at, nil if there is none. A moment counts once: those up to the
// last reminder are over. So are those up to when somebody extended the wait, or it was escalated, for
// people have just looked at it, or been told. That one of several has voted as who stands in tells nobody else.
func (w *Wait) remindAt(acts []WaitAct) (next *time.Time) {
	since, reminded := w.OpenedAt, 0
	for _, act := range acts {
		if act.Kind == ActReminded {
			reminded++
		}
		if act.Kind != ActDelegated && act.Kind != ActStoodIn && act.At.After(since) {
			since = act.At
		}
	}
	if reminded >= MaxReminded {
		return nil
	}
	for _, before := range w.Deadline.Remind {
		if at := w.Deadline.At.Add(-before); at.After(since) && (next == nil || at.Before(*next)) {
			next = &at
		}
	}
	return next
}

// Escalates reports whether the deadline of a wait is to escalate it.
func (w *Wait) Escalates() bool { return w.Deadline != nil && w.Deadline.Escalate != nil }

// Escalated reports whether a wait with these acts was escalated.
func Escalated(acts []WaitAct) bool {
	return slices.ContainsFunc(acts, func(act WaitAct) bool { return act.Kind == ActEscalated })
}

// Escalate lets those of the wait's escalation answer as well, and gives it their time from now on. Who
// might answer before still may.
func (w *Wait) Escalate(now time.Time) {
	d := *w.Deadline
	w.admit(d.Escalate)
	d.At, d.Escalate = now.Add(d.Escalate.After), nil
	w.Deadline = &d
}

// admit adds to those who may answer. Where everyone may, nobody is added, for that would keep the others out.
func (w *Wait) admit(e *Escalation) {
	if e == nil || len(w.Who)+len(w.rule().Roles) == 0 {
		return
	}
	w.Who = union(w.Who, e.Who)
	if len(e.Roles) > 0 {
		rule := w.rule()
		rule.Roles = union(rule.Roles, e.Roles)
		w.Rule = &rule
	}
}

// union returns all of some, and then those of more that are not among them.
func union(some, more []string) []string {
	all := slices.Clone(some)
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// escalatedTo reports whether an escalation named somebody.
func escalatedTo(act WaitAct, who string) bool {
	return act.Kind == ActEscalated && act.Escalation != nil && slices.Contains(act.Escalation.Who, who)
}

// EscalatedTo reports whether acts on a wait let somebody answer for themselves.
func EscalatedTo(acts []WaitAct, who string) bool {
	return slices.ContainsFunc(acts, func(act WaitAct) bool { return escalatedTo(act, who) })
}
