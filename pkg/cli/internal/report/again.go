package report

import (
	"slices"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// AskedAgain says of each open wait of a session that was answered before, under another
// definition of its tool or agent, why it is asked again. The waits are all of the session.
func AskedAgain(waits []client.Wait) (lines []string) {
	for _, w := range waits {
		if w.State != session.WaitOpen {
			continue
		}
		is := session.Wait{ID: w.WaitID, Kind: w.Kind, Call: w.CallID, Tool: w.Tool, Question: w.Question, Policy: w.Policy}
		for _, before := range slices.Backward(waits) {
			was := session.Wait{ID: before.WaitID, Kind: before.Kind, Call: before.CallID, Question: before.Question, Policy: before.Policy}
			if before.Answer != nil && changed(was, *before.Answer, is) {
				lines = append(lines, again(was, is))
				break
			}
		}
	}
	return lines
}

// changed reports whether a wait asks again what was answered, because the program was
// changed since. What was denied, or expired, is not asked again for that.
func changed(was session.Wait, a session.Answer, is session.Wait) bool {
	if was.ID == is.ID || was.Call == "" || was.Call != is.Call || was.Kind != is.Kind || was.Policy == "" || was.Policy == is.Policy {
		return false
	}
	switch is.Kind {
	case session.WaitApproval:
		return a.Kind == session.AnswerApproval && a.Approved != nil && *a.Approved || a.Kind == session.AnswerExpiry && a.Outcome == session.ExpireDefault
	case session.WaitQuestion:
		return a.Kind == session.AnswerReply && was.Question != nil && is.Question != nil && was.Question.ID == is.Question.ID
	case session.WaitClientTool, session.WaitInput, session.WaitChild, session.WaitUnknown:
	}
	return false
}

// again says why a wait asks once more.
func again(was, is session.Wait) string {
	done := "answered"
	if is.Kind == session.WaitApproval {
		done = "approved"
	}
	return screen.CleanLine(is.ID) + " is asked again, because " + screen.Short(is.Tool, nameRoom) +
		" (or its agent) was changed after " + screen.CleanLine(was.ID) + " was " + done
}
