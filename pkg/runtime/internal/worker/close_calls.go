package worker

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Calls that will not run any more (docs/design/chain.md): their ledger is closed, so that the
// history never says "not run" of a call that runs later.

// closedOutcome is the result of a call that is closed without having run, by its ledger.
func closedOutcome(c session.Call, record journal.ToolRecord, result llm.ToolResult) callOutcome {
	out := callOutcome{call: c, result: &result}
	switch {
	case record.State == journal.ToolFinished && record.Result != nil:
		out.reuse(record)
	case record.State == journal.ToolStarted:
		result = engine.Result(c, llm.ResultUnknown, engine.TextUnknown)
	}
	return out
}

// callsWithoutResult are the open calls of a committed reply that an outcome has no result for.
func (inv *invocation) callsWithoutResult(out *engine.StepOutcome) []session.Call {
	return slices.DeleteFunc(slices.Clone(inv.session.Calls), func(c session.Call) bool {
		return slices.ContainsFunc(out.Results, func(r llm.ToolResult) bool { return r.CallID == c.ID })
	})
}

// CloseOpenCalls gives up every open call of a session for a verb, whose entry says so. It returns
// what became of the calls, within half of a step's bytes, for the answers and the message of the
// entry go beside it; and the ledgers to write with the entry, which has so many other items.
func (w *Worker) CloseOpenCalls(ctx context.Context, s *session.Session, beside int) (engine.StepOutcome, []store.Item, error) {
	inv := w.invoke(journal.NewWake(s.Key, 0, journal.WakeResume)) // written for no message
	inv.session = s
	var out engine.StepOutcome
	ledgers, err := inv.closeOpenCalls(ctx, &out, beside)
	if err != nil {
		return engine.StepOutcome{}, nil, err
	}
	cutResults(&out, w.cfg.StepBytes/2)
	return out, ledgers, nil
}

// closeOpenCalls closes every open call of a committed reply that has no result yet, in the
// transaction of the entry that says so. It returns the ledgers to write with that entry, each at
// the revision at which it was read. If the entry is refused, no call was closed; on
// [errLedgerMoved] the caller reads again. Ledgers that do not fit into the transaction are
// closed before it.
func (inv *invocation) closeOpenCalls(ctx context.Context, out *engine.StepOutcome, beside int) ([]store.Item, error) {
	room := store.MaxItems - beside - stored.BesideMove
	var closed []store.Item
	for _, c := range inv.callsWithoutResult(out) {
		cancelled := engine.Result(c, llm.ResultCancelled, engine.TextCancelled)
		book := inv.ledger(c.ID)
		if len(closed) >= room {
			record, err := book.CloseNotRun(ctx)
			if err != nil {
				return nil, err
			}
			inv.take(out, closedOutcome(c, record, cancelled))
			continue
		}
		if err := book.Load(ctx); err != nil {
			return nil, err
		}
		inv.take(out, closedOutcome(c, book.Record(), cancelled))
		if item, ok := book.Closed(); ok {
			closed = append(closed, item)
		}
	}
	return closed, nil
}

// settleNotRun ends a call that the step reports as not run: with the given result, or, if the
// call was started after all, with its real outcome. Only the owner of the lease may report that
// the outcome is unknown.
func (inv *invocation) settleNotRun(ctx context.Context, c session.Call, result llm.ToolResult) callOutcome {
	out, book := callOutcome{call: c}, inv.ledger(c.ID)
	if out.err = book.Load(ctx); out.err != nil {
		return out
	}
	if book.Record().State == journal.ToolStarted {
		if out.err = inv.renewFor(ctx, 0); out.err != nil {
			return out
		}
	}
	out = closedOutcome(c, book.Record(), result)
	inv.addNotRun(book)
	return out
}

// addNotRun remembers a call that the step's entry says will not run here: it is
// closed with that entry.
func (inv *invocation) addNotRun(book *ledger.Book) {
	if _, open := book.Closed(); open {
		inv.notRun = append(inv.notRun, book)
	}
}

// closeNotRun returns the ledgers that are closed with an entry of so many other
// items: of the calls noted by addNotRun of which the entry has a result, or
// opens a wait. Those that do not fit are closed before; one that was started
// meanwhile is [errLedgerMoved].
func (inv *invocation) closeNotRun(ctx context.Context, out *engine.StepOutcome, beside int) ([]store.Item, error) {
	opens := out.Waits[:min(len(out.Waits), session.MaxWaits)]
	room := store.MaxItems - beside - len(opens) - stored.BesideMove
	var closed []store.Item
	for _, book := range inv.notRun {
		told := slices.ContainsFunc(out.Results, func(r llm.ToolResult) bool { return r.CallID == book.Call }) ||
			out.Failure == nil && slices.ContainsFunc(opens, func(w session.Wait) bool { return w.Call == book.Call })
		item, open := book.Closed()
		switch {
		case !told || !open:
		case len(closed) < room:
			closed = append(closed, item)
		default:
			if _, err := book.CloseNotRun(ctx); err != nil {
				return nil, err
			}
			if book.HasRun() {
				return nil, errLedgerMoved
			}
		}
	}
	return closed, nil
}

// reloadLedgers reads the ledgers anew that an entry would have closed, or finished, one of which
// has moved. Where a call has been started after all, what the step says of it is wrong,
// and the step is done again: [errLedgerMoved].
func (inv *invocation) reloadLedgers(ctx context.Context) error {
	for _, book := range inv.notRun {
		if err := book.Reload(ctx); err != nil {
			return err
		}
		if book.HasRun() {
			return errLedgerMoved
		}
	}
	for _, book := range inv.marked {
		if err := book.Reload(ctx); err != nil {
			return err
		}
	}
	if inv.owed != nil {
		return inv.owed.book.Reload(ctx)
	}
	return nil
}

// closesLedger reports whether items close the call whose ledger an item is.
func closesLedger(items []store.Item, ledger *store.Item) bool {
	return ledger != nil && ledger.Kind == store.KindTool && slices.ContainsFunc(items, func(item store.Item) bool {
		return item.Kind == store.KindTool && item.ID == ledger.ID && item.Tool.State == journal.ToolClosed
	})
}
