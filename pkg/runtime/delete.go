package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/pkg/runtime/internal/control"
	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/session"
)

// DeleteParams remove a session.
type DeleteParams struct {
	Key    session.Key
	Caller Caller
	// IdempotencyKey as in [StartParams].
	IdempotencyKey string
}

// Deleted is the result of a delete.
type Deleted struct {
	// Status and Task the session had.
	Status session.Status
	Task   int64
	// Replayed as in [Submitted].
	Replayed bool
}

// Delete removes a session for good, whatever it does (docs/design/README.md). A worker that works on
// it loses its next write; effects it has done are not undone. What waits is closed. The id is never
// used again. A session that was deleted is not found, except by the same request with the same key.
func (r *Runtime) Delete(ctx context.Context, p DeleteParams) (Deleted, error) {
	return asResult(r.delete(ctx, p))
}

func (r *Runtime) delete(ctx context.Context, p DeleteParams) (Deleted, error) {
	if err := p.Key.Validate(); err != nil {
		return Deleted{}, err
	}
	q, err := idempotency.New(p.Key.Tenant, p.Caller.Who, idempotency.Delete, p.IdempotencyKey, p.Key.ID)
	if err != nil {
		return Deleted{}, err
	}
	request := control.DeleteRequest{Key: p.Key, Who: p.Caller.Who, From: p.Caller.From, Record: r.recorder(&q, p.Key)}
	return once(ctx, r, p.Caller, p.Key, &q, func(did json.RawMessage) (Deleted, error) {
		before := Deleted{Replayed: true}
		if err := json.Unmarshal(did, &before); err != nil {
			return Deleted{}, fmt.Errorf("idempotency key %q: %w", p.IdempotencyKey, err)
		}
		return before, r.control.Remove(ctx, p.Key)
	}, func() (Deleted, error) {
		out, err := r.control.Delete(ctx, &request)
		return Deleted{Status: out.Status, Task: out.Task}, err
	})
}
