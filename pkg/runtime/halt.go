package runtime

import (
	"context"

	"github.com/adjourn/adjourn/pkg/runtime/internal/halts"
	"github.com/adjourn/adjourn/pkg/session"
)

// HaltParams say whose steps are to stop, or to go on.
type HaltParams = halts.Params

// Halted is the result of a halt.
type Halted = halts.Halted

// Lifted is the result of lifting one.
type Lifted = halts.Lifted

// Halt is the kill switch: it stops the steps of an agent, of a tenant or of everything. Two seconds
// later none begins in any process; one that has begun is brought to its end. What is started or
// answered meanwhile is stored, and signals are obeyed. Nothing is lost, and [Runtime.Go] ends it.
func (r *Runtime) Halt(ctx context.Context, p HaltParams) (Halted, error) {
	return asResult(r.halts.Set(ctx, p))
}

// Go lifts the halts of just the scope that is given. The next sweeps send for the sessions that were
// held, or it does so itself ([Config.SendOnGo]).
func (r *Runtime) Go(ctx context.Context, p HaltParams) (Lifted, error) {
	out, err := r.halts.Lift(ctx, p)
	if err == nil && r.cfg.SendOnGo {
		if err := r.sweep.Lifted(ctx, out.Halts); err != nil {
			r.cfg.Log.WarnContext(ctx, "halts are lifted, and the next sweep sends", "error", err)
		}
	}
	return asResult(out, err)
}

// Halts returns the halts that hold sessions of a tenant, of all tenants where it is "".
func (r *Runtime) Halts(ctx context.Context, tenant string) ([]session.Halt, error) {
	return asResult(r.halts.List(ctx, tenant))
}
