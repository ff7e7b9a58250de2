package worker

import (
	"errors"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// What the journal remembers of the calls of a step beside what came of them.

// modelCalls says how the planner's call of its model went. A planner that asked
// none has nothing to tell.
func (inv *invocation) modelCalls(began time.Time, reply agent.Reply, err error) []journal.ModelCall {
	var class llm.ErrorClass
	if err != nil {
		failed := (*llm.Error)(nil)
		if !errors.As(err, &failed) {
			return nil // it did not come from a model
		}
		class = failed.Class
	} else if inv.session.Rules.Model == "" && reply.Model == "" && reply.Usage == (llm.Usage{}) && reply.CostMicros == 0 {
		return nil
	}
	return []journal.ModelCall{{
		Model: shortText(reply.Model), ID: shortText(reply.ResponseID), At: toMillis(began), Millis: inv.millisSince(began), Finish: reply.Finish, Error: string(class),
	}}
}

// recordRun records one run of a tool, also for its ledger.
func (inv *invocation) recordRun(p engine.CallPlan, began time.Time, book *ledger.Book, out *callOutcome) {
	run := journal.ToolRun{Call: p.Call.ID, At: toMillis(began), Millis: inv.millisSince(began), Digest: journal.Digest(p.Arguments), ByPolicy: p.Allowed}
	if p.Permission != nil {
		run.Permission = p.Permission.ID
	}
	out.runs = append(out.runs, run)
	if book != nil {
		ran := run
		book.Ran(ran)
	}
}

// millisSince returns the milliseconds since a time, none if the clock was set back.
func (inv *invocation) millisSince(began time.Time) int64 {
	return max(inv.cfg.Now().Sub(began).Milliseconds(), 0)
}

// toMillis is a time as the history of calls has it: what is finer is not worth its bytes.
func toMillis(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// maxShortText bounds what a provider says of itself.
const maxShortText = 200

// shortText is a short text of a provider's as it may be kept.
func shortText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxShortText)], "")
}
