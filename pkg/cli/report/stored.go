package report

import (
	"strings"

	"github.com/adjourn/adjourn/pkg/cli/screen"
	"github.com/adjourn/adjourn/pkg/session"
)

// Stored returns the answers a paused session has and has not gone on with.
func Stored(records []session.WaitRecord) []session.WaitRecord {
	var stored []session.WaitRecord
	for _, r := range records {
		if r.State == session.WaitAnswered && r.Answer != nil {
			stored = append(stored, r)
		}
	}
	return stored
}

// StoredLines says what was answered, by whom and how long ago, a line for each.
func StoredLines(stored []session.WaitRecord, indent string, ago func(session.Answer) string) string {
	var b strings.Builder
	for _, r := range stored {
		b.WriteString(indent + screen.CleanLine(r.Wait.ID) + "  " + HeadlineOf(r.Wait) + ": " +
			screen.Short(said(*r.Answer, 120), 120) + ", by " + by(r.Answer.Who) + ", " + ago(*r.Answer) + "\n")
	}
	return b.String()
}
