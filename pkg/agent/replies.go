package agent

import (
	"context"
	"fmt"
)

// Replies returns a planner that gives these replies one after the other, beginning
// anew with each user message: for examples and tests, in place of a model. It keeps
// nothing between calls: which reply is next follows from the number of replies before
// it, not from what the tools returned. So a reply that says that all went well is given
// after a rejection or an error too; where that matters write a [PlannerFunc]. When a
// further reply is asked for, the task fails.
func Replies(replies ...Reply) Planner {
	return PlannerFunc(func(_ context.Context, v View) (Reply, error) {
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
		if given >= len(replies) {
			return Reply{}, fmt.Errorf("there are %d replies, and one more was asked for", len(replies))
		}
		return replies[given], nil
	})
}
