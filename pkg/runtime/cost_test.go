package runtime_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// traffic is how much goes over a line: requests, and the bytes of both ways.
type traffic struct{ requests, bytes atomic.Int64 }

// metered counts what is asked of a store and the bytes of the records and entries
// that are read and written, as they are stored.
type metered struct {
	store.Store
	t              testing.TB
	seen           traffic
	items, entries atomic.Int64 // read
}

func (m *metered) item(item *store.Item) {
	record, err := item.Record()
	require.NoError(m.t, err)
	m.seen.bytes.Add(int64(len(record)))
}

func (m *metered) entry(e journal.Entry) {
	payload, err := journal.Encode(&e)
	require.NoError(m.t, err)
	m.seen.bytes.Add(int64(len(payload)))
}

func (m *metered) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	m.seen.requests.Add(1)
	return func(yield func(store.Item, error) bool) {
		for item, err := range m.Store.Items(ctx, key, kind, id) {
			m.items.Add(1)
			m.item(&item)
			if !yield(item, err) {
				return
			}
		}
	}
}

func (m *metered) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	m.seen.requests.Add(1)
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range m.Store.Entries(ctx, key, after) {
			m.entries.Add(1)
			m.entry(e)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (m *metered) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	m.seen.requests.Add(1)
	return m.Store.Claim(ctx, p)
}

func (m *metered) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	m.seen.requests.Add(1)
	m.entry(p.Entry)
	for _, item := range p.Items {
		m.item(&item)
	}
	return m.Store.Commit(ctx, p)
}

func (m *metered) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	m.seen.requests.Add(1)
	for _, item := range items {
		m.item(&item)
	}
	return m.Store.Update(ctx, key, items...)
}

func (m *metered) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	m.seen.requests.Add(1)
	return m.Store.Find(ctx, p)
}

// old writes that many waits that were answered long ago, like one of today.
func (w *world) old(like journal.WaitRecord, count int) {
	w.t.Helper()
	like.State = session.WaitTaken
	var writers sync.WaitGroup
	batches := make(chan []store.Item)
	for range 4 {
		writers.Go(func() {
			for items := range batches {
				if _, err := w.store.Update(context.Background(), w.key, items...); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	for n := 0; n < count; {
		var items []store.Item
		for ; n < count && len(items) < store.MaxItems; n++ {
			like.Wait.ID = "w1-" + newID() // of an entry that is past
			items = append(items, store.WaitItem(like, 0))
		}
		batches <- items
	}
	close(batches)
	writers.Wait()
}

// TestAnswer_costs_the_same_with_many_old_waits: 10,000 waits of before are not read,
// by the answer or by the resumption: neither at the port nor, where the engine is
// behind a line, on that line.
func TestAnswer_costs_the_same_with_many_old_waits(t *testing.T) {
	t.Parallel()
	type cost struct{ requests, items, entries, onLine int64 }
	spent := func(old int) (_ cost, bytes [2]int64) {
		w, _ := waiting(t, "approve")
		record := w.open(session.WaitApproval)
		w.old(record, old)
		var line traffic
		counted := &metered{Store: overLine(t, w.store, &line), t: t}
		p := w.process(func(cfg *runtime.Config) { cfg.Store = counted })
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(record.Wait, yes())})
		require.NoError(t, err)
		require.NoError(t, p.work())
		used := cost{counted.seen.requests.Load(), counted.items.Load(), counted.entries.Load(), line.requests.Load()}
		require.Equal(t, session.StatusCompleted, w.session().Status)
		return used, [2]int64{counted.seen.bytes.Load(), line.bytes.Load()}
	}
	none, bytesOfNone := spent(0)
	many, bytesOfMany := spent(10_000)
	t.Logf("%+v, bytes at the port and on the line %v; with old waits %v", none, bytesOfNone, bytesOfMany)
	require.Equal(t, none, many)
	for i := range bytesOfNone { // ids differ in how well they are packed, by less than one wait
		require.InDelta(t, bytesOfNone[i], bytesOfMany[i], 100)
	}
}
