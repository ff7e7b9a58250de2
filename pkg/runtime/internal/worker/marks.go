package worker

import (
	"context"
	"errors"
	"slices"

	"github.com/adjourn/adjourn/internal/engine"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/ledger"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// Marks that a store may write with an entry, so that a step with one side effect is two durable
// writes. A store that gains nothing by that leaves them, and then each is a write of its own.

// startMarks returns the start marks of the side effects that run as soon as their reply is
// committed, and their ledgers.
func (inv *invocation) startMarks(plans []engine.CallPlan) (books []*ledger.Book, marks []store.Item) {
	if slices.ContainsFunc(plans, func(p engine.CallPlan) bool { return p.Do == engine.DoFail }) {
		return nil, nil // nothing will run
	}
	running := 0
	for _, p := range plans {
		if !runsFirst(p) {
			continue
		}
		if running++; running > min(inv.cfg.ToolsAtOnce, store.MaxItems-stored.BesideMove) {
			break
		}
		if p.Traits.Effect == session.SideEffect {
			book := inv.ledger(p.Call.ID)
			books, marks = append(books, book), append(marks, book.Mark())
		}
	}
	return books, marks
}

// marking says what is known of the marks that were to go with an entry.
type marking int

const (
	unmarked      marking = iota // none was put
	perhapsMarked                // an answer was lost: all or none
	marked
)

// keepMarks remembers the ledgers that have their marks, or may have them.
func (inv *invocation) keepMarks(of marking, books []*ledger.Book, marks []store.Item) {
	if of == unmarked || len(books) == 0 {
		return
	}
	inv.marked = make(map[string]*ledger.Book, len(books))
	for i, book := range books {
		inv.marked[book.Call] = book
		if of == marked {
			book.Marked(marks[i])
		} else {
			book.PerhapsMarked()
		}
	}
}

// giveFree takes back the marks that may have been written. An entry cannot do that: what is stored
// is not known, and another worker may have written a mark of its own.
func (inv *invocation) giveFree(ctx context.Context) error {
	var errs []error
	for _, book := range inv.marked {
		errs = append(errs, inv.sessions.Bounded(ctx, book.GiveFree))
	}
	return errors.Join(errs...)
}

// takeBack returns the ledgers of calls that are marked and have not begun, as they are to be
// written when the step stops: the calls may be started by another worker.
func (inv *invocation) takeBack() (items []store.Item) {
	for _, book := range inv.marked {
		if item, ok := book.TakeBack(); ok {
			items = append(items, item)
		}
	}
	return items
}

// finishMark says that a call has finished, and with what.
type finishMark struct {
	book   *ledger.Book
	result llm.ToolResult
	ops    []session.StateOp
	events []session.CustomEvent
}

func (inv *invocation) writeFinish(ctx context.Context, m *finishMark) error {
	return inv.sessions.Bounded(ctx, func(ctx context.Context) error { return m.book.Finish(ctx, m.result, m.ops, m.events) })
}

// finished writes the finish mark of a call, or leaves it to the step's entry: if nothing else
// runs, that follows at once.
func (inv *invocation) finished(ctx context.Context, m *finishMark, out *callOutcome) {
	if inv.joins && inv.running.Load() == 1 {
		out.owed = m
		return
	}
	out.err = inv.writeFinish(ctx, m)
}

// owedItems are the finish marks to be written with the step's entry: one or none.
func (inv *invocation) owedItems() []store.Item {
	if inv.owed == nil {
		return nil
	}
	return []store.Item{inv.owed.book.Finished(inv.owed.result, inv.owed.ops, inv.owed.events)}
}

// owes reports whether an item is the ledger of the call whose finish mark is owed, still ours: a
// tool that was left behind has remembered something.
func (inv *invocation) owes(ledger *store.Item) bool {
	return inv.owed != nil && ledger != nil && ledger.Kind == store.KindTool && ledger.ID == inv.owed.book.Call &&
		ledger.Tool != nil && ledger.Tool.State == journal.ToolStarted && ledger.Tool.Attempt == inv.attempt.ID
}

// finishOwed writes the finish mark alone that no entry has taken along. err is why; when the mark
// cannot be written either, both are returned.
func (inv *invocation) finishOwed(ctx context.Context, err error) error {
	if inv.owed == nil {
		return err
	}
	failed := inv.writeFinish(ctx, inv.owed)
	inv.owed = nil
	if err != nil && errors.Is(failed, errSuperseded) {
		return err // another worker has the call, and says what came of it
	}
	return errors.Join(err, failed)
}
