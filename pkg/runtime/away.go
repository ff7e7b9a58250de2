package runtime

import (
	"context"

	"github.com/adjourn/adjourn/pkg/runtime/internal/away"
)

// AwayParams say who is away, and who stands in for them.
type AwayParams = away.Params

// Away says who stands in for whom in a tenant: what is in force, what is to come, and the newest changes.
type Away = away.Record

// AwayChanged is the result of saying that somebody is away, or back.
type AwayChanged = away.Changed

// SetAway says who stands in for the caller while they are away: who answers what waits for them by name, in
// their place. It replaces what they said before. People who would stand in for each other are refused with
// [CodeStandInCycle].
func (r *Runtime) SetAway(ctx context.Context, p AwayParams) (AwayChanged, error) {
	return asResult(r.away.Set(ctx, p))
}

// EndAway says that the caller is back. What was answered in their place stays answered.
func (r *Runtime) EndAway(ctx context.Context, p AwayParams) (AwayChanged, error) {
	return asResult(r.away.End(ctx, p))
}

// Away returns who stands in for whom.
func (r *Runtime) Away(ctx context.Context, tenant string) (Away, error) {
	return asResult(r.away.Read(ctx, tenant))
}
