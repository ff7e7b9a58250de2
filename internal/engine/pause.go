package engine

import (
	"slices"
	"strings"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// giveUpFinish closes the finish calls of a reply after which the task waits for a message: they would end
// the task before the agent has read it.
func giveUpFinish(plans []CallPlan) {
	for i := range plans {
		if p := &plans[i]; p.Do == DoRun && p.Traits.Finish {
			p.Do, p.NeverRan, p.Result = DoResult, true, Result(p.Call, llm.ResultCancelled, TextCancelled)
		}
	}
}

// Pause adds the wait for a message to the outcome of a step whose calls a policy has denied, if it has the
// task wait then. The calls have their results: no answer makes them run. One that ran while it was allowed
// is not waited for.
func Pause(plans []CallPlan, out *StepOutcome) {
	var denied []string
	for _, p := range plans {
		if p.Pauses && slices.ContainsFunc(out.Results, func(r llm.ToolResult) bool { return r.CallID == p.Call.ID && r.Status == llm.ResultDenied }) {
			denied = append(denied, p.Call.Name)
		}
	}
	if len(denied) == 0 {
		return
	}
	slices.Sort(denied)
	w := session.Wait{Kind: session.WaitInput, Text: "The policy of this task never allows " + strings.Join(slices.Compact(denied), ", ") +
		". What the agent called was not run, and no answer makes it run. Say how to go on, or cancel the task."}
	out.Waits = append([]session.Wait{w}, out.Waits...) // the last ones may be asked later
}
