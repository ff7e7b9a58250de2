package stored

import (
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// OutcomeOf is the status that callers who wait for the session get, with what a paused session
// waits for ("" if its answers are only stored) and how many approvals of this pause are decided
// already. A suspended session with all its answers counts as running, unless the answers were
// only stored.
func OutcomeOf(s *session.Session, records []journal.WaitRecord) (outcome session.Outcome, pause session.PauseType, decided int) {
	switch s.Status {
	case session.StatusRunning:
		return session.OutcomeRunning, "", 0
	case session.StatusSuspended:
		if pause, decided := pauseOf(records); pause != "" {
			return session.OutcomePaused, pause, decided
		}
		if StaysSuspended(records) {
			return session.OutcomePaused, "", 0
		}
		return session.OutcomeRunning, "", 0 // everything is answered; it goes on
	case session.StatusInterrupted:
		return session.OutcomeInterrupted, "", 0
	case session.StatusCompleted:
		return session.OutcomeCompleted, "", 0
	case session.StatusFailed:
		return session.OutcomeFailed, "", 0
	case session.StatusCancelled:
		return session.OutcomeCancelled, "", 0
	}
	return "", "", 0
}

var pauseTypes = map[session.WaitKind]session.PauseType{
	session.WaitApproval:   session.PauseToolApproval,
	session.WaitClientTool: session.PauseClientTool,
	session.WaitQuestion:   session.PauseQuestion,
	session.WaitInput:      session.PauseInput,
	session.WaitChild:      session.PauseChildren,
	session.WaitUnknown:    session.PauseUnknownOutcome,
}

// pauseOf sums up what is open; "" where nothing is.
func pauseOf(records []journal.WaitRecord) (pause session.PauseType, decided int) {
	for _, record := range records {
		if record.Wait.Kind == session.WaitApproval && record.State != session.WaitOpen {
			decided++
		}
	}
	for _, w := range OpenWaits(records) {
		if kind := pauseTypes[w.Kind]; pause == "" || pause == kind {
			pause = kind
		} else {
			pause = session.PauseMixed
		}
	}
	return pause, decided
}
