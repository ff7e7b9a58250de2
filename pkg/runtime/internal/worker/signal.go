package worker

import (
	"context"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// handleStop decides what an error, or a cancelled context, means for the step.
func (inv *invocation) handleStop(ctx, stepCtx context.Context, err error, out engine.StepOutcome, asking []store.Item, stop func()) error {
	cause := context.Cause(stepCtx)
	stop()
	free := inv.takeBack()
	asking = append(asking, free...)
	unfinished, unfree := inv.finishOwed(ctx, nil), inv.giveFree(ctx)
	if err = errors.Join(err, unfinished, unfree); errors.Is(unfinished, errSuperseded) || unfree != nil {
		// What a signal's entry would say of these calls is another worker's to say, or not known.
		return errors.Join(err, inv.putAsking(ctx, asking))
	}
	switch {
	case errors.Is(cause, errSignalled), errors.Is(err, errSignalled):
		signal, readErr := inv.stopSignal(ctx)
		if readErr == nil && signal != nil {
			return inv.obeySignal(ctx, *signal, out, asking)
		}
		err = errors.Join(readErr, stored.ErrHeadMoved)
	case errors.Is(cause, errSuperseded):
		return errors.Join(errSuperseded, inv.putAsking(ctx, free))
	}
	// This worker is being ended, or cannot continue.
	return errors.Join(err, inv.putAsking(ctx, asking))
}

// obeySignal commits what a signal asks for. Calls that have not run are closed in their ledger
// with it; those that finished keep their results. asking are the ledgers of calls that asked a
// person: after an interruption they may be started again. They are written also when the
// signal's entry cannot be written, because such a call has returned, and the worker that repeats
// the step may ask again.
func (inv *invocation) obeySignal(ctx context.Context, signal journal.Signal, done engine.StepOutcome, asking []store.Item) error {
	ctx = context.WithoutCancel(ctx)
	err := inv.finishOwed(ctx, nil)
	if err == nil {
		err = inv.commitSignal(ctx, signal, done, asking)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, inv.putAsking(ctx, asking))
}

// commitSignal carries out the signal that HEAD holds when the entry is written: it may be a
// stronger one than that which stopped the step.
func (inv *invocation) commitSignal(ctx context.Context, signal journal.Signal, done engine.StepOutcome, asking []store.Item) error {
	for {
		done.Used.Active += inv.active()
		out := engine.StepOutcome{Used: done.Used, Mail: done.Mail, MailMessages: done.MailMessages, Requesters: done.Requesters}
		if err := inv.takeLateMail(ctx, &out); err != nil {
			return err
		}
		keeps := done.KeepsReply(signal)
		if done.Reply == nil || keeps { // else what its calls did is given up with it
			out.Results, out.StateOps, out.Events = slices.Clone(done.Results), done.StateOps, done.Events
		}
		if keeps {
			out.Reply = done.Reply
		}
		if signal.Kind == journal.SignalInterrupt {
			// What was cut off before it took effect runs again when the task goes on.
			out.Results = slices.DeleteFunc(out.Results, func(r llm.ToolResult) bool { return r.Status == llm.ResultCancelled })
		}
		extra, err := inv.closeForSignal(ctx, signal, &out, asking)
		if err != nil {
			return err
		}
		cutResults(&out, inv.cfg.StepBytes)
		err = inv.commit(ctx, engine.Stopped(inv.session, signal, out, inv.stamp(false)), extra...)
		if errors.Is(err, errLedgerMoved) {
			if err := inv.reloadLedgers(ctx); err != nil {
				return err
			}
		} else if !errors.Is(err, stored.ErrHeadMoved) {
			return err
		}
		signal = inv.orStronger(signal)
	}
}

// orStronger returns the signal of HEAD, if it is as strong as this one: a verb's own is not on HEAD,
// and may be the stronger. What somebody has asked for is not the deadline's.
func (inv *invocation) orStronger(signal journal.Signal) journal.Signal {
	there, least := inv.signal(), signal.Kind.Strength()
	if there != nil && there.From == journal.FromRules {
		least++
	}
	if there != nil && there.Kind.Strength() >= least {
		return *there
	}
	return signal
}

// closeForSignal ends the open calls, and returns the ledgers to be written with the
// entry that says so. An interrupted task keeps those that have not finished: they
// run when it goes on, and those that asked may be started again.
func (inv *invocation) closeForSignal(ctx context.Context, signal journal.Signal, out *engine.StepOutcome, asking []store.Item) ([]store.Item, error) {
	if signal.Kind != journal.SignalInterrupt {
		asking = nil
	}
	var beside []store.Item
	if inv.beside != nil {
		var err error
		if beside, err = inv.beside(signal.Kind.LeadsTo()); err != nil {
			return nil, err
		}
	}
	told, err := inv.closeNotRun(ctx, out, len(asking)+len(beside))
	if err != nil {
		return nil, err
	}
	told = append(told, beside...)
	if signal.Kind != journal.SignalInterrupt {
		closed, err := inv.closeOpenCalls(ctx, out, len(told))
		return append(told, closed...), err
	}
	for _, c := range inv.callsWithoutResult(out) {
		book := inv.ledger(c.ID)
		if err := book.Load(ctx); err != nil {
			return nil, err
		}
		if book.Record().State == journal.ToolFinished {
			finished := callOutcome{call: c}
			finished.reuse(book.Record())
			inv.take(out, finished)
		}
	}
	return append(told, asking...), nil
}
