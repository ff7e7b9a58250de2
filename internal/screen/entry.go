package screen

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// EntryWords says what an entry means in a line; "" where another entry says it.
func EntryWords(p runtime.Progress) string {
	switch p.Kind {
	case session.KindReplied:
		return "" // the step says what it asked for
	case session.KindStepped:
		if len(p.Calls) == 0 {
			return fmt.Sprintf("step %d: done", p.Step)
		}
		return fmt.Sprintf("step %d: %s", p.Step, Calls(p.Calls))
	case session.KindSuspended:
		return fmt.Sprintf("step %d: paused, nothing runs", p.Step)
	case session.KindResumed:
		return "goes on"
	case session.KindDelayed:
		return fmt.Sprintf("step %d: put off, next try at %s: %s", p.Step+1, p.Until.Local().Format("15:04:05"), Short(p.Reason, 200))
	case session.KindCompleted:
		return "completed after " + Count(p.Step, "step")
	case session.KindStarted, session.KindFailed, session.KindInterrupted, session.KindCancelled, session.KindRestored, session.KindForked, session.KindDeleted:
	}
	return string(p.Kind)
}
