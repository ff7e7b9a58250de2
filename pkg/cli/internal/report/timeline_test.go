package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// TestTimelineOfOtherArguments: what was shown for an approval stands in the timeline
// where it is not what the agent gave, and stays there once it is answered.
func TestTimelineOfOtherArguments(t *testing.T) {
	t.Parallel()
	s, _, _, _ := room(t)
	yes := true
	long := strings.Repeat("x", 300)
	story := func(shown string) []journal.Entry {
		w := session.Wait{ID: "w2-1", Kind: session.WaitApproval, Call: "c2-1", Tool: "rm", Arguments: json.RawMessage(shown)}
		call := llm.Part{Kind: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "c2-1", Name: "rm", Arguments: json.RawMessage(`{"a":1,"b":2}`)}}
		return []journal.Entry{
			{Seq: 2, Kind: session.KindSuspended, Messages: []llm.Message{{Role: llm.RoleAssistant, Parts: []llm.Part{call}}}, Waits: []session.Wait{w}},
			{Seq: 3, Kind: session.KindResumed, Answers: []session.Answer{{Wait: "w2-1", Kind: session.AnswerApproval, ToolCallID: "c2-1", Approved: &yes, Who: "ada"}}},
		}
	}
	other := story(`{"a":1,"b":"` + long + `"}`)
	require.Contains(t, report.Timeline(s, client.Session{}, other, true), `shown     w2-1 with other arguments than c2-1: {"a":1,"b":"`+long+`"}`+"\n")
	cut := report.Timeline(s, client.Session{}, other, false)
	require.Contains(t, cut, `shown     w2-1 with other arguments than c2-1: {"a":1,"b":"xxx`)
	require.NotContains(t, cut, long)
	require.NotContains(t, report.Timeline(s, client.Session{}, story(`{"b": 2, "a": 1}`), true), "shown", "the same, in another order")
}

// TestTimelineOfTime: work is what the journal says was used of the tasks' limits. Time in
// which nobody was there to work is neither that nor a wait.
func TestTimelineOfTime(t *testing.T) {
	t.Parallel()
	s, _, _, _ := room(t)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int, task, active int64, status session.Status) journal.Entry {
		return journal.Entry{At: begin.Add(time.Duration(seconds) * time.Second), Task: task, Status: status, Used: journal.Used{Task: session.Amounts{ActiveMillis: active}}}
	}
	entries := []journal.Entry{
		at(0, 1, 0, session.StatusRunning), at(21, 1, 1000, session.StatusSuspended), at(51, 1, 1000, session.StatusRunning), at(53, 1, 3000, session.StatusCompleted),
	}
	require.Contains(t, report.Timeline(s, client.Session{}, entries, false), "\n3s at work, 30s waiting, 20s with no worker\n")
	entries = append(entries, at(63, 2, 0, session.StatusRunning), at(68, 2, 5000, session.StatusCompleted))
	require.Contains(t, report.Timeline(s, client.Session{}, entries, false), "\n8s at work, 40s waiting, 20s with no worker\n")
	require.Contains(t, report.Timeline(s, client.Session{}, entries[:1], false), "\n0s at work, 0s waiting\n")
}
