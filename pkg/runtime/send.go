package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/answers"
	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// SendParams send a message to a session.
type SendParams struct {
	Key session.Key
	// Message as Input of a start.
	Message []llm.Part
	// Task that it is for; 0 means the present one. It does not reach a later one.
	Task int64
	// Start says that a session which completed or was cancelled takes its next turn with it.
	Start  bool
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Sent is what became of a message.
type Sent struct {
	Outcome session.SendOutcome
	Task    int64
	// Seq is the entry that holds the message, where that is known.
	Seq int64
	// Mail is the id of the message where it waits for the next step: the entry that takes it in has it.
	Mail string
	// Continuation and Open as in [Submitted], of an answer.
	Continuation Continuation
	Open         []journal.WaitRecord
	// Replayed as in [Submitted].
	Replayed bool
}

// Send brings a message to a session, wherever it stands (docs/design/README.md): a running task takes
// it in with its next step; a session that waits for a message is answered; one that has ended takes
// its next turn, with Start. It is taken once: nothing that was accepted is left out of the history.
func (r *Runtime) Send(ctx context.Context, p SendParams) (Sent, error) {
	return asResult(r.send(ctx, p))
}

func (r *Runtime) send(ctx context.Context, p SendParams) (Sent, error) {
	if p.Task < 0 {
		return Sent{}, refusal.New(CodeInvalidInput, p.Key, "task %d: tasks are counted from 1", p.Task)
	}
	if err := answers.CheckInput(p.Key, p.Message); err != nil {
		return Sent{}, err
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Send, p.IdempotencyKey, p.Key.ID, p.Message, p.Task, p.Start)
	if err != nil {
		return Sent{}, err
	}
	request := control.SendRequest{
		Key: p.Key, Message: p.Message, Task: p.Task, Start: p.Start, By: p.Caller, Record: r.recorder(&q, p.Key),
	}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Sent, error) {
		return r.sentBefore(ctx, p.Key, did)
	}, func() (out Sent, err error) {
		q.As = nil
		did, err := r.control.Send(ctx, &request)
		if err != nil {
			return Sent{}, err
		}
		out = Sent{Outcome: did.Outcome, Task: did.Task, Seq: did.Seq, Mail: did.Mail}
		switch q.As = did; did.Outcome {
		case session.SendAnswered:
			answer := session.Answer{Wait: did.Wait, Kind: session.AnswerMessage, Message: p.Message}
			var submitted Submitted
			submitted, err = r.submitOnce(ctx, &SubmitParams{Key: p.Key, Caller: p.Caller, Answer: answer}, &q)
			out.Continuation, out.Open = submitted.Continuation, submitted.Open
		case session.SendStarted:
			_, err = r.start(ctx, StartParams{Key: p.Key, Input: p.Message, Caller: p.Caller}, &q, did.Seq)
		case session.SendQueued, session.SendAbandoned: // done
		}
		if class := AsError(err); class != nil && (class.Code.Class() == ClassConflict || class.Code.Class() == ClassGone) {
			err = fmt.Errorf("%w: %w", store.ErrConflict, err) // another writer was first: it may be taken elsewhere
		}
		return out, err
	})
}

// sentBefore answers a repeated request, and sends again what the first one may not have sent.
func (r *Runtime) sentBefore(ctx context.Context, key session.Key, did json.RawMessage) (Sent, error) {
	var before control.Sent
	if err := json.Unmarshal(did, &before); err != nil {
		return Sent{}, fmt.Errorf("session %s: record of an idempotency key: %w", key, err)
	}
	out := Sent{Outcome: before.Outcome, Task: before.Task, Seq: before.Seq, Mail: before.Mail, Replayed: true}
	if before.Wait != "" {
		submitted, err := r.submittedBefore(ctx, key, idempotency.Done{Wait: before.Wait}, Caller{})
		out.Continuation, out.Open = submitted.Continuation, submitted.Open
		return out, err
	}
	return out, r.sendAgain(ctx, key, before.Seq)
}
