package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// errClosed: the ledger was closed before the call ran, so the call must not run.
var errClosed = errors.New("the call was closed before it ran")

// ledger is the record of one call with effects (docs/design/README.md): what makes a
// side effect happen at most once, and keeps what Once remembered.
type ledger struct {
	inv  *invocation
	call string

	mu     sync.Mutex
	loaded bool
	record journal.ToolRecord
	rev    int64
	// ran is the last run of the call here, to be recorded with its result.
	ran *journal.ToolRun
	// failed is why Once could not remember: its effect has happened and is not on
	// record, so what the tool makes of it is no result.
	failed error
}

func (inv *invocation) ledger(call string) *ledger {
	return &ledger{inv: inv, call: call, record: journal.ToolRecord{Call: call}}
}

func (l *ledger) load(ctx context.Context) error {
	if l.loaded {
		return nil
	}
	item, err := l.inv.r.sessions.Item(ctx, l.inv.key, store.KindTool, l.call)
	if err != nil {
		return err
	}
	l.take(item)
	return nil
}

// reload reads the record as it is now.
func (l *ledger) reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded, l.record = false, journal.ToolRecord{Call: l.call}
	return l.load(ctx)
}

// hasRun reports whether the call was started, by anybody.
func (l *ledger) hasRun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.State == journal.ToolStarted || l.record.State == journal.ToolFinished
}

func (l *ledger) take(item store.Item) {
	l.loaded, l.rev = true, item.Rev
	if item.Tool != nil {
		l.record = *item.Tool
	}
}

// put writes the record at the revision we know. It reports whether that succeeded: false means
// that another writer was first and the record is now what that writer wrote.
func (l *ledger) put(ctx context.Context, record journal.ToolRecord) (bool, error) {
	items, err := l.inv.r.cfg.Store.Update(ctx, l.inv.key, store.ToolItem(record, l.rev))
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) && conflict.Item != nil {
		l.record = journal.ToolRecord{Call: l.call}
		l.take(*conflict.Item)
		// Our own attempt in the state we wanted: our write succeeded, its answer was lost.
		return l.record.Attempt == record.Attempt && l.record.State == record.State, nil
	}
	if err != nil {
		return false, fmt.Errorf("ledger of %s: %w", l.call, err)
	}
	l.take(items[0])
	return true, nil
}

// start marks the call started by this attempt. started is false when it was
// finished before, or started by another attempt: record says by whom. again
// overtakes that attempt's mark; when the mark is lost to one more, the lease says
// whose the call is.
func (l *ledger) start(ctx context.Context, again bool) (started bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempt := l.inv.attempt.ID
	for {
		switch l.record.State {
		case journal.ToolFinished:
			return false, nil
		case journal.ToolClosed:
			return false, errClosed
		case journal.ToolStarted:
			if l.record.Attempt == attempt {
				return true, nil
			}
			if !again {
				return false, nil
			}
		case journal.ToolAsking:
			// Only the worker that recorded the answer may start the call again. A worker that
			// was frozen since before the question would set a useless mark, and the call
			// would count as cut off.
			if err := l.inv.renewFor(ctx, 0); err != nil {
				return false, err
			}
		case journal.ToolMemo, "":
		}
		record := l.record
		record.State, record.Attempt, record.At = journal.ToolStarted, attempt, l.inv.r.cfg.Now().UTC()
		ok, err := l.put(ctx, record)
		if err != nil || ok {
			return ok, err
		}
		if again && l.record.State == journal.ToolStarted {
			if err := l.inv.renewFor(ctx, 0); err != nil {
				return false, err
			}
		}
	}
}

// finish records the result, if the call is still ours.
func (l *ledger) finish(ctx context.Context, result llm.ToolResult, ops []session.StateOp, events []session.CustomEvent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := l.record
	record.State, record.At = journal.ToolFinished, l.inv.r.cfg.Now().UTC()
	record.Result, record.StateOps, record.Events, record.Ran = &result, ops, events, l.ran
	ok, err := l.put(ctx, record)
	if err != nil {
		return err
	}
	if !ok {
		return errSuperseded
	}
	return nil
}

// failure returns why Once could not remember, nil if it could.
func (l *ledger) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// asking returns the record that lets the call be started again after a
// question, to be written with the suspension; ok is false when there is none to write.
func (l *ledger) asking() (store.Item, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record.State != journal.ToolStarted {
		return store.Item{}, false
	}
	record := l.record
	record.State, record.At = journal.ToolAsking, l.inv.r.cfg.Now().UTC()
	return store.ToolItem(record, l.rev), true
}

// closing returns the record that closes a call; ok is false when it has run or is
// closed, so that there is nothing to close. The caller holds the lock.
func (l *ledger) closing() (record journal.ToolRecord, ok bool) {
	switch l.record.State {
	case journal.ToolStarted, journal.ToolFinished, journal.ToolClosed:
		return l.record, false
	case journal.ToolAsking, journal.ToolMemo, "":
	}
	record = l.record
	record.State, record.Attempt, record.At = journal.ToolClosed, l.inv.attempt.ID, l.inv.r.cfg.Now().UTC()
	return record, true
}

// closed returns the record that closes a call that has not run, to be written with
// the entry that says so; ok is false when there is nothing to close.
func (l *ledger) closed() (item store.Item, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record, ok := l.closing()
	if !ok {
		return store.Item{}, false
	}
	return store.ToolItem(record, l.rev), true
}

// closeNotRun closes a call that has not run, so that it never will. It returns the record as it
// is then: closed, or started or finished earlier by another worker.
func (l *ledger) closeNotRun(ctx context.Context) (journal.ToolRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(ctx); err != nil {
		return journal.ToolRecord{}, err
	}
	for {
		record, ok := l.closing()
		if !ok {
			return record, nil
		}
		if ok, err := l.put(ctx, record); err != nil || ok {
			return l.record, err
		}
	}
}

// remember makes the result of a Once durable before the function returns.
func (l *ledger) remember(ctx context.Context, key string, value json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		record := l.record
		if record.State == "" {
			record.State = journal.ToolMemo
		}
		record.At = l.inv.r.cfg.Now().UTC()
		record.Memo = maps.Clone(record.Memo)
		if record.Memo == nil {
			record.Memo = map[string]json.RawMessage{}
		}
		record.Memo[key] = value
		before := l.record.Attempt
		items, err := l.inv.r.cfg.Store.Update(ctx, l.inv.key, store.ToolItem(record, l.rev))
		l.failed = nil
		if err == nil {
			l.take(items[0])
			return nil
		}
		conflict := (*store.ConflictError)(nil)
		if !errors.As(err, &conflict) || conflict.Item == nil {
			l.failed = fmt.Errorf("remember %q of %s: %w", key, l.call, err)
			return l.failed
		}
		l.record = journal.ToolRecord{Call: l.call}
		l.take(*conflict.Item)
		first, known := l.record.Memo[key]
		if known && string(first) != string(value) || l.record.Attempt != before || l.record.State == journal.ToolFinished || l.record.State == journal.ToolClosed {
			return fmt.Errorf("remember %q of %s: %w", key, l.call, errSuperseded)
		}
		if known {
			return nil // our write succeeded, its answer was lost
		}
	}
}
