package report

import (
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// Stored returns the waits of a paused session that were answered, by somebody or by
// their deadline, and with which it has not gone on.
func Stored(waits []client.Wait) []client.Wait {
	var stored []client.Wait
	for _, r := range waits {
		if (r.State == session.WaitAnswered || r.State == session.WaitExpired) && r.Answer != nil {
			stored = append(stored, r)
		}
	}
	return stored
}

// StoredLines says what was answered, by whom and how long ago, a line for each.
func StoredLines(stored []client.Wait, indent string, now time.Time) string {
	var b strings.Builder
	for _, r := range stored {
		b.WriteString(indent + screen.CleanLine(r.WaitID) + "  " + Headline(r) + ": " +
			Said(*r.Answer) + ", by " + author(*r.Answer) + ", " + Ago(now, r.Answer.When) + "\n")
	}
	return b.String()
}

// Beside says what was answered of a pause in which something is still open; "" if nothing was.
func Beside(answered []client.Wait, now time.Time) string {
	if len(answered) == 0 {
		return ""
	}
	return "\nAnswered already:\n" + StoredLines(answered, "  ", now)
}

// Ago says how long ago something was.
func Ago(now, at time.Time) string {
	d := now.Sub(at)
	if d < time.Second {
		return "just now"
	}
	return screen.Span(d) + " ago"
}
