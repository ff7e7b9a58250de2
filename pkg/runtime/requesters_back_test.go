package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// TestRequesters_earlier_task: who goes back to a checkpoint of an earlier task asks for what its requesters
// asked for, so that none of them decides.
func TestRequesters_earlier_task(t *testing.T) {
	t.Parallel()
	for name, fork := range map[string]bool{"going back": false, "a fork": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, made := context.Background(), newEffects()
			w := newWorld(t, made, helper(made, script{"go": {calls("pay", `{"text":"5"}`), says("bye")}, "five": {says("hi")}}, func(a *agent.Agent) {
				a.Tools = append(a.Tools, tool.Define(tool.Spec[textIn]{Name: "pay", Approve: tool.Always[textIn], NotRequester: true}, func(context.Context, *tool.Call, textIn) (string, error) { return "paid", nil }))
			}))
			p := w.process()
			w.run(p, "go")
			no := yes()
			no.Approved = new(false)
			_, err := w.votes(p, named("zoe"), no)
			require.NoError(t, err)
			require.NoError(t, p.settle())
			_, err = p.Send(ctx, runtime.SendParams{Key: w.key, Message: llm.TextParts("five"), Start: true, Caller: named("bob")})
			require.NoError(t, err)
			require.NoError(t, p.settle())
			if fork {
				copied := w.key
				copied.ID = "fork"
				_, err = p.Fork(ctx, runtime.ForkParams{Origin: w.key, Checkpoint: checkpointAt(w, 1), ID: copied.ID, Caller: named("cyd")})
				w.key = copied
			} else {
				_, err = p.GoBack(ctx, runtime.BackParams{Key: w.key, Checkpoint: checkpointAt(w, 1), Caller: named("cyd")})
			}
			require.NoError(t, err)
			require.NoError(t, p.settle())
			wait := w.open(session.WaitApproval).Wait
			require.Subset(t, wait.Requesters, []string{"ann", "cyd"})
			require.Subset(t, w.session().Requesters, wait.Requesters)
			_, err = w.votes(p, named("ann"), yes())
			require.Equal(t, runtime.CodeRequesterMayNotAnswer, codeOf(err))
		})
	}
}
