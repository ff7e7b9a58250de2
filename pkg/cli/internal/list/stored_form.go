package list

import (
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// opened is a wait in the form it has in the journal, which is what lists print as JSON.
func opened(w client.Wait) session.Wait {
	return session.Wait{
		ID: w.WaitID, Kind: w.Kind, Nonce: w.ApprovalID, Call: w.CallID, Tool: w.Tool, Arguments: w.Arguments, Digest: w.Digest,
		Question: w.Question, Text: w.Text, Child: w.ChildSessionID, OpenedAt: w.OpenedAt, Deadline: w.Deadline,
		Who: w.Who, Policy: w.Policy, Origin: w.Origin,
	}
}

// records are waits with what became of them, in the form they are stored in; what only
// the sweep needs is not in it.
func records(waits []client.Wait) []journal.WaitRecord {
	out := make([]journal.WaitRecord, len(waits))
	for i, w := range waits {
		out[i] = journal.WaitRecord{Wait: opened(w), State: w.State, Answer: w.Answer, Held: w.Held, Agent: w.Agent}
	}
	return out
}
