package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
)

// stopped decides what an error, or a cancelled context, means for the step.
func (inv *invocation) stopped(ctx, stepCtx context.Context, err error, out engine.StepOutcome, stop func()) error {
	cause := context.Cause(stepCtx)
	stop()
	switch {
	case errors.Is(cause, errSignalled):
		signal, err := inv.stopSignal(ctx)
		if err != nil || signal == nil {
			return errors.Join(err, errHeadMoved)
		}
		return inv.obey(ctx, *signal, out)
	case errors.Is(cause, errSuperseded):
		return errSuperseded
	}
	return err
}

// obey commits what a signal asks for. Calls that have not run are closed in their
// ledger first; those that finished keep their results.
func (inv *invocation) obey(ctx context.Context, signal session.Signal, done engine.StepOutcome) error {
	ctx = context.WithoutCancel(ctx)
	for {
		out := engine.StepOutcome{Used: done.Used}
		out.Used.Active += inv.active()
		if done.Reply == nil { // the reply is committed, and with it what its calls did
			out.Results, out.StateOps, out.Events = slices.Clone(done.Results), done.StateOps, done.Events
		}
		if signal.Kind == session.SignalInterrupt {
			// What was cut off before it took effect runs again when the task goes on.
			out.Results = slices.DeleteFunc(out.Results, func(r llm.ToolResult) bool { return r.Status == llm.ResultCancelled })
		}
		have := map[string]bool{}
		for _, result := range out.Results {
			have[result.CallID] = true
		}
		for _, c := range inv.session.Calls {
			if have[c.ID] {
				continue
			}
			if err := inv.closeForSignal(ctx, c, signal, &out); err != nil {
				return err
			}
		}
		err := inv.commit(ctx, engine.Stopped(inv.session, signal, out, inv.stamp(false)))
		if !errors.Is(err, errHeadMoved) {
			return err
		}
		if stronger := inv.signal(); stronger != nil {
			signal = *stronger
		}
	}
}

func (inv *invocation) closeForSignal(ctx context.Context, c session.Call, signal session.Signal, out *engine.StepOutcome) error {
	if signal.Kind == session.SignalInterrupt {
		// What has not finished stays open and runs when the task goes on.
		book := inv.ledger(c.ID)
		if err := book.load(ctx); err != nil {
			return err
		}
		if book.record.State == session.ToolFinished && book.record.Result != nil {
			out.Results = append(out.Results, *book.record.Result)
			out.StateOps = append(out.StateOps, book.record.StateOps...)
			out.Events = append(out.Events, book.record.Events...)
		}
		return nil
	}
	result, err := inv.giveUp(ctx, c, engine.Result(c, llm.ResultCancelled, engine.TextCancelled))
	if err != nil {
		return err
	}
	out.Results = append(out.Results, result)
	return nil
}
