package report

import (
	"slices"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/session"
)

// ResumeHint returns the one command that takes a paused session on.
func ResumeHint(where *place.Place, m Manifest) string {
	switch m.Outcome {
	case session.OutcomeRunning, session.OutcomeInterrupted:
		return where.Command(place.Target("resume", m.SessionID)...)
	case session.OutcomePaused:
	case session.OutcomeCompleted, session.OutcomeFailed, session.OutcomeCancelled, session.OutcomeError:
		return ""
	}
	items := Pending(m)
	if late(items, where) {
		// It lets them expire, and says what is still open.
		return where.Command(place.Target("resume", m.SessionID)...)
	}
	approvals := openApprovals(items)
	switch {
	case len(approvals) > 0 && singly(m):
		return AnswerHint(where, m.SessionID, approvals[0])
	case len(approvals) == 1:
		return where.Command("resume", "-c", m.CheckpointID, "--approve", approvals[0].WaitID)
	case len(approvals) > 1:
		return where.Command("resume", "-c", m.CheckpointID, "--approve-all")
	case len(items) > 0 && items[0].Kind == session.WaitInput:
		// Bound to what was asked: pasted again it is a repeat, not the next answer.
		return where.Command("resume", "-c", m.CheckpointID, WordMessage)
	case len(items) > 0:
		return AnswerHint(where, m.SessionID, items[0])
	}
	return where.Command(place.Target("resume", m.SessionID)...)
}

// Pending returns everything a manifest waits for.
func Pending(m Manifest) []PendingItem {
	if m.PauseReason == nil {
		return nil
	}
	return append(append([]PendingItem{}, m.PauseReason.PendingToolCalls...), m.PauseReason.Pending...)
}

// AnswerHint returns a command that answers one wait and no other. It names the
// wait, whose id is never used again: what is answered is what was shown. Of a wait
// whose deadline has passed it is the one that goes on.
func AnswerHint(where *place.Place, id string, item PendingItem) string {
	submit := func(words ...string) string {
		return where.Command(place.TargetWait("submit", id, item.WaitID, words...)...)
	}
	if late([]PendingItem{item}, where) {
		return where.Command(place.Target("resume", id)...)
	}
	switch item.Kind {
	case session.WaitApproval:
		return submit("--approve")
	case session.WaitClientTool:
		return submit("--result", WordResult)
	case session.WaitQuestion:
		if words := replyHint(item.Question); words != nil {
			return submit(words...)
		}
	case session.WaitUnknown:
		return submit("--verdict", WordVerdict)
	case session.WaitInput:
		return submit("--reply", WordAnswer)
	case session.WaitChild:
		return where.Command(place.Target("show", item.Session)...)
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
