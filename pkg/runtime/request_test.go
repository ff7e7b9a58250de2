package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
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

// JSON that is none is the request's fault, with a key as without.
func TestRequest_key_with_bad_input_is_a_bad_request(t *testing.T) {
	t.Parallel()
	made := newEffects()
	w := newWorld(t, made, helper(made, script{"go": {calls("deploy", `{"text":"1"}`), says("bye")}}))
	p := w.process()
	w.run(p, "go")
	a := fill(w.open(session.WaitApproval).Wait, yes())
	a.EditedInput = json.RawMessage(`{"text":`)
	_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a})
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err))
	_, err = p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: a, IdempotencyKey: "k"})
	require.Equal(t, runtime.CodeInvalidAnswer, codeOf(err), "%v", err)
}

// keyed are requests of every verb with a key, and the status a session has before.
func keyed() map[string]struct {
	status string
	send   func(w *world, p *process) error
} {
	type request = struct {
		status string
		send   func(w *world, p *process) error
	}
	ctx := context.Background()
	submit := func(status string, hold bool, a session.Answer) request {
		return request{status, func(w *world, p *process) error {
			_, err := p.Submit(ctx, runtime.SubmitParams{Key: w.key, Caller: person, Answer: a, HoldResume: hold, IdempotencyKey: "k"})
			return err
		}}
	}
	resume := func(status string, change func(w *world, p *runtime.ResumeParams)) request {
		return request{status, func(w *world, p *process) error {
			params := runtime.ResumeParams{Key: w.key, Caller: person, IdempotencyKey: "k"}
			change(w, &params)
			_, err := p.Resume(ctx, params)
			return err
		}}
	}
	decide := func(status string, d runtime.DecideParams) request {
		return request{status, func(w *world, p *process) error {
			d.Key, d.Caller, d.IdempotencyKey = w.key, person, "k"
			_, err := p.Decide(ctx, d)
			return err
		}}
	}
	message := func(_ *world, p *runtime.ResumeParams) {
		p.Mode, p.Message = runtime.ResumeWithMessage, llm.TextParts("message")
	}
	return map[string]request{
		"start": {"completed", func(w *world, p *process) error {
			_, err := p.Start(ctx, runtime.StartParams{Key: w.key, Input: llm.TextParts("approve"), Caller: person, IdempotencyKey: "k"})
			return err
		}},
		"approval":       submit("approve", false, session.Answer{Kind: session.AnswerApproval, Wait: "w2-1", Approved: yes().Approved}),
		"held approval":  submit("approve", true, session.Answer{Kind: session.AnswerApproval, Wait: "w2-1", Approved: yes().Approved}),
		"client result":  submit("client", false, session.Answer{Kind: session.AnswerClientTool, ToolCallID: "c2-1", Result: json.RawMessage(`1`)}),
		"a message":      submit("input", false, session.Answer{Kind: session.AnswerMessage, Message: llm.TextParts("message")}),
		"decisions":      decide("two", runtime.DecideParams{Approve: []string{"w2-1"}}),
		"rejecting all":  decide("two", runtime.DecideParams{RejectAll: true}),
		"with a message": resume("input", message),
		"told":           resume("interrupted", message),
		"continue":       resume("interrupted", func(*world, *runtime.ResumeParams) {}),
		"go on":          resume("answered", func(*world, *runtime.ResumeParams) {}),
		"a confirmation": resume("approve", func(_ *world, p *runtime.ResumeParams) {
			p.Mode, p.Confirmation = runtime.ResumeWithConfirmation, runtime.Confirmation{Wait: "w2-1", Approved: true}
		}),
	}
}

// TestLostAnswers_of_every_verb: a process dies at each of its writes and sends while
// it carries a request out, and the caller, who has no answer, sends the same request
// with its key again, and once more later: it is as if it had been sent once.
func TestLostAnswers_of_every_verb(t *testing.T) {
	t.Parallel()
	for name, request := range keyed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play := func(f *fuse) string {
				w, p := in(t, request.status)
				if err := request.send(w, w.fusedProcess(f, true, 1)); err != nil {
					require.True(t, f.blown(), "%v", err)
				}
				require.NoError(t, request.send(w, w.process()), "at %d of %v", f.at, f.ops)
				require.NoError(t, p.settle())
				before := len(w.journal())
				require.NoError(t, request.send(w, w.process()), "later")
				require.NoError(t, p.settle())
				require.Len(t, w.journal(), before, "the request counts once")
				return fmt.Sprint(w.kinds(), w.effects.all(), len(w.waits()), asJSON(t, results(w.session())))
			}
			want := play(&fuse{})
			for at := 1; ; at++ {
				f := &fuse{at: at}
				require.Equal(t, want, play(f), "before %v", f.ops)
				if !f.blown() {
					break
				}
				require.Equal(t, want, play(&fuse{at: at, after: true}), "after %v", f.ops)
			}
		})
	}
}
