package worker

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/internal/toolrun"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/tool"
)

// mayHaveRun reports whether an earlier invocation may have run a call: not while
// its reply is not committed, nor if this one committed it.
func (inv *invocation) mayHaveRun(call string) bool {
	n := inv.session.Newest
	return slices.ContainsFunc(inv.session.Calls, func(c session.Call) bool { return c.ID == call }) &&
		(n.Kind != session.KindReplied || n.Attempt.ID != inv.attempt.ID)
}

// reuse takes what a finished call brought.
func (o *callOutcome) reuse(record journal.ToolRecord) {
	o.result, o.ops, o.events = record.Result, record.StateOps, record.Events
	if record.Ran != nil {
		o.runs = append(o.runs, *record.Ran)
	}
}

// settleOne gives a call its result or its wait, unless it has run under the program
// before this one, or has finished since a person was asked about it: that counts before
// a refusal, before anybody is asked, and before what the person said.
func (inv *invocation) settleOne(ctx context.Context, p engine.CallPlan) callOutcome {
	out := callOutcome{call: p.Call}
	switch {
	case p.NeverRan:
		out = inv.settleNotRun(ctx, p.Call, p.Result)
	case p.Looked:
		out = inv.settleVerdict(ctx, p)
	case p.Unknown:
		inv.settleUnknown(p, &out)
	case (p.Refused || p.Do == engine.DoWait) && inv.recoverEarlier(ctx, p, inv.ledger(p.Call.ID), &out):
	case p.Do == engine.DoWait:
		out.waits = []session.Wait{p.Wait}
	default:
		out.result = &p.Result
	}
	if p.Mismatch {
		inv.tellMismatch(ctx, p, &out)
	}
	return out
}

// recoverEarlier looks for what an earlier attempt did of a call that this program does not run
// as a side effect: this program refuses the call, asks a person about it, or declares its tool
// harmless. An earlier version of the program may have had another tool of that name, and the
// ledger counts before the present declaration. If nothing is recorded, the plan is unchanged,
// and a call that is not to run here is closed with the entry that says so, so that no worker of
// the earlier version runs it.
func (inv *invocation) recoverEarlier(ctx context.Context, p engine.CallPlan, book *ledger.Book, out *callOutcome) (found bool) {
	if !inv.mayHaveRun(p.Call.ID) {
		return false
	}
	if out.err = book.Load(ctx); out.err != nil {
		return false
	}
	asksFirst := p.Do == engine.DoWait && p.Wait.Kind == session.WaitApproval
	runs := p.Do == engine.DoRun || asksFirst
	switch book.Record().State {
	case journal.ToolFinished:
		out.reuse(book.Record())
		return true
	case journal.ToolClosed:
		if runs && !p.Traits.Client { // a client's call is closed here when it is handed over, and may be asked anew
			return inv.recoverClosed(ctx, p.Call, out)
		}
		return false
	case journal.ToolStarted:
	case journal.ToolAsking, journal.ToolMemo, "":
		if !runs {
			inv.addNotRun(book)
		}
		return false
	}
	policy := p.Traits.OnUnknown
	if asksFirst && (policy == session.UnknownProbe || policy == session.UnknownRetry) {
		return false // it may be started again, but not before it is approved
	}
	if out.err = inv.renewFor(ctx, 0); out.err != nil {
		return false
	}
	// Nothing can look for it or run it again: its arguments are refused, or it is a client's now.
	inv.settleUnknown(p, out)
	return true
}

// settleVerdict ends a call with a person's verdict about it, or with the fact that none was
// given, unless its worker was only frozen and has recorded its result in the ledger since.
func (inv *invocation) settleVerdict(ctx context.Context, p engine.CallPlan) callOutcome {
	out, book := callOutcome{call: p.Call, result: &p.Result}, inv.ledger(p.Call.ID)
	if out.err = book.Load(ctx); out.err != nil {
		return out
	}
	if r := book.Record(); r.State == journal.ToolFinished && r.Result != nil && r.Result.Status != llm.ResultUnknown {
		out.reuse(r)
	}
	return out
}

// recoverClosed ends a call that must never run. The worker that closed it died before it wrote
// the entry, or is about to write it: then that worker, which has the lease, decides the result.
func (inv *invocation) recoverClosed(ctx context.Context, c session.Call, out *callOutcome) bool {
	if out.err = inv.renewFor(ctx, 0); out.err != nil {
		return false
	}
	result := engine.Result(c, llm.ResultCancelled, engine.TextCancelled)
	out.result = &result
	return true
}

// settleUnknown ends a call whose outcome cannot be found out: by the policy, either a person is
// asked or the model gets an unknown result.
func (inv *invocation) settleUnknown(p engine.CallPlan, out *callOutcome) {
	result, wait := toolrun.Unknown(p)
	if out.result = result; wait != nil {
		out.waits = []session.Wait{*wait}
	}
}

// recoverStarted decides about a call whose ledger says that it was started or
// finished before. Only the owner of the lease may say that an outcome is unknown.
func (inv *invocation) recoverStarted(ctx context.Context, t tool.Tool, p engine.CallPlan, state *session.State, book *ledger.Book, out *callOutcome) (bool, error) {
	if book.Record().State == journal.ToolFinished {
		out.reuse(book.Record())
		return false, nil
	}
	if err := inv.renewFor(ctx, 0); err != nil {
		return false, err
	}
	switch p.Traits.OnUnknown {
	case session.UnknownRetry:
		return startAgain(ctx, book, out)
	case session.UnknownProbe:
		return inv.probe(ctx, t, p, state, book, out)
	case session.UnknownAsk, session.UnknownTell, "":
		inv.settleUnknown(p, out)
	}
	return false, nil
}

// probe asks the tool whether the side effect happened: if so its result counts,
// if not the call is started again.
func (inv *invocation) probe(ctx context.Context, t tool.Tool, p engine.CallPlan, state *session.State, book *ledger.Book, out *callOutcome) (bool, error) {
	if result := toolrun.Probe(ctx, t, inv.newCall(p, state, book), p); result != nil {
		out.result = result
		return false, nil
	}
	return startAgain(ctx, book, out)
}

// startAgain overtakes the mark of another attempt, unless the call has finished
// meanwhile: then that counts.
func startAgain(ctx context.Context, book *ledger.Book, out *callOutcome) (started bool, err error) {
	started, err = book.Start(ctx, true)
	if err == nil && !started {
		out.reuse(book.Record())
	}
	return started, err
}
