package answers

import (
	"slices"
	"strings"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// CheckAbandon refuses a message that would abandon waits its caller may not abandon: open waits,
// unless the policy abandons them or the session was interrupted; waits that only others may
// answer; and always what a person approved and was told is stored. If no wait is open, there is
// nothing to abandon.
func CheckAbandon(s *session.Session, waits []journal.WaitRecord, by Caller) error {
	open, gives := stored.OpenWaits(waits), s.Status == session.StatusInterrupted || s.Rules.Policy.AbandonOnMessage
	if len(open) > 0 && !gives {
		return refusal.At(codes.StillWaiting, s.Key, s.Status, "it waits for %s, not for a message. Answer that first", Label(open[0]))
	}
	for _, w := range open {
		refused := mayAnswer(s.Key, w, by)
		if refused == nil && w.Rule != nil && w.Rule.Noes > 1 {
			refused = refusal.New(codes.NotAllowed, s.Key, "%s is ended by %d noes, and a message is one", Label(w), w.Rule.Noes)
		}
		if refused != nil {
			refused.Status, refused.Message = s.Status, "a message would abandon "+Label(w)+", which"+strings.TrimPrefix(refused.Message, Label(w))
			return refusal.About(w.ID, refused)
		}
	}
	if len(open) > 0 && s.Status == session.StatusSuspended {
		waits = append(takenIn(s, waits), waits...)
	}
	i := slices.IndexFunc(waits, wouldRun)
	switch {
	case i < 0 && (len(open) > 0 || s.Status == session.StatusInterrupted):
		return nil
	case len(open) > 0:
		return refusal.At(codes.StillWaiting, s.Key, s.Status, "a message would abandon %s, which %s has answered. Let it go on with that first: %s is still open",
			Label(waits[i].Wait), waits[i].Answer.Who, Label(open[0]))
	case stored.StaysSuspended(waits) || s.Status == session.StatusInterrupted:
		return refusal.At(codes.StillWaiting, s.Key, s.Status, "everything it waited for is answered, and the answers are only stored. Resume it without a message first; send the message when it rests again")
	}
	return refusal.At(codes.AlreadyRunning, s.Key, s.Status, "everything it waited for is answered, and it goes on with that. Send the message when it rests again")
}

// takenIn are the answers of calls that wait for nothing themselves and have not run:
// an entry before took them in, and the calls of their reply wait for others
// ([session.Policy].HoldBatch).
func takenIn(s *session.Session, waits []journal.WaitRecord) []journal.WaitRecord {
	var out []journal.WaitRecord
	for _, c := range s.Calls {
		if len(c.Answers) == 0 || slices.ContainsFunc(waits, func(w journal.WaitRecord) bool { return w.Wait.Call == c.ID }) {
			continue
		}
		newest := &c.Answers[len(c.Answers)-1]
		for _, w := range c.Waits {
			if w.ID == newest.Wait {
				out = append(out, journal.WaitRecord{Wait: w, State: session.WaitAnswered, Answer: newest})
			}
		}
	}
	return out
}

// wouldRun reports whether a stored answer lets its call run: an approval, or a reply to the
// tool's question. A client's result, a verdict and a denial are the result of the call, and a
// later message does not undo them.
func wouldRun(w journal.WaitRecord) bool {
	if w.State != session.WaitAnswered || w.Answer == nil || w.Answer.Kind == session.AnswerDismissal {
		return false
	}
	switch w.Wait.Kind {
	case session.WaitApproval:
		return w.Answer.Approved != nil && *w.Answer.Approved
	case session.WaitQuestion:
		return true
	case session.WaitClientTool, session.WaitUnknown, session.WaitChild, session.WaitInput:
	}
	return false
}
