package agent

import (
	"context"
	"fmt"
	"slices"
)

// Replies returns a planner that gives these replies one after the other, beginning
// anew with each user message: for examples and tests, in place of a model. It keeps
// nothing between calls: which reply is next follows from the number of replies before
// it, not from what the tools returned. So a reply that says that all went well is given
// after a rejection or an error too; where that matters write a [PlannerFunc]. When a
// further reply is asked for, the task fails.
func Replies(all ...Reply) Planner { return replies(slices.Clone(all)) }

// replies are given one after the other.
type replies []Reply

// Plan gives the next reply.
func (r replies) Plan(_ context.Context, v View) (Reply, error) {
	given := 0
	for _, m := range v.Messages {
		switch m.Role {
		case RoleUser:
			given = 0
		case RoleAssistant:
			given++
		case RoleTool:
		}
	}
	if given >= len(r) {
		return Reply{}, fmt.Errorf("agent.Replies has %d for this task, and one more was asked for: after its last call a task needs a reply with the text that ends it", len(r))
	}
	return r[given], nil
}
