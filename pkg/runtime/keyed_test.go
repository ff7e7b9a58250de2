package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
)

// TestRequest_key_holds_everything: the same key of two people is two keys; each verb's own;
// hold, reason and checkpoint are part of what is asked.
func TestRequest_key_holds_everything(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	a := runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes()), IdempotencyKey: "k"}
	_, err := p.Submit(ctx, a)
	require.NoError(t, err)
	a.HoldResume = true
	_, err = p.Submit(ctx, a)
	require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err), "autoResume")
	b := runtime.SubmitParams{Key: w.key, Caller: runtime.Caller{Who: "eve"}, Answer: fill(w.waits()[1].Wait, no()), IdempotencyKey: "k"}
	_, err = p.Submit(ctx, b)
	require.NoError(t, err, "another caller's key is another")
	d := runtime.DecideParams{Key: w.key, Caller: person, Approve: []string{w.waits()[0].Wait.ID}, Reject: []string{w.waits()[1].Wait.ID}, IdempotencyKey: "k"}
	_, err = p.Decide(ctx, d)
	require.NoError(t, err, "another verb's key is another")
	for name, change := range map[string]func(*runtime.DecideParams){
		"reason":     func(d *runtime.DecideParams) { d.Reason = "because" },
		"checkpoint": func(d *runtime.DecideParams) { d.Checkpoint = w.session().Checkpoint().String() },
		"edited": func(d *runtime.DecideParams) {
			d.EditedInput = map[string]json.RawMessage{w.waits()[0].Wait.ID: json.RawMessage(`{"text":"x"}`)}
		},
	} {
		other := d
		change(&other)
		_, err = p.Decide(ctx, other)
		require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(err), name)
	}
}
