package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// commitMarked commits entry 2 with a move of the lease and marks.
func (f *fixture) commitMarked(marks ...store.Item) (store.Committed, error) {
	f.Helper()
	claim := move.of("w", 3, 1, 21)
	return f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Claim: &claim, Marks: marks})
}

var commitMarkTests = []test{
	{"marks along with it are put with the entry, or left to the caller", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		marks := []store.Item{store.ToolItem(tool("c2-1"), 0), store.ToolItem(tool("c2-2"), 0)}
		out, err := f.commitMarked(marks...)
		require.NoError(f, err)
		if !out.Marked {
			require.Empty(f, f.items(store.KindTool, ""))
			return
		}
		for i, item := range f.items(store.KindTool, "") {
			require.EqualValues(f, 1, item.Rev)
			require.Equal(f, marks[i].Tool, item.Tool)
		}
		require.Len(f, f.items(store.KindTool, ""), 2)
	}},
	{"a mark that exists does not undo it, and none is put", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		there := tool("c2-2")
		there.State = journal.ToolClosed
		f.update(store.ToolItem(there, 0))
		out, err := f.commitMarked(store.ToolItem(tool("c2-1"), 0), store.ToolItem(tool("c2-2"), 0))
		require.NoError(f, err)
		require.False(f, out.Marked)
		require.Len(f, f.entries(1), 1)
		items := f.items(store.KindTool, "")
		require.Len(f, items, 1)
		require.Equal(f, journal.ToolClosed, items[0].Tool.State)
	}},
	{"no mark is put without the claim", func(f *fixture) {
		f.start()
		f.claim(take("other", 2, 0, 20))
		out, err := f.commitMarked(store.ToolItem(tool("c2-1"), 0))
		require.NoError(f, err)
		require.False(f, out.Marked)
		require.Len(f, f.entries(1), 1)
		require.Empty(f, f.items(store.KindTool, ""))
	}},
	{"a commit that is refused puts no mark", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		f.commit(2)
		_, err := f.commitMarked(store.ToolItem(tool("c2-1"), 0))
		require.ErrorIs(f, err, store.ErrConflict)
		require.Empty(f, f.items(store.KindTool, ""))
	}},
	{"a mark is a new ledger of the session, and counts among the items", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		other := store.ToolItem(tool("c2-1"), 0)
		other.Key = session.Key{Tenant: f.key.Tenant, ID: "another"}
		many := make([]store.Item, store.MaxItems)
		for i := range many {
			many[i] = store.ToolItem(tool(fmt.Sprintf("c2-%d", i+1)), 0)
		}
		for name, marks := range map[string][]store.Item{
			"a revision": {store.ToolItem(tool("c2-1"), 1)}, "another session": {other},
			"another kind": {store.WaitItem(wait("w2-1"), 0)}, "twice": {store.ToolItem(tool("c2-1"), 0), store.ToolItem(tool("c2-1"), 0)},
			"too many": many,
		} {
			_, err := f.commitMarked(marks...)
			require.Error(f, err, name)
			require.NotErrorIs(f, err, store.ErrConflict, name)
		}
		require.Empty(f, f.entries(1))
	}},
}
