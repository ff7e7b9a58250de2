package runtime_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
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

// TestRequest_key_of_each_field: whatever is asked differently under the same key, it
// is refused, and nothing is done for it.
func TestRequest_key_of_each_field(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type (
		start  = runtime.StartParams
		submit = runtime.SubmitParams
		decide = runtime.DecideParams
		resume = runtime.ResumeParams
	)
	made := newEffects()
	first := newWorld(t, made, helper(made, script{
		"go": {calls("deploy", `{"text":"1"}`, "deploy", `{"text":"2"}`), says("bye")}, "say": {says("bye")}, "where": {needs("where?"), says("bye")},
	}))
	p := first.process()
	elsewhere := first.key
	elsewhere.ID = "elsewhere"
	base := func(input string) *world {
		w := first.another()
		first.number = w.number
		w.run(w.process(), input)
		return w
	}
	check := func(name string, w *world, send, changed func() error) {
		t.Helper()
		require.NoError(t, send(), name)
		before, waits := w.kinds(), w.waits()
		require.Equal(t, runtime.CodeIdempotencyMismatch, codeOf(changed()), name)
		require.NoError(t, send(), name)
		require.Equal(t, before, w.kinds(), name)
		require.Equal(t, waits, w.waits(), name)
	}
	for name, change := range map[string]func(*start){
		"session": func(s *start) { s.Key = elsewhere },
		"input":   func(s *start) { s.Input = llm.TextParts("go") },
		"tags":    func(s *start) { s.Tags = []string{"x"} },
		"agent":   func(s *start) { s.Agent = "b" },
	} {
		w := base("say")
		params := start{Key: w.key, Agent: "a", Input: llm.TextParts("say"), Caller: person, IdempotencyKey: "k" + name}
		other := params
		change(&other)
		check("start "+name, w, func() error { _, err := p.Start(ctx, params); return err }, func() error { _, err := p.Start(ctx, other); return err })
	}
	for name, change := range map[string]func(*submit){
		"session": func(s *submit) { s.Key = elsewhere },
		"wait":    func(s *submit) { s.Answer.Wait = "w2-2" },
		"answer":  func(s *submit) { s.Answer.Approved = no().Approved },
		"hold":    func(s *submit) { s.HoldResume = true },
	} {
		w := base("go")
		params := submit{Key: w.key, Caller: person, Answer: fill(w.waits()[0].Wait, yes()), IdempotencyKey: "k" + name}
		other := params
		change(&other)
		check("submit "+name, w, func() error { _, err := p.Submit(ctx, params); return err }, func() error { _, err := p.Submit(ctx, other); return err })
	}
	for name, change := range map[string]func(*decide){
		"session":     func(d *decide) { d.Key = elsewhere },
		"approve":     func(d *decide) { d.Approve = []string{"w2-1", "w2-2"} },
		"reject":      func(d *decide) { d.Reject = []string{"w2-2"} },
		"approve all": func(d *decide) { d.ApproveAll = true },
		"reject all":  func(d *decide) { d.RejectAll = true },
	} {
		w := base("go")
		params := decide{Key: w.key, Caller: person, Approve: []string{"w2-1"}, IdempotencyKey: "k" + name}
		other := params
		change(&other)
		check("decide "+name, w, func() error { _, err := p.Decide(ctx, params); return err }, func() error { _, err := p.Decide(ctx, other); return err })
	}
	for name, change := range map[string]func(*resume){
		"session":      func(r *resume) { r.Key = elsewhere },
		"mode":         func(r *resume) { r.Mode = runtime.ResumeContinue },
		"message":      func(r *resume) { r.Message = llm.TextParts("there") },
		"confirmation": func(r *resume) { r.Confirmation.Approved = true },
	} {
		w := base("where")
		params := resume{Key: w.key, Caller: person, Mode: runtime.ResumeWithMessage, Message: llm.TextParts("here"), IdempotencyKey: "r" + name}
		other := params
		change(&other)
		check("resume "+name, w, func() error { _, err := p.Resume(ctx, params); return err }, func() error { _, err := p.Resume(ctx, other); return err })
	}
}
