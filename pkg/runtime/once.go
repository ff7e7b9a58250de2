package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/adjourn/adjourn/pkg/runtime/internal/idempotency"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// maxTries bounds how often a verb looks again after losing a race.
const maxTries = 8

// once carries a request out, or repeats the answer of the first time: again makes that answer
// from the record and sends again, because the first time the send may have failed. carry is
// called again when another writer was first. A refusal is returned, and recorded, only after the
// record was read once more: a copy of this same request may have caused the refusal meanwhile.
func once[T any](ctx context.Context, r *Runtime, c Caller, key session.Key, q *idempotency.Request, again func(did json.RawMessage) (T, error), carry func() (T, error)) (T, error) {
	var none T
	for try := 1; ; try++ {
		record, err := q.Before(ctx, r.sessions, r.cfg.Now)
		switch {
		case err != nil:
			return none, err
		case record != nil:
			return again(record.Answer)
		}
		out, err := carry()
		if err == nil {
			return out, nil
		}
		if record, lookErr := q.Before(ctx, r.sessions, r.cfg.Now); lookErr == nil && record != nil {
			return again(record.Answer)
		}
		switch {
		case !errors.Is(err, store.ErrConflict):
			r.answers.Audit(ctx, c, key, err)
			return none, err
		case try == maxTries:
			return none, changedWhileRead(key)
		}
	}
}
