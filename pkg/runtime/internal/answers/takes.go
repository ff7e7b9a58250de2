package answers

import (
	"slices"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Takes says what a session takes that waits, or was interrupted while it waited. Who brings it may
// still be refused.
type Takes struct {
	// Answer says that something is open, Decisions that an approval is, Message that a message would
	// be taken: as the answer, behind the answers there are, or in place of what is open.
	Answer, Decisions, Message bool
}

// TakesOf returns what a session takes with its waits, from whoever may answer them. One whose deadline
// has passed is open no more: whatever comes lets it expire first.
func TakesOf(s *session.Session, waits []journal.WaitRecord, overdue func(journal.WaitRecord) bool) Takes {
	if s.Status != session.StatusSuspended && s.Status != session.StatusInterrupted {
		return Takes{}
	}
	waits = slices.Clone(waits)
	for i := range waits {
		if waits[i].State == session.WaitOpen && overdue(waits[i]) {
			waits[i].State = session.WaitExpired
		}
		waits[i].Wait.Who, waits[i].Wait.Rule = nil, nil
	}
	open := stored.OpenWaits(waits)
	is := func(kind session.WaitKind) bool {
		return slices.ContainsFunc(open, func(w session.Wait) bool { return w.Kind == kind })
	}
	abandons := CheckAbandon(s, waits, Caller{}) == nil
	return Takes{
		Answer: len(open) > 0, Decisions: is(session.WaitApproval),
		Message: is(session.WaitInput) || abandons || len(open) == 0 && !stored.StaysSuspended(waits),
	}
}

// AgentMissing says that no worker of this program goes on with a session, because its
// agent is not offered here or not in the program; nil where it is.
func (c *Checker) AgentMissing(s *session.Session) *refusal.Error {
	name := s.Rules.Agent
	switch _, ok := c.cfg.Registry.Agent(name); {
	case ok:
		return nil
	case c.cfg.Registry.Withheld(name):
		return refusal.At(codes.AgentNotOffered, s.Key, s.Status, "its agent %q is not offered here. Nothing is lost: it goes on where it is offered", name)
	}
	return refusal.At(codes.UnknownAgent, s.Key, s.Status, "its agent %q is not in this program. Nothing is lost: it goes on where the program works that has it", name)
}
