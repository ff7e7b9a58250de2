package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// A repeated message is the first one; with a checkpoint it is another request.
func TestRequest_message_after_an_interruption_keeps_its_key(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, p := interruptedWaiting(t)
	w.interrupt()
	params := runtime.ResumeParams{Key: w.key, Caller: person, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("go"), IdempotencyKey: "k"}
	_, err := p.Resume(ctx, params)
	require.NoError(t, err)
	again, err := p.Resume(ctx, params)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	params.Checkpoint = w.session().Checkpoint().String()
	_, err = p.Resume(ctx, params)
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err))
}

// A repeated continue does not drive on what was stored after it.
func TestRequest_continue_repeated_after_it_moved_on_acts_no_more(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), calls("deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	hold := func(i int) {
		_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, HoldResume: true, Answer: fill(w.waits()[i].Wait, yes())})
		require.NoError(t, err)
	}
	hold(0)
	params := runtime.ResumeParams{Key: w.key, Caller: person, IdempotencyKey: "k"}
	_, err := p.Resume(ctx, params)
	require.NoError(t, err)
	require.NoError(t, p.work())
	require.Len(t, w.waits(), 2)
	hold(1)
	again, err := p.Resume(ctx, params)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.NoError(t, p.work())
	require.Equal(t, session.StatusSuspended, w.session().Status)
}
