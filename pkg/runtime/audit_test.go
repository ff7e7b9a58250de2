package runtime_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestAudit_of_refused_answers: who was refused, when and why stands beside the wait,
// up to a bound; the answer that counts is taken all the same.
func TestAudit_of_refused_answers(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "guarded")
	for range session.MaxAudit + 5 {
		_, err := w.submit(p, session.WaitApproval, yes())
		require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	}
	lines := w.items(store.KindAudit)
	require.Len(t, lines, session.MaxAudit)
	require.Equal(t, session.AuditRefused, lines[0].Audit.Kind)
	require.Equal(t, person.Who, lines[0].Audit.Who)
	require.JSONEq(t, `{"code":"not_allowed"}`, string(lines[0].Audit.Data))
	require.Equal(t, session.AuditFull, lines[session.MaxAudit-1].Audit.Kind)
	_, err := p.Submit(context.Background(), runtime.SubmitParams{
		Key: w.key, Caller: runtime.Caller{Who: "carol"}, Answer: fill(w.open(session.WaitApproval).Wait, yes()),
	})
	require.NoError(t, err)
	require.NoError(t, p.settle())
	require.Equal(t, session.StatusCompleted, w.session().Status)
}

// reads counts what is read of a store.
type reads struct {
	store.Store
	requests, items, entries atomic.Int64
}

func (r *reads) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	r.requests.Add(1)
	return func(yield func(store.Item, error) bool) {
		for item, err := range r.Store.Items(ctx, key, kind, id) {
			r.items.Add(1)
			if !yield(item, err) {
				return
			}
		}
	}
}

func (r *reads) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[session.Entry, error] {
	r.requests.Add(1)
	return func(yield func(session.Entry, error) bool) {
		for e, err := range r.Store.Entries(ctx, key, after) {
			r.entries.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestAnswer_costs_the_same_with_many_old_waits: 10,000 waits of before are not read,
// by the answer or by the resumption.
func TestAnswer_costs_the_same_with_many_old_waits(t *testing.T) {
	t.Parallel()
	cost := func(old int) [3]int64 {
		w, _ := waiting(t, "approve")
		record := w.open(session.WaitApproval)
		wait := record.Wait
		record.State = session.WaitTaken
		for n := 0; n < old; {
			var items []store.Item
			for ; n < old && len(items) < store.MaxItems; n++ {
				record.Wait.ID = "w1-" + newID() // of an entry that is past
				items = append(items, store.WaitItem(record, 0))
			}
			_, err := w.store.Update(context.Background(), w.key, items...)
			require.NoError(t, err)
		}
		counted := &reads{Store: w.store}
		p := w.process(func(cfg *runtime.Config) { cfg.Store = counted })
		_, err := p.Submit(context.Background(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait, yes())})
		require.NoError(t, err)
		require.NoError(t, p.work())
		require.Equal(t, session.StatusCompleted, w.session().Status)
		return [3]int64{counted.requests.Load(), counted.items.Load(), counted.entries.Load()}
	}
	require.Equal(t, cost(0), cost(10_000))
}
