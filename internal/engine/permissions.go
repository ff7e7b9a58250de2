package engine

import (
	"slices"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// MaxPermissions is how many standing permissions a session has at most: the newest.
const MaxPermissions = 32

// takePermissions takes in the standing permissions that the answers of an entry give, before the rest
// of the entry is. Going back, a fork and a task that failed or was stopped make all of them void, those
// of the entry too.
func takePermissions(s *session.Session, e *journal.Entry) {
	if e.Base != nil || e.Status == session.StatusFailed || e.Status == session.StatusCancelled || e.Kind == session.KindDeleted {
		s.Permissions = nil
		return
	}
	for _, a := range e.Answers {
		if a.Standing == nil {
			continue
		}
		if p, ok := PermissionOf(s, a); ok {
			s.Permissions = append(slices.Clip(s.Permissions), p)
			s.Permissions = s.Permissions[max(0, len(s.Permissions)-MaxPermissions):]
		}
	}
}

// PermissionOf is what an answer gives that is taken in after s. It gives nothing unless the answer approves
// just what its wait showed.
func PermissionOf(s *session.Session, a session.Answer) (session.Permission, bool) {
	i := slices.IndexFunc(s.Waits, func(w session.Wait) bool { return w.ID == a.Wait })
	if i < 0 {
		return session.Permission{}, false
	}
	w := s.Waits[i]
	switch {
	case w.Kind != session.WaitApproval || w.Votes() || a.Kind != session.AnswerApproval || a.Approved == nil || !*a.Approved,
		a.Error != "" || a.EditedInput != nil || a.Standing.Until.IsZero(),
		a.Digest == "" || a.Digest != w.Digest || journal.Digest(w.Arguments) != w.Digest,
		a.ShownDigest != w.ShownDigest || journal.ShownDigest(w) != w.ShownDigest,
		w.Preview != nil && w.Preview.Risk == session.RiskHigh:
		return session.Permission{}, false
	}
	p := session.Permission{
		ID: w.ID, Tool: w.Tool, Arguments: w.Arguments, Standing: *a.Standing, Who: a.Who, For: a.For, From: a.From, When: a.When, Policy: w.Policy,
	}
	if s.Rules.ModeOf(w.Tool) == session.ToolPrompt {
		p.RulesAt = s.RulesAt
	}
	return p, true
}
