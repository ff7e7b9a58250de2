package outbox

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// forPeople reports whether somebody outside has to answer waits of a kind: a child answers itself.
func forPeople(kind session.WaitKind) bool { return kind != session.WaitChild }

// tell is an open wait as a notice tells it.
func tell(w session.Wait) journal.NoticeWait {
	told := journal.NoticeWait{ID: w.ID, Kind: w.Kind, Tool: w.Tool, Who: w.Who}
	if d := w.Deadline; d != nil { // without its value, which is an answer
		told.Deadline = &session.Deadline{At: d.At, Outcome: d.Outcome}
	}
	return told
}

// decided is a wait with its answer as a notice tells it.
func decided(w *journal.WaitRecord) journal.NoticeWait {
	told := tell(w.Wait)
	told.Decision, told.By, told.When = decision(w), w.Answer.Who, new(w.Answer.When.UTC())
	return told
}

// decision says in a word how a wait was decided.
func decision(w *journal.WaitRecord) journal.NoticeDecision {
	switch {
	case w.State == session.WaitExpired || w.Answer.Kind == session.AnswerExpiry:
		return journal.DecisionExpired
	case w.Answer.Kind == session.AnswerDismissal:
		return journal.DecisionDismissed
	case w.Wait.Kind != session.WaitApproval:
		return journal.DecisionAnswered
	case w.Answer.Approved != nil && *w.Answer.Approved:
		return journal.DecisionApproved
	}
	return journal.DecisionRejected
}

// openedBy is the seq of the entry that opened a wait, by its id.
func openedBy(wait string) int64 {
	var seq, i int64
	_, _ = fmt.Sscanf(wait, "w%d-%d", &seq, &i) // 0 of what is no id of a wait
	return seq
}
