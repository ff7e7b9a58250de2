package journal

import (
	"time"

	"github.com/adjourn/adjourn/pkg/session"
)

// WaitOver is what became of a wait, told once: when an entry has taken its answer in, or closed it.
type WaitOver struct {
	Wait string
	// Agent and Tool that asked; Tool is empty where no tool did.
	Agent, Tool string
	Kind        session.WaitKind
	Outcome     WaitOutcome
	// Took is the time from asking to the answer, or to the end without one.
	Took time.Duration
}

// WaitOutcome sums up how a wait ended.
type WaitOutcome string

// The outcomes.
const (
	WaitApproved  WaitOutcome = "approved"
	WaitEdited    WaitOutcome = "edited" // approved, with other arguments
	WaitRejected  WaitOutcome = "rejected"
	WaitReplied   WaitOutcome = "answered" // all that is no approval
	WaitOverdue   WaitOutcome = "expired"
	WaitDismissed WaitOutcome = "dismissed"
	WaitAbandoned WaitOutcome = "closed" // without an answer that counts
)

// Over says what became of a wait that was taken in or closed at a time; ok is false while it is neither.
func (r *WaitRecord) Over(at time.Time) (over WaitOver, ok bool) {
	over = WaitOver{Wait: r.Wait.ID, Agent: r.Agent, Tool: r.Wait.Tool, Kind: r.Wait.Kind, Outcome: WaitAbandoned}
	switch {
	case r.State == session.WaitTaken && r.Answer != nil:
		at, over.Outcome = r.Answer.When, outcomeOf(r.Answer)
	case r.State != session.WaitClosed:
		return WaitOver{}, false
	}
	over.Took = max(at.Sub(r.Wait.OpenedAt), 0) // two machines may have written the times
	return over, true
}

func outcomeOf(a *session.Answer) WaitOutcome {
	switch a.Kind {
	case session.AnswerExpiry:
		return WaitOverdue
	case session.AnswerDismissal:
		return WaitDismissed
	case session.AnswerApproval:
		switch {
		case a.Approved == nil || !*a.Approved:
			return WaitRejected
		case a.EditedInput != nil:
			return WaitEdited
		}
		return WaitApproved
	case session.AnswerClientTool, session.AnswerReply, session.AnswerMessage, session.AnswerChild, session.AnswerVerdict:
	}
	return WaitReplied
}
