package worker

import "context"

// halted reports whether a halt keeps the session from its next step. Then the lease is given back,
// and the message is to be acknowledged: kept, it would come again and again, until it was a dead
// letter. Once the halt is lifted the sweep sends for the session, as for any that has lost its
// message. A signal is obeyed nevertheless: that is no step, and who stopped everything may well
// want to cancel something next.
func (inv *invocation) halted(ctx context.Context) (bool, error) {
	if inv.signal() != nil {
		return false, nil
	}
	halted, err := inv.cfg.Halts.Hold(ctx, inv.key, inv.session.Rules.Agent)
	if halted {
		inv.release(context.WithoutCancel(ctx))
	}
	return halted, err
}
