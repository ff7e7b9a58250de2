package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var updateTests = []test{
	{"the item is returned as stored and read at once", func(f *fixture) {
		f.start()
		got := f.update(store.ToolItem(tool("c1-0"), 0))
		require.Equal(f, store.ToolItem(tool("c1-0"), 1), got)
		require.Equal(f, got, f.items(store.KindTool, "c1-0")[0])
	}},
	{"an item with rev 0 must not exist", func(f *fixture) {
		f.start()
		w := wait("w1-0")
		w.State = session.WaitAnswered
		f.update(store.WaitItem(w, 0))
		_, err := f.store.Update(f.Context(), f.key, store.WaitItem(wait("w1-0"), 0))
		require.Equal(f, store.WaitItem(w, 1), *conflict(f, err).Item)
	}},
	{"an item with a rev must still have that rev", func(f *fixture) {
		f.start()
		f.update(store.WaitItem(wait("w1-0"), 0))
		f.update(store.WaitItem(wait("w1-0"), 1))
		for _, rev := range []int64{1, 3} {
			_, err := f.store.Update(f.Context(), f.key, store.WaitItem(wait("w1-0"), rev))
			require.EqualValues(f, 2, conflict(f, err).Item.Rev)
		}
	}},
	{"an item with a rev that is absent is a conflict with rev 0", func(f *fixture) {
		f.start()
		_, err := f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-0"), 1))
		require.Equal(f, store.Item{Kind: store.KindTool, ID: "c1-0"}, *conflict(f, err).Item)
	}},
	{"of 64 updates at one rev one wins", func(f *fixture) {
		f.start()
		f.update(store.WaitItem(wait("w1-0"), 0))
		errs := race(64, func(i int) error {
			w := wait("w1-0")
			w.State, w.TakenBy = session.WaitAnswered, int64(i)
			_, err := f.store.Update(f.Context(), f.key, store.WaitItem(w, 1))
			return err
		})
		require.Equal(f, 1, successes(errs))
		require.EqualValues(f, 2, f.items(store.KindWait, "w1-0")[0].Rev)
	}},
	{"HEAD keeps the lease it has", func(f *fixture) {
		f.start()
		claimed := f.claim(take("w", 2, 0, 20))
		h := head(f.key)
		h.Lease = journal.Lease{Owner: "thief", Seq: 9, N: 9, Until: at(99)}
		h.Title = "changed"
		got := f.update(store.HeadItem(h, 1))
		require.Equal(f, claimed.Head.Lease, got.Head.Lease)
		require.Equal(f, "changed", got.Head.Title)
		require.Equal(f, got, f.head())
	}},
	{"values handed in and out are not shared", func(f *fixture) {
		f.start()
		given := store.ToolItem(tool("c1-0"), 0)
		given.Tool.Memo = map[string]jsonText{"k": jsonText("1")}
		got := f.update(given)
		given.Tool.Memo["k"] = jsonText("2")
		got.Tool.Memo["k"] = jsonText("3")
		require.JSONEq(f, "1", string(f.items(store.KindTool, "c1-0")[0].Tool.Memo["k"]))
	}},
	{"an idempotency record is the tenant's", func(f *fixture) {
		f.key.ID = ""
		f.update(store.IdempotencyItem(journal.Idempotency{Key: "k", Digest: "d"}, 0))
		require.Len(f, f.items(store.KindIdempotency, "k"), 1)
		f.key.Tenant = "globex"
		require.Empty(f, f.items(store.KindIdempotency, "k"))
	}},
	{"a large item is stored", func(f *fixture) {
		f.start()
		t := tool("c1-0")
		t.Memo = map[string]jsonText{"big": jsonText(`"` + noise(2<<20) + `"`)}
		f.update(store.ToolItem(t, 0))
		require.Equal(f, t, *f.items(store.KindTool, "c1-0")[0].Tool)
	}},
	{"several items are written and returned as stored in their order", func(f *fixture) {
		f.start()
		f.update(store.WaitItem(wait("w1-0"), 0))
		given := []store.Item{
			store.WaitItem(answered("w1-1", 1), 0), store.ToolItem(tool("c1-0"), 0), store.WaitItem(answered("w1-0", 1), 1),
			store.IdempotencyItem(journal.Idempotency{Key: "k", Digest: "d"}, 0),
		}
		got, err := f.store.Update(f.Context(), f.key, given...)
		require.NoError(f, err)
		require.Len(f, got, len(given))
		for i, want := range given {
			want.Rev++
			require.Equal(f, want, got[i])
			key := f.key
			if want.Kind == store.KindIdempotency {
				key.ID = ""
			}
			require.Equal(f, []store.Item{want}, collect(f, f.store.Items(f.Context(), key, want.Kind, want.ID)))
		}
	}},
	{"nothing is written when one of several refuses and the conflict shows that one", func(f *fixture) {
		f.start()
		f.update(store.WaitItem(wait("w1-0"), 0))
		f.update(store.WaitItem(wait("w1-1"), 0))
		moved := f.update(store.WaitItem(answered("w1-1", 7), 1))
		for name, c := range map[string]struct{ item, there store.Item }{
			"it moved":          {store.WaitItem(answered("w1-1", 1), 1), moved},
			"it is there":       {store.WaitItem(answered("w1-1", 1), 0), moved},
			"it is not there":   {store.ToolItem(tool("c1-0"), 4), store.Item{Kind: store.KindTool, ID: "c1-0"}},
			"it is HEAD":        {store.HeadItem(head(f.key), 9), f.head()},
			"it comes tomorrow": {store.WaitItem(answered("w1-1", 1), 3), moved},
		} {
			for place := range 3 {
				items := slices.Insert([]store.Item{store.WaitItem(answered("w1-0", 1), 1), store.ToolItem(tool("c1-1"), 0)}, place, c.item)
				got, err := f.store.Update(f.Context(), f.key, items...)
				require.Equal(f, c.there, *conflict(f, err).Item, name)
				require.Empty(f, got)
				require.Equal(f, store.WaitItem(wait("w1-0"), 1), f.items(store.KindWait, "w1-0")[0], name)
				require.Equal(f, moved, f.items(store.KindWait, "w1-1")[0], name)
				require.Empty(f, f.items(store.KindTool, ""), name)
			}
		}
	}},
	{"an update of several that is repeated finds what it wrote in the conflict", func(f *fixture) {
		f.start()
		items := []store.Item{store.WaitItem(answered("w1-0", 1), 0), store.WaitItem(answered("w1-1", 1), 0)}
		got, err := f.store.Update(f.Context(), f.key, items...)
		require.NoError(f, err)
		_, err = f.store.Update(f.Context(), f.key, items...)
		require.Contains(f, got, *conflict(f, err).Item)
		require.Equal(f, got, f.items(store.KindWait, ""))
	}},
	{"of 64 updates of the same items one wins whole", func(f *fixture) {
		f.start()
		ids := []string{"w1-0", "w1-1", "w1-2"}
		for _, id := range ids {
			f.update(store.WaitItem(wait(id), 0))
		}
		errs := race(64, func(i int) error {
			var items []store.Item
			for n := range ids { // each in an order of its own
				items = append(items, store.WaitItem(answered(ids[(i+n)%len(ids)], int64(i+1)), 1))
			}
			_, err := f.store.Update(f.Context(), f.key, items...)
			return err
		})
		require.Equal(f, 1, successes(errs))
		for _, err := range errs {
			if err != nil {
				require.NotZero(f, conflict(f, err).Item.Wait.TakenBy)
			}
		}
		there := f.items(store.KindWait, "")
		for _, item := range there {
			require.EqualValues(f, 2, item.Rev)
			require.Equal(f, there[0].Wait.TakenBy, item.Wait.TakenBy)
		}
	}},
	{"of two updates that cross in one item exactly one wins", func(f *fixture) {
		f.start()
		for round := range 20 {
			id := func(n int) string { return fmt.Sprintf("w%d-%d", round+1, n) }
			for n := range 3 {
				f.update(store.WaitItem(wait(id(n)), 0))
			}
			errs := race(2, func(i int) error { // the first and the second, the third and the second
				items := []store.Item{store.WaitItem(answered(id(2*i), int64(i+1)), 1)}
				if round%2 == 0 || i == 0 {
					items = append(items, store.WaitItem(answered(id(1), int64(i+1)), 1))
				} else {
					items = []store.Item{store.WaitItem(answered(id(1), int64(i+1)), 1)} // alone
				}
				_, err := f.store.Update(f.Context(), f.key, items...)
				return err
			})
			require.Equal(f, 1, successes(errs))
			require.Equal(f, id(1), conflict(f, errors.Join(errs...)).Item.ID)
			winner := f.items(store.KindWait, id(1))[0].Wait.TakenBy
			for i := range 2 {
				its := f.items(store.KindWait, id(2*i))[0]
				if int64(i+1) != winner {
					require.Equal(f, store.WaitItem(wait(id(2*i)), 1), its, "nothing of the loser's")
				} else if round%2 == 0 || i == 0 {
					require.Equal(f, winner, its.Wait.TakenBy)
				}
			}
		}
	}},
	{"HEAD among several keeps the lease it has", func(f *fixture) {
		f.start()
		claimed := f.claim(take("w", 2, 0, 20))
		h := head(f.key)
		h.Lease = journal.Lease{Owner: "thief", Seq: 9, N: 9, Until: at(99)}
		h.Title = "changed"
		got, err := f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-0"), 0), store.HeadItem(h, 1))
		require.NoError(f, err)
		require.Equal(f, claimed.Head.Lease, got[1].Head.Lease)
		require.Equal(f, "changed", got[1].Head.Title)
		require.Equal(f, got[1], f.head())
	}},
	{"an item may be in an update once", func(f *fixture) {
		f.start()
		for _, items := range [][]store.Item{
			{store.ToolItem(tool("c1-0"), 0), store.ToolItem(tool("c1-0"), 0)},
			{store.ToolItem(tool("c1-0"), 0), store.ToolItem(tool("c1-1"), 0), store.ToolItem(tool("c1-0"), 1)},
			{store.HeadItem(head(f.key), 1), store.ToolItem(tool("c1-0"), 0), store.HeadItem(head(f.key), 1)},
		} {
			_, err := f.store.Update(f.Context(), f.key, items...)
			require.Error(f, err)
			require.NotErrorIs(f, err, store.ErrConflict)
		}
		require.Empty(f, f.items(store.KindTool, ""))
		require.EqualValues(f, 1, f.head().Rev)
	}},
	{"100 items are written and 101 are too many", func(f *fixture) {
		f.start()
		var items []store.Item
		for i := range store.MaxItems + 1 {
			items = append(items, store.ToolItem(tool(fmt.Sprintf("c1-%d", i)), 0))
		}
		_, err := f.store.Update(f.Context(), f.key, items...)
		require.ErrorIs(f, err, store.ErrTooManyItems)
		require.Empty(f, f.items(store.KindTool, ""))
		got, err := f.store.Update(f.Context(), f.key, items[1:]...)
		require.NoError(f, err)
		require.Len(f, got, store.MaxItems)
		require.Len(f, f.items(store.KindTool, ""), store.MaxItems)
	}},
	{"no items write nothing", func(f *fixture) {
		f.start()
		got, err := f.store.Update(f.Context(), f.key)
		require.NoError(f, err)
		require.Empty(f, got)
		require.EqualValues(f, 1, f.head().Rev)
	}},
	{"large items are stored together", func(f *fixture) {
		f.start()
		var items []store.Item
		for i := range 20 {
			t := tool(fmt.Sprintf("c1-%02d", i))
			t.Memo = map[string]jsonText{"big": jsonText(`"` + noise(240_000) + `"`)}
			items = append(items, store.ToolItem(t, 0))
		}
		got, err := f.store.Update(f.Context(), f.key, items...)
		require.NoError(f, err)
		require.Equal(f, got, f.items(store.KindTool, ""))
		require.Equal(f, items[19].Tool, got[19].Tool)
	}},
	{"several that one item is wrong with leave nothing", func(f *fixture) {
		f.start()
		for _, wrong := range []store.Item{{Kind: "odd", ID: "x"}, {Kind: store.KindWait, ID: "w1-0"}, store.ToolItem(tool(""), 0), store.ToolItem(tool("c1-1"), -1)} {
			_, err := f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-0"), 0), wrong)
			require.Error(f, err)
		}
		require.Empty(f, f.items(store.KindTool, ""))
	}},
	{"several whose context has ended before leave nothing", func(f *fixture) {
		f.start()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(f.Context())
		cancel(cause)
		_, err := f.store.Update(ctx, f.key, store.ToolItem(tool("c1-0"), 0), store.ToolItem(tool("c1-1"), 0))
		require.ErrorIs(f, err, cause)
		require.Empty(f, f.items(store.KindTool, ""))
	}},
}

// answered is an open wait with the answer of a caller, given by number.
func answered(id string, by int64) journal.WaitRecord {
	w := wait(id)
	w.State, w.TakenBy = session.WaitAnswered, by
	return w
}
