package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/runtime/internal/refusal"
)

// Stop interrupts, cancels or aborts a task (docs/design/README.md). Where a worker works on it,
// the signal is left on HEAD in one conditional write, and the worker obeys within a second;
// otherwise the task is stopped at once, in competition with the last answer, and one of the two
// wins. A stronger signal replaces a weaker one. Interrupting what has ended is refused; cancelling
// or aborting it does nothing, and says so.
func (r *Runtime) Stop(ctx context.Context, p StopParams) (Stopped, error) {
	return asResult(r.stop(ctx, p))
}

func (r *Runtime) stop(ctx context.Context, p StopParams) (Stopped, error) {
	switch {
	case p.Kind.Strength() == 0:
		return Stopped{}, refusal.New(CodeInvalidInput, p.Key, "there is no way to stop called %q", p.Kind)
	case p.Task < 0:
		return Stopped{}, refusal.New(CodeInvalidInput, p.Key, "task %d: tasks are counted from 1", p.Task)
	}
	if err := refusal.CheckReason(p.Key, p.Reason); err != nil {
		return Stopped{}, err
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Verb(p.Kind), p.IdempotencyKey, p.Key.ID, p.Reason, p.Task)
	if err != nil {
		return Stopped{}, err
	}
	request := control.StopRequest{
		Key: p.Key, Kind: p.Kind, Reason: p.Reason, Task: p.Task, Who: p.Caller.Who, From: p.Caller.From,
		Record: r.recorder(&q, p.Key),
	}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Stopped, error) {
		return r.stoppedBefore(ctx, p, did)
	}, func() (Stopped, error) {
		out, err := r.control.Stop(ctx, &request)
		return Stopped{Outcome: out.Outcome, Task: out.Task, Status: out.Status}, err
	})
}

// stoppedBefore answers a repeated request.
func (r *Runtime) stoppedBefore(ctx context.Context, p StopParams, did json.RawMessage) (Stopped, error) {
	var out control.Stopped
	if err := json.Unmarshal(did, &out); err != nil {
		return Stopped{}, fmt.Errorf("idempotency key %q: %w", p.IdempotencyKey, err)
	}
	before := Stopped{Outcome: out.Outcome, Task: out.Task, Status: out.Status, Replayed: true}
	if out.Outcome != StopSent {
		return before, nil
	}
	return before, r.control.SendAgain(ctx, p.Key, out.Task)
}
