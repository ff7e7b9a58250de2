package report

import (
	"slices"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// resumeHint returns the one command that takes a paused session on.
func resumeHint(where *place.Place, s client.Session) string {
	switch s.Outcome {
	case session.OutcomeRunning, session.OutcomeInterrupted:
		return where.Command(place.Target("resume", s.ID)...)
	case session.OutcomePaused:
	case session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
		return ""
	}
	waits := Pending(s)
	if anyLate(waits, where) {
		// It lets them expire, and says what is still open.
		return where.Command(place.Target("resume", s.ID)...)
	}
	approvals := Approvals(s)
	switch {
	case len(approvals) > 0 && singly(s):
		return AnswerHint(where, s.ID, approvals[0])
	case len(approvals) == 1:
		return where.Command("resume", "-c", s.CheckpointID, "--approve", approvals[0].WaitID)
	case len(approvals) > 1:
		return where.Command("resume", "-c", s.CheckpointID, "--approve-all")
	case len(waits) > 0 && waits[0].Kind == session.WaitInput:
		// Bound to what was asked: pasted again it is a repeat, not the next answer.
		return where.Command("resume", "-c", s.CheckpointID, WordMessage)
	case len(waits) > 0:
		return AnswerHint(where, s.ID, waits[0])
	}
	return where.Command(place.Target("resume", s.ID)...)
}

// AnswerHint returns a command that answers one wait and no other. It names the
// wait, whose id is never used again: what is answered is what was shown. Of a wait
// whose deadline has passed it is the one that goes on.
func AnswerHint(where *place.Place, id string, w client.Wait) string {
	submit := func(words ...string) string {
		return where.Command(place.TargetWait("submit", id, w.WaitID, words...)...)
	}
	if Late(w, where.Now()) {
		return where.Command(place.Target("resume", id)...)
	}
	switch w.Kind {
	case session.WaitApproval:
		return submit("--approve")
	case session.WaitClientTool:
		return submit("--result", WordResult)
	case session.WaitQuestion:
		if words := replyHint(w.Question); words != nil {
			return submit(words...)
		}
	case session.WaitUnknown:
		return submit("--verdict", WordVerdict)
	case session.WaitInput:
		return submit("--reply", WordAnswer)
	case session.WaitChild:
		return where.Command(place.Target("show", w.ChildSessionID)...)
	}
	return where.Command(place.Target("show", id)...)
}

// replyHint is the flag that answers a question, with the word to replace. Nil when
// the word is itself a choice, or when no choice reads as it is written: ids are the
// tool's own, and nobody can type one that hides something.
func replyHint(q *session.Question) []string {
	if q == nil || q.Kind == session.QuestionText || len(q.Choices) == 0 {
		return []string{"--reply", WordAnswer}
	}
	plain := func(choice session.Choice) bool { return place.Plain(choice.ID) }
	if isChoice(q, WordChoice) || !slices.ContainsFunc(q.Choices, plain) {
		return nil
	}
	return []string{"--select", WordChoice}
}
