package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// TestAskingLeftOut_is_never_yes: what a caller says, or leaves out, of how approvals are asked for never lets a
// call run that nobody approved: in the task, after an interruption, a way back, in a fork and in a next turn.
func TestAskingLeftOut_is_never_yes(t *testing.T) {
	t.Parallel()
	deny, ask := new(false), new(true)
	never := &session.ToolPolicy{Tools: map[string]session.ToolMode{"deploy": session.ToolNever}}
	auto := &session.ToolPolicy{Tools: map[string]session.ToolMode{"deploy": session.ToolAuto}, Default: session.ToolAuto}
	for name, c := range map[string]struct {
		first, then session.TaskRules
		// denied says whether the call is denied in the first task, after a way back and in a fork with what
		// is asked then, and in a next turn with that; else somebody is asked.
		denied, kept, next bool
	}{
		"nothing":                         {},
		"asks":                            {first: session.TaskRules{PauseOnApproval: ask}},
		"denies":                          {first: session.TaskRules{PauseOnApproval: deny}, denied: true, kept: true},
		"denies, then asks":               {first: session.TaskRules{PauseOnApproval: deny}, then: session.TaskRules{PauseOnApproval: ask}, denied: true},
		"asks, then denies":               {then: session.TaskRules{PauseOnApproval: deny}, kept: true, next: true},
		"never":                           {first: session.TaskRules{Policy: never}, denied: true, kept: true},
		"never, then auto":                {first: session.TaskRules{Policy: never}, then: session.TaskRules{Policy: auto}, denied: true},
		"auto":                            {first: session.TaskRules{Policy: auto}, then: session.TaskRules{Policy: auto}},
		"auto, then never":                {first: session.TaskRules{Policy: auto}, then: session.TaskRules{Policy: never}, kept: true, next: true},
		"an empty policy":                 {first: session.TaskRules{Policy: &session.ToolPolicy{}}},
		"never, then an empty policy":     {first: session.TaskRules{Policy: never}, then: session.TaskRules{Policy: &session.ToolPolicy{}}, denied: true},
		"denies and never, then one less": {first: session.TaskRules{Policy: never, PauseOnApproval: deny}, then: session.TaskRules{PauseOnApproval: ask}, denied: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
			stands := func(denied bool, where string) {
				t.Helper()
				require.Empty(t, made.all(), where)
				want := session.StatusSuspended
				if denied {
					want = session.StatusCompleted
				}
				require.Equal(t, want, w.session().Status, where)
			}
			w.rules = c.first
			w.run(w.process(), "go")
			stands(c.denied, "first")
			if !c.denied { // another process goes on with it and has nothing to say
				_, err := w.stop(w.process(), runtime.SignalInterrupt)
				require.NoError(t, err)
				_, err = w.goOn(w.process())
				require.NoError(t, err)
				require.NoError(t, w.process().settle())
				stands(false, "resumed")
			}
			_, err := acknowledging(w.process(), &runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: people, Rules: c.then})
			require.NoError(t, err)
			require.NoError(t, w.process().settle())
			stands(c.kept, "restored")
			origin := w.key
			_, err = w.process().Fork(t.Context(), runtime.ForkParams{Origin: origin, ID: "copy", Checkpoint: checkpointAt(w, 1), Message: llm.TextParts("go"), Caller: people})
			require.NoError(t, err)
			w.key.ID = "copy"
			require.NoError(t, w.process().settle())
			stands(c.kept, "forked")
			if w.key = origin; !w.session().Status.Ended() {
				_, err := w.stop(w.process(), runtime.SignalCancel)
				require.NoError(t, err)
			}
			w.rules = c.then
			w.run(w.process(), "go")
			stands(c.next, "next turn")
			w.checkAtRest()
		})
	}
}
