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
