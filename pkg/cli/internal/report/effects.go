package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// effectRoom is how much of the arguments, and of the result, of a call is shown.
const effectRoom = 300

// Effects lists the calls with effects that a session made after a checkpoint.
func Effects(done session.EffectsDone, now time.Time, width int) string {
	var b strings.Builder
	for _, e := range done.Items {
		arguments := "arguments too large to be shown here"
		if e.Arguments != nil {
			arguments = screen.Compact(e.Arguments, effectRoom)
		}
		b.WriteString(screen.Hang(screen.Sprintf("  %s  %s  %s", e.Call, e.Tool, arguments), 4, width) + "\n")
		line := screen.Sprintf("    %s, %s%s", effectOutcome(e), Ago(now, e.At), effectKept(e))
		b.WriteString(screen.Hang(line, 4, width) + "\n")
	}
	if more := done.Count - len(done.Items); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}

func effectOutcome(e session.EffectDone) string {
	switch {
	case e.Outcome == llm.ResultUnknown:
		return "unknown whether it took effect"
	case e.Result != nil:
		return string(e.Outcome) + ": " + screen.Compact(e.Result, effectRoom)
	}
	return string(e.Outcome)
}

func effectKept(e session.EffectDone) string {
	if e.Kept {
		return "; its outcome is taken along, and it is not asked again"
	}
	return ""
}
