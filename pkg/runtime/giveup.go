package runtime

import (
	"context"
	"slices"

	"github.com/adjourn/adjourn/pkg/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Calls that are given up before they have run (design section 4.1): their ledger
// says closed, so that history never says "not run" of something that then happens.

// giveUp closes a call that has not run: it ends with the given result, or with
// what really became of it if it was started after all.
func (inv *invocation) giveUp(ctx context.Context, c session.Call, result llm.ToolResult) (callOutcome, error) {
	record, err := inv.ledger(c.ID).closeUnrun(ctx)
	if err != nil {
		return callOutcome{call: c}, err
	}
	return gaveUp(c, record, result), nil
}

// gaveUp is what a call that is given up ends with, by its ledger.
func gaveUp(c session.Call, record session.ToolRecord, result llm.ToolResult) callOutcome {
	out := callOutcome{call: c, result: &result}
	switch {
	case record.State == session.ToolFinished && record.Result != nil:
		out.reuse(record)
	case record.State == session.ToolStarted:
		result = engine.Result(c, llm.ResultUnknown, engine.TextUnknown)
	}
	return out
}

// withoutResult are the open calls of a committed reply that an outcome has no result for.
func (inv *invocation) withoutResult(out *engine.StepOutcome) []session.Call {
	return slices.DeleteFunc(slices.Clone(inv.session.Calls), func(c session.Call) bool {
		return slices.ContainsFunc(out.Results, func(r llm.ToolResult) bool { return r.CallID == c.ID })
	})
}

// giveUpAll gives up every open call of a committed reply that has no result yet, in
// the transaction of the entry that says so: it returns the ledgers to be written
// with it, each at the revision it was read at. When that entry is refused, nothing
// was given up: for [errLedgerMoved] look again. Beside so many other items, those
// that do not fit are closed before.
func (inv *invocation) giveUpAll(ctx context.Context, out *engine.StepOutcome, beside int) ([]store.Item, error) {
	room := store.MaxItems - beside - 3 // the entry, HEAD, the run
	var closed []store.Item
	for _, c := range inv.withoutResult(out) {
		cancelled := engine.Result(c, llm.ResultCancelled, engine.TextCancelled)
		if len(closed) >= room {
			outcome, err := inv.giveUp(ctx, c, cancelled)
			if err != nil {
				return nil, err
			}
			take(out, outcome)
			continue
		}
		book := inv.ledger(c.ID)
		if err := book.load(ctx); err != nil {
			return nil, err
		}
		take(out, gaveUp(c, book.record, cancelled))
		if item, ok := book.closed(); ok {
			closed = append(closed, item)
		}
	}
	return closed, nil
}

// closes reports whether items close the call whose ledger an item is.
func closes(items []store.Item, ledger *store.Item) bool {
	return ledger != nil && ledger.Kind == store.KindTool && slices.ContainsFunc(items, func(item store.Item) bool {
		return item.Kind == store.KindTool && item.ID == ledger.ID && item.Tool.State == session.ToolClosed
	})
}

// closed returns the record that closes a call that has not run, to be written with
// the entry that says so; ok is false when there is nothing to close.
func (l *ledger) closed() (store.Item, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.record.State {
	case session.ToolStarted, session.ToolFinished, session.ToolClosed:
		return store.Item{}, false
	case session.ToolAsking, session.ToolMemo, "":
	}
	record := l.record
	record.State, record.Attempt, record.At = session.ToolClosed, l.inv.attempt.ID, l.inv.r.cfg.Now().UTC()
	return store.ToolItem(record, l.rev), true
}
