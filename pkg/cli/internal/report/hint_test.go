package report_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// A choice's id is the tool's own words, and the choice a person's: the command has a
// word for it, unless that is a choice itself, or none of them could stand in its place.
func TestHintChoosesNothing(t *testing.T) {
	t.Parallel()
	question := func(ids ...string) client.Wait {
		q := &session.Question{ID: "q", Kind: session.QuestionChoice}
		for _, id := range ids {
			q.Choices = append(q.Choices, session.Choice{ID: id})
		}
		return client.Wait{WaitID: "w2-1", Kind: session.WaitQuestion, Question: q}
	}
	here := place.New(place.Config{Program: "adjourn", Env: func(string) string { return "" }})
	hostile := []string{"\x1b[2Jred", "a\r\nRun it? y", "x\u202ey"}
	require.Equal(t, "adjourn submit s w2-1 --select CHOICE", report.AnswerHint(here, "s", question(append(hostile, "red")...)))
	require.Equal(t, "adjourn show s", report.AnswerHint(here, "s", question(hostile...)))
	require.Equal(t, "adjourn show s", report.AnswerHint(here, "s", question("red", "CHOICE")))
}

// TestHintBesideWhatIsDecided: a decision is about every approval of a pause, so that
// where some are decided already the hint answers one of the others and no more.
func TestHintBesideWhatIsDecided(t *testing.T) {
	t.Parallel()
	here := place.New(place.Config{Program: "adjourn", Env: func(string) string { return "" }})
	s := client.Session{Outcome: session.OutcomePaused, ID: "s", CheckpointID: "cp", Pause: &client.Pause{
		Type: session.PauseToolApproval, Pending: []client.Wait{{CallID: "c2-2", WaitID: "w2-2", Kind: session.WaitApproval, Tool: "deploy"}},
	}}
	require.Contains(t, report.NewView(here, s).ResumeHint, "resume -c cp --approve w2-2")
	s.Pause.Decided = 1
	require.Contains(t, report.NewView(here, s).ResumeHint, "submit s w2-2 --approve")
}

// TestHintForThoseWhoMay: the hint says whose it is, and where nobody may decide on all
// approvals it is about one of them.
func TestHintForThoseWhoMay(t *testing.T) {
	t.Parallel()
	here := place.New(place.Config{Program: "adjourn", Env: func(string) string { return "" }})
	for name, c := range map[string]struct {
		who        [][]string
		hint, only string
	}{
		"everybody":    {[][]string{nil, nil}, "--approve-all", ""},
		"one of two":   {[][]string{nil, {"ada"}}, "--approve-all", " (ada only)"},
		"in common":    {[][]string{{"bob", "ada"}, {"ada", "eve"}}, "--approve-all", " (ada only)"},
		"not together": {[][]string{{"bob"}, {"ada"}}, "submit s w2-1 --approve", " (bob only)"},
		"alone":        {[][]string{{"bob\x1b"}}, "resume -c cp --approve w2-1", ` (bob\x1b only)`},
	} {
		s := client.Session{Outcome: session.OutcomePaused, ID: "s", CheckpointID: "cp", Pause: &client.Pause{}}
		for i, who := range c.who {
			s.Pause.Pending = append(s.Pause.Pending, client.Wait{CallID: "c", WaitID: fmt.Sprintf("w2-%d", i+1), Kind: session.WaitApproval, Who: who})
		}
		require.Contains(t, report.NewView(here, s).ResumeHint, c.hint, name)
		require.Equal(t, c.only, report.HintOnly(here, s), name)
	}
}

// TestNotServed: who goes on is said, and how a server of this machine offers the agent.
func TestNotServed(t *testing.T) {
	t.Parallel()
	where := place.New(place.Config{Program: "adj", Env: func(string) string { return "" }})
	s := client.Session{ID: "s", Agent: "lab", ResumeCode: string(client.CodeAgentNotOffered)}
	require.Contains(t, report.NotServed(where, s), "does not offer agent lab. On this machine: adj dev --lab;")
	s.ResumeCode = string(client.CodeUnknownAgent)
	require.Contains(t, report.NotServed(where, s), "does not have agent lab. It goes on where the program works that has it")
}
