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
		told.Deadline = &session.Deadline{At: d.At, Outcome: d.Outcome, Escalate: d.Escalate}
	}
	return told
}

// acts are the notices of what is done to a wait without deciding it. What is not here is not told.
var acts = map[session.WaitActKind]journal.NoticeType{
	session.ActDelegated: journal.NoticeDelegated, session.ActExtended: journal.NoticeExtended,
	session.ActReminded: journal.NoticeReminded, session.ActEscalated: journal.NoticeEscalated,
}

// ofAct is the notice of the newest act on an open wait, without its sends; nil of one that is not told.
func ofAct(w *journal.WaitRecord) *journal.Notice {
	act := w.Acts[len(w.Acts)-1]
	if acts[act.Kind] == "" {
		return nil
	}
	told := tell(w.Wait)
	told.By, told.When, told.To = act.Who, new(act.At.UTC()), act.To
	return &journal.Notice{
		ID: journal.ActNotice(w.Wait.ID, len(w.Acts)), Type: acts[act.Kind], At: act.At.UTC(), Agent: w.Agent, Seq: openedBy(w.Wait.ID), Waits: []journal.NoticeWait{told},
	}
}

// Decided is a wait with its answer as a notice tells it.
func Decided(w *journal.WaitRecord) journal.NoticeWait {
	told := tell(w.Wait)
	told.Decision, told.By, told.When = decision(w), w.Answer.Who, new(w.Answer.When.UTC())
	return told
}

// Ended is a wait that is not open any more as a notice tells it.
func Ended(w *journal.WaitRecord) journal.NoticeWait {
	if w.Answer != nil {
		return Decided(w)
	}
	told := tell(w.Wait)
	told.Decision = journal.DecisionClosed
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
