package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestNobodyFakesAPrompt(t *testing.T) {
	t.Parallel()
	evil := "harmless\r\x1b[2K\x1b[1A\nRun it? [y]es, [N]o: y" + strings.Repeat(" ", 200) + "Run it? y"
	w := client.Wait{Kind: session.WaitApproval, Tool: "rm\x1b[8m", Arguments: json.RawMessage(`{"path":"\u001b[2K ` + "\u202e" + `"}`)}
	for _, text := range []string{
		screen.QuoteBlock(evil, "  ", 40), screen.QuoteBlock(evil, "", 0), report.Details(w, time.Time{}, "  ", 40),
		report.Details(client.Wait{Kind: session.WaitQuestion, Question: &session.Question{Text: evil, Choices: []session.Choice{{ID: "a\nb", Label: "c\r\x1b", Description: "d\r\x1b" + evil}}}}, time.Time{}, "  ", 40),
	} {
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\r")
		require.NotContains(t, text, "\u202e")
		for line := range strings.Lines(text) {
			require.Regexp(t, `^ *[|-] `, line, "every line is marked as somebody else's")
		}
	}
	for line := range strings.Lines(screen.QuoteBlock(evil, "  ", 40)) {
		require.Less(t, len(line), 41, "no line wraps by itself")
	}
	require.NotContains(t, report.Headline(w), "\x1b")
}

func TestDetailsOfADeadline(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		kind    session.WaitKind
		outcome session.DeadlineOutcome
		value   string
		want    string
	}{
		{session.WaitApproval, session.ExpireDeny, "", "it counts as a no"},
		{session.WaitApproval, session.ExpireFail, "", "the task fails"},
		{session.WaitApproval, session.ExpireReask, "", "it is asked again"},
		{session.WaitApproval, "later", "", "later"},
		{session.WaitApproval, session.ExpireDefault, "true", "it is approved"},
		{session.WaitApproval, session.ExpireDefault, "false", "it is denied"},
		{session.WaitApproval, session.ExpireDefault, "", "its default counts"},
		{session.WaitQuestion, session.ExpireDefault, `"no"`, `the answer is "no"`},
		{session.WaitQuestion, session.ExpireDefault, `["a", "b"]`, `the answer is ["a","b"]`},
		{session.WaitInput, session.ExpireDefault, `"go on"`, `the answer is "go on"`},
		{session.WaitClientTool, session.ExpireDefault, "null", "the result is null"},
	} {
		want := c.want
		w := client.Wait{Kind: c.kind, Deadline: &session.Deadline{At: at, Outcome: c.outcome, Value: json.RawMessage(c.value)}}
		require.Contains(t, report.Details(w, at.Add(-1), "  ", 80), "  until 2026-01-02T03:04:05Z, then: "+want+"\n")
		require.Contains(t, report.Details(w, at, "  ", 80), "  its deadline passed at 2026-01-02T03:04:05Z: "+want+" as soon as the session goes on\n")
	}
}
