package runtime_test

import (
	"context"
	"iter"
	"sync"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// hook is a store whose calls go through functions; a call whose function is nil goes to
// the store as it is.
type hook struct {
	store.Store
	claim   func(context.Context, store.ClaimParams) (store.Item, error)
	commit  func(context.Context, store.CommitParams) (store.Committed, error)
	update  func(context.Context, session.Key, []store.Item) ([]store.Item, error)
	items   func(context.Context, session.Key, store.ItemKind, string) iter.Seq2[store.Item, error]
	entries func(context.Context, session.Key, int64) iter.Seq2[journal.Entry, error]
	find    func(context.Context, store.FindParams) (store.Page, error)
}

func (h *hook) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	if h.claim == nil {
		return h.Store.Claim(ctx, p)
	}
	return h.claim(ctx, p)
}

func (h *hook) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if h.commit == nil {
		return h.Store.Commit(ctx, p)
	}
	return h.commit(ctx, p)
}

func (h *hook) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if h.update == nil {
		return h.Store.Update(ctx, key, items...)
	}
	return h.update(ctx, key, items)
}

func (h *hook) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	if h.items == nil {
		return h.Store.Items(ctx, key, kind, id)
	}
	return h.items(ctx, key, kind, id)
}

func (h *hook) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	if h.entries == nil {
		return h.Store.Entries(ctx, key, after)
	}
	return h.entries(ctx, key, after)
}

func (h *hook) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	if h.find == nil {
		return h.Store.Find(ctx, p)
	}
	return h.find(ctx, p)
}

// unreadEntries and unreadItems are reads that fail.
func unreadEntries(err error) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) { yield(journal.Entry{}, err) }
}

func unreadItems(err error) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) { yield(store.Item{}, err) }
}

// storeHook is a store on which something happens before one of a process's calls.
// A test that needs no more than that uses it. A fault that is a function of one call is a
// [hook]; one with a state of its own (a process that dies, is frozen, loses answers) has a
// store of its own.
type storeHook struct {
	store.Store
	// when is the call that happens comes before, once: happens is nil afterwards.
	// Under mu, for a worker watches its session beside its step.
	mu      sync.Mutex
	when    func(storeCall) bool
	happens func()
	// entry is told each entry before it is committed.
	entry func(journal.Entry)
	// refuse says which entries are not committed, because the store does not answer.
	refuse func(journal.Entry) bool
}

// marksApart is a store that leaves the marks of a commit to its caller, as DynamoDB does.
type marksApart struct{ store.Store }

func (m marksApart) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	p.Marks = nil
	return m.Store.Commit(ctx, p)
}

// withMarksApart returns the world with such a store.
func (w *world) withMarksApart() *world {
	w.store = marksApart{w.store}
	w.cfg.Store = w.store
	return w
}

// storeCall is a call of a store: one of these is set, and kind with the last two but
// for a read of entries.
type storeCall struct {
	claim  store.ClaimMode
	commit session.Kind
	kind   store.ItemKind // of the items
	update []store.Item
	read   bool
	// removes says that it removes the session.
	removes bool
}

// commits matches the commit of an entry of a kind.
func commits(kind session.Kind) func(storeCall) bool {
	return func(c storeCall) bool { return c.commit == kind }
}

// anyCommit matches the commit of an entry.
func anyCommit(c storeCall) bool { return c.commit != "" }

// claimOrCommit matches what a worker writes first.
func claimOrCommit(c storeCall) bool { return c.claim != "" || c.commit != "" }

// updateOf matches an update of items of a kind.
func updateOf(kind store.ItemKind) func(storeCall) bool {
	return func(c storeCall) bool { return len(c.update) > 0 && c.kind == kind }
}

// markOfCall matches the mark that a call is started.
func markOfCall(c storeCall) bool {
	return updateOf(store.KindTool)(c) && c.update[0].Tool.State == journal.ToolStarted
}

// readOf matches a read of items of a kind.
func readOf(kind store.ItemKind) func(storeCall) bool {
	return func(c storeCall) bool { return c.read && c.kind == kind }
}

// readOfEntries matches a read of entries.
func readOfEntries(c storeCall) bool { return c.read && c.kind == "" }

func (h *storeHook) pass(c storeCall) {
	if happens := h.take(c); happens != nil {
		happens()
	}
}

// take returns what happens before a call, once.
func (h *storeHook) take(c storeCall) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.happens == nil || !h.when(c) {
		return nil
	}
	happens := h.happens
	h.happens = nil
	return happens
}

func (h *storeHook) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	h.pass(storeCall{claim: p.Mode})
	return h.Store.Claim(ctx, p)
}

func (h *storeHook) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if h.refuse != nil && h.refuse(p.Entry) {
		return store.Committed{}, store.ErrUnavailable
	}
	if h.entry != nil {
		h.entry(p.Entry)
	}
	h.pass(storeCall{commit: p.Entry.Kind})
	return h.Store.Commit(ctx, p)
}

func (h *storeHook) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	h.pass(storeCall{kind: items[0].Kind, update: items})
	return h.Store.Update(ctx, key, items...)
}

func (h *storeHook) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	h.pass(storeCall{kind: kind, read: true})
	return h.Store.Items(ctx, key, kind, id)
}

func (h *storeHook) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	h.pass(storeCall{read: true})
	return h.Store.Entries(ctx, key, after)
}
