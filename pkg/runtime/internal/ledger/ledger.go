// Package ledger keeps the record of each call with effects, so that the call happens at most once.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime/internal/stored"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// ErrClosed says that the ledger was closed before the call ran, so the call must not run.
var ErrClosed = errors.New("the call was closed before it ran")

// ErrSuperseded says that another worker has the session now.
var ErrSuperseded = errors.New("lost the lease")

// Holder is the work that runs a call, under a lease of its session.
type Holder interface {
	// AttemptID names the attempt in what it writes.
	AttemptID() string
	// RenewLease makes sure that it still has the lease: if not, that is [ErrSuperseded].
	RenewLease(ctx context.Context) error
}

// Ledgers are the ledgers of a store.
type Ledgers struct {
	sessions *stored.Sessions
	store    store.Store
	now      func() time.Time
}

// New returns the ledgers of a store.
func New(sessions *stored.Sessions, st store.Store, now func() time.Time) *Ledgers {
	return &Ledgers{sessions: sessions, store: st, now: now}
}

// Book returns the record of one call, for the work that runs the call.
func (l *Ledgers) Book(key session.Key, call string, by Holder) *Book {
	return &Book{of: l, by: by, key: key, Call: call, record: journal.ToolRecord{Call: call}}
}

// Book is the record of one call with effects (docs/design/README.md): what makes a
// side effect happen at most once, and keeps what Once remembered. Its methods may be
// called at the same time: a tool that was left behind when its time was over may still
// be remembering something while the worker goes on with the call.
type Book struct {
	of  *Ledgers
	by  Holder
	key session.Key
	// Call is its id.
	Call string

	mu     sync.Mutex
	loaded bool
	// record as it was when it was last read or written; empty before [Book.Load].
	record journal.ToolRecord
	rev    int64
	// mark is the stored record while the call is marked as started by this attempt and has not
	// begun: until it does, record says so.
	mark *journal.ToolRecord
	// perhaps says that such a mark may be stored: the answer of its write was lost.
	perhaps bool
	// ran is the last run of the call here, to be recorded with its result.
	ran *journal.ToolRun
	// failed is why Once could not remember: its effect has happened and is not on
	// record, so what the tool makes of it is no result.
	failed error
}

// Load reads the record, once.
func (b *Book) Load(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load(ctx)
}

// load is Load for a caller that holds the lock.
func (b *Book) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	item, err := b.of.sessions.Item(ctx, b.key, store.KindTool, b.Call)
	if err != nil {
		return err
	}
	b.take(item)
	return nil
}

// Reload reads the record as it is now.
func (b *Book) Reload(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	mark, rev := b.mark, b.rev
	b.loaded, b.record, b.mark = false, journal.ToolRecord{Call: b.Call}, nil
	err := b.load(ctx)
	if err == nil && mark != nil && b.rev == rev { // still ours, and the call has not begun
		b.record, b.mark = journal.ToolRecord{Call: b.Call}, mark
	}
	return err
}

// Record returns the record as it was when it was last read or written; empty before
// [Book.Load].
func (b *Book) Record() journal.ToolRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record
}

// Ran says what the last run of the call here was, to be recorded with its result.
func (b *Book) Ran(run journal.ToolRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran = &run
}

// HasRun reports whether the call was started, by anybody.
func (b *Book) HasRun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record.State == journal.ToolStarted || b.record.State == journal.ToolFinished
}

func (b *Book) take(item store.Item) {
	b.loaded, b.rev = true, item.Rev
	if item.Tool != nil {
		b.record = *item.Tool
	}
}

// put writes the record at the revision we know. It reports whether that succeeded: false means
// that another writer was first and the record is now what that writer wrote.
func (b *Book) put(ctx context.Context, record journal.ToolRecord) (bool, error) {
	items, err := b.of.store.Update(ctx, b.key, store.ToolItem(record, b.rev))
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) && conflict.Item != nil {
		b.record = journal.ToolRecord{Call: b.Call}
		b.take(*conflict.Item)
		// Our own attempt in the state we wanted: our write succeeded, its answer was lost.
		return b.record.Attempt == record.Attempt && b.record.State == record.State, nil
	}
	if err != nil {
		return false, fmt.Errorf("ledger of %s: %w", b.Call, err)
	}
	b.take(items[0])
	return true, nil
}

// Mark returns the record that marks a new call as started by this attempt, to be written with
// the reply that asks for the call.
func (b *Book) Mark() store.Item {
	return store.ToolItem(journal.ToolRecord{Call: b.Call, State: journal.ToolStarted, Attempt: b.by.AttemptID(), At: b.of.now().UTC()}, 0)
}

// Marked says that a mark was written. The call still counts as one that has not run, until
// [Book.Start].
func (b *Book) Marked(mark store.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mark, b.loaded, b.rev = mark.Tool, true, 1
}

// PerhapsMarked says that a mark may have been written, by this attempt or by another one.
func (b *Book) PerhapsMarked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.perhaps = true
}

// GiveFree lets a call be started by others that may be marked by this attempt and has not begun.
// Where nothing is stored, a mark that is still on its way finds this record and is not put. What
// another attempt has stored stays.
func (b *Book) GiveFree(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.perhaps {
		ok, err := b.put(ctx, journal.ToolRecord{Call: b.Call, State: journal.ToolMemo, At: b.of.now().UTC()})
		if err != nil {
			return err
		}
		b.perhaps = !ok && b.record.State == journal.ToolStarted && b.record.Attempt == b.by.AttemptID()
	}
	return nil
}

// TakeBack returns the record that lets a call be started by others that is marked and has not
// begun; ok is false when there is no such mark.
func (b *Book) TakeBack() (item store.Item, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mark == nil {
		return store.Item{}, false
	}
	return store.ToolItem(journal.ToolRecord{Call: b.Call, State: journal.ToolMemo, At: b.of.now().UTC()}, b.rev), true
}

// Start marks the call started by this attempt. started is false when it was
// finished before, or started by another attempt: the record says by whom. With again,
// this attempt's mark replaces the other's; if a third attempt writes its mark at the same
// time, the call belongs to the one that has the lease.
func (b *Book) Start(ctx context.Context, again bool) (started bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mark != nil {
		b.record, b.mark = *b.mark, nil
		return true, nil
	}
	b.perhaps = false
	attempt := b.by.AttemptID()
	for {
		switch b.record.State {
		case journal.ToolFinished:
			return false, nil
		case journal.ToolClosed:
			return false, ErrClosed
		case journal.ToolStarted:
			if b.record.Attempt == attempt {
				return true, nil
			}
			if !again {
				return false, nil
			}
		case journal.ToolAsking:
			// Only the worker that recorded the answer may start the call again. A worker that
			// was frozen since before the question would set a useless mark, and the call
			// would count as cut off.
			if err := b.by.RenewLease(ctx); err != nil {
				return false, err
			}
		case journal.ToolMemo, "":
		}
		record := b.record
		record.State, record.Attempt, record.At = journal.ToolStarted, attempt, b.of.now().UTC()
		ok, err := b.put(ctx, record)
		if err != nil || ok {
			return ok, err
		}
		if again && b.record.State == journal.ToolStarted {
			if err := b.by.RenewLease(ctx); err != nil {
				return false, err
			}
		}
	}
}

// Finish records the result, if the call is still ours.
func (b *Book) Finish(ctx context.Context, result llm.ToolResult, ops []session.StateOp, events []session.CustomEvent) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok, err := b.put(ctx, b.finished(result, ops, events))
	if err != nil {
		return err
	}
	if !ok {
		return ErrSuperseded
	}
	return nil
}

// Finished is the record that [Book.Finish] writes, to be written with the entry that has the
// result.
func (b *Book) Finished(result llm.ToolResult, ops []session.StateOp, events []session.CustomEvent) store.Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	return store.ToolItem(b.finished(result, ops, events), b.rev)
}

func (b *Book) finished(result llm.ToolResult, ops []session.StateOp, events []session.CustomEvent) journal.ToolRecord {
	record := b.record
	record.State, record.At = journal.ToolFinished, b.of.now().UTC()
	record.Result, record.StateOps, record.Events, record.Ran = &result, ops, events, b.ran
	return record
}

// Failure returns why Once could not remember, nil if it could.
func (b *Book) Failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// Asking returns the record that lets the call be started again after a
// question, to be written with the suspension; ok is false when there is none to write.
func (b *Book) Asking() (store.Item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.record.State != journal.ToolStarted {
		return store.Item{}, false
	}
	record := b.record
	record.State, record.At = journal.ToolAsking, b.of.now().UTC()
	return store.ToolItem(record, b.rev), true
}

// closing returns the record that closes a call; ok is false when it has run or is
// closed, so that there is nothing to close. The caller holds the lock.
func (b *Book) closing() (record journal.ToolRecord, ok bool) {
	switch b.record.State {
	case journal.ToolStarted, journal.ToolFinished, journal.ToolClosed:
		return b.record, false
	case journal.ToolAsking, journal.ToolMemo, "":
	}
	record = b.record
	record.State, record.Attempt, record.At = journal.ToolClosed, b.by.AttemptID(), b.of.now().UTC()
	return record, true
}

// Closed returns the record that closes a call that has not run, to be written with
// the entry that says so; ok is false when there is nothing to close.
func (b *Book) Closed() (item store.Item, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	record, ok := b.closing()
	if !ok {
		return store.Item{}, false
	}
	return store.ToolItem(record, b.rev), true
}

// CloseNotRun closes a call that has not run, so that it never will. It returns the record as it
// is then: closed, or started or finished earlier by another worker.
func (b *Book) CloseNotRun(ctx context.Context) (journal.ToolRecord, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return journal.ToolRecord{}, err
	}
	for {
		record, ok := b.closing()
		if !ok {
			return record, nil
		}
		if ok, err := b.put(ctx, record); err != nil || ok {
			return b.record, err
		}
	}
}

// Remember makes the result of a Once durable before the function returns.
func (b *Book) Remember(ctx context.Context, key string, value json.RawMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		record := b.record
		if record.State == "" {
			record.State = journal.ToolMemo
		}
		record.At = b.of.now().UTC()
		record.Memo = maps.Clone(record.Memo)
		if record.Memo == nil {
			record.Memo = map[string]json.RawMessage{}
		}
		record.Memo[key] = value
		before := b.record.Attempt
		items, err := b.of.store.Update(ctx, b.key, store.ToolItem(record, b.rev))
		b.failed = nil
		if err == nil {
			b.take(items[0])
			return nil
		}
		conflict := (*store.ConflictError)(nil)
		if !errors.As(err, &conflict) || conflict.Item == nil {
			b.failed = fmt.Errorf("remember %q of %s: %w", key, b.Call, err)
			return b.failed
		}
		b.record = journal.ToolRecord{Call: b.Call}
		b.take(*conflict.Item)
		first, known := b.record.Memo[key]
		if known && string(first) != string(value) || b.record.Attempt != before || b.record.State == journal.ToolFinished || b.record.State == journal.ToolClosed {
			return fmt.Errorf("remember %q of %s: %w", key, b.Call, ErrSuperseded)
		}
		if known {
			return nil // our write succeeded, its answer was lost
		}
	}
}
