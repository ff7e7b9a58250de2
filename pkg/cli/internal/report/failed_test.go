package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestAfterFailure: what is proposed fits why the session has failed.
func TestAfterFailure(t *testing.T) {
	t.Parallel()
	limit := func(data string) *client.Failure { return &client.Failure{Code: "limit_reached", Data: raw(data)} }
	steps := limit(`{"limit":"steps","agent":"toy"}`)
	asked := &session.TaskRules{Limits: session.AskedLimits{Steps: 20}}
	warned := []session.LimitUse{{Limit: "steps", OfSession: true, Used: 900, Of: 1000}, {Limit: "steps", Used: 90, Of: 100}}
	for name, c := range map[string]struct {
		v    report.View
		says []string
	}{
		"other reasons":   {report.View{Session: client.Session{Failure: &client.Failure{Code: "planner_failed"}}}, []string{"to try it again: adjourn retry s"}},
		"with a message":  {report.View{Message: "more now", Session: client.Session{}}, []string{"to try it again: adjourn retry s 'more now'"}},
		"with a list":     {report.View{Message: "- say: hi", Session: client.Session{}}, []string{"to try it again: adjourn retry -- s '- say: hi'"}},
		"aborted":         {report.View{Session: client.Session{Failure: &client.Failure{Code: "aborted"}}}, []string{"it was aborted; to go back to one of its checkpoints: adjourn resume s --from-checkpoint ENTRY"}},
		"an agent's":      {report.View{Session: client.Session{Failure: steps, Warnings: warned}}, []string{"to try it again, with as much of steps once more: adjourn retry s", "with a higher limit, as far as the agent lets callers ask for one: adjourn retry s --limit steps=200"}},
		"of what height":  {report.View{Session: client.Session{Failure: steps}}, []string{"to try it again, with as much of steps once more: adjourn retry s", "with a higher limit, as far as the agent lets callers ask for one: adjourn retry s --limit steps=NUMBER"}},
		"a caller's":      {report.View{Message: "go on", Session: client.Session{Failure: steps, Rules: asked}}, []string{"the limit steps=20 was asked for with the task (it is in the rules of the task, not in the agent's definition)", "to try it again with a higher one: adjourn retry s --limit steps=40 'go on'"}},
		"another asked":   {report.View{Session: client.Session{Failure: limit(`{"limit":"tokens"}`), Rules: asked}}, []string{"to try it again, with as much of tokens once more: adjourn retry s", "with a higher limit, as far as the agent lets callers ask for one: adjourn retry s --limit tokens=NUMBER"}},
		"of the session":  {report.View{Session: client.Session{Failure: limit(`{"limit":"steps","ofSession":true}`), Rules: asked}}, []string{"the limit is one of all tasks of the session together, which only the agent's definition raises; to try it again then: adjourn retry s"}},
		"stuck":           {report.View{Session: client.Session{Failure: limit(`{"limit":"repeatedCalls"}`)}}, []string{"to try it again, and tell it what to do instead: adjourn retry s MESSAGE", "with a higher limit, as far as the agent lets callers ask for one: adjourn retry s --limit repeatedCalls=NUMBER"}},
		"a large state":   {report.View{Session: client.Session{Failure: limit(`{"limit":"stateBytes"}`)}}, []string{"with a higher limit, as far as the agent lets callers ask for one: adjourn retry s --limit stateBytes=NUMBER"}},
		"a larger state":  {report.View{Session: client.Session{Failure: limit(`{"limit":"stateBytes","used":197}`), Rules: &session.TaskRules{Limits: session.AskedLimits{StateBytes: 60}}}}, []string{"the limit stateBytes=60 was asked for with the task (it is in the rules of the task, not in the agent's definition)", "to try it again with a higher one: adjourn retry s --limit stateBytes=394"}},
		"nobody knows it": {report.View{Session: client.Session{Failure: limit(`{"limit":"stairs\u001b"}`)}}, []string{"to try it again: adjourn retry s"}},
		"no data":         {report.View{Session: client.Session{Failure: limit(``)}}, []string{"to try it again: adjourn retry s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, where, _, _ := room(t)
			c.v.ID, c.v.Agent = "s", "toy"
			lines := report.AfterFailure(where, c.v)
			for i := range lines {
				lines[i] = strings.Replace(lines[i], "--data "+where.DataPath()+" ", "", 1)
			}
			require.Equal(t, append(c.says, "to start another session: adjourn run --session NEW-ID --agent toy MESSAGE"), lines)
		})
	}
}
