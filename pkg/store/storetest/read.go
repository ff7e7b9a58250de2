package storetest

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

type jsonText = json.RawMessage

var entryTests = []test{
	{"a session without entries yields nothing", func(f *fixture) {
		require.Empty(f, f.entries(0))
	}},
	{"only entries above after are yielded and in order", func(f *fixture) {
		f.start()
		for i := int64(2); i <= 12; i++ {
			f.commit(i)
		}
		for _, after := range []int64{0, 1, 9, 11, 12, 50, math.MaxInt64 - 1, math.MaxInt64} {
			want := []int64(nil)
			for i := min(after, 12) + 1; i <= 12; i++ {
				want = append(want, i)
			}
			var got []int64
			for _, e := range f.entries(after) {
				got = append(got, e.Seq)
			}
			require.Equal(f, want, got, "after %d", after)
		}
	}},
	{"many entries come in pages that the caller does not see", func(f *fixture) {
		f.start()
		for i := int64(2); i <= 40; i++ {
			e := entry(i)
			e.Messages = []llm.Message{textMessage(noise(120_000))}
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e})
			require.NoError(f, err)
		}
		require.Len(f, f.entries(0), 40)
		require.Len(f, f.entries(35), 5)
	}},
	{"an entry is read as soon as its commit returned", func(f *fixture) {
		f.start()
		for i := int64(2); i <= 50; i++ {
			f.commit(i)
			got := f.entries(i - 1)
			require.Len(f, got, 1)
			require.Equal(f, i, got[0].Seq)
		}
	}},
	{"values handed out are not shared", func(f *fixture) {
		f.start()
		first := f.entries(0)
		first[0].Messages[0].Role = "changed"
		require.Equal(f, llm.RoleAssistant, f.entries(0)[0].Messages[0].Role)
	}},
	{"a gap in the numbers is corrupt", func(f *fixture) {
		f.damaged(func(s Saboteur) error { return s.RemoveEntry(f.Context(), f.key, 3) })
	}},
	{"a gap right after after is corrupt", func(f *fixture) {
		f.damaged(func(s Saboteur) error { return s.RemoveEntry(f.Context(), f.key, 1) })
	}},
	{"an entry that cannot be decoded is corrupt", func(f *fixture) {
		f.damaged(func(s Saboteur) error { return s.SpoilEntry(f.Context(), f.key, 3) })
	}},
}

// damaged requires that a damaged journal of five entries ends in ErrCorrupt.
func (f *fixture) damaged(damage func(s Saboteur) error) {
	f.Helper()
	saboteur, ok := f.store.(Saboteur)
	if !ok {
		f.Skip("this fixture cannot damage a journal")
	}
	f.start()
	for i := int64(2); i <= 5; i++ {
		f.commit(i)
	}
	require.NoError(f, damage(saboteur))
	var last error
	for _, err := range f.store.Entries(f.Context(), f.key, 0) {
		require.NoError(f, last, "nothing follows an error")
		last = err
	}
	require.ErrorIs(f, last, store.ErrCorrupt)
}

var itemTests = []test{
	{"items of one kind are ordered by id as text", func(f *fixture) {
		f.start()
		for _, id := range []string{"c2-0", "c10-0", "c1-1", "c1-0", "c1-10"} {
			f.update(store.ToolItem(tool(id), 0))
		}
		f.update(store.WaitItem(wait("w1-0"), 0))
		var got []string
		for _, item := range f.items(store.KindTool, "") {
			got = append(got, item.ID)
		}
		require.Equal(f, []string{"c1-0", "c1-1", "c1-10", "c10-0", "c2-0"}, got)
	}},
	{"with an id that ends with a star those that begin so are yielded", func(f *fixture) {
		f.start()
		for _, id := range []string{"w1-1", "w1-10", "w1-2", "w10-1", "w2-1"} {
			f.update(store.WaitItem(wait(id), 0))
		}
		for begins, want := range map[string][]string{"w1-*": {"w1-1", "w1-10", "w1-2"}, "w10-*": {"w10-1"}, "w3-*": nil, "*": {"w1-1", "w1-10", "w1-2", "w10-1", "w2-1"}} {
			var got []string
			for _, item := range f.items(store.KindWait, begins) {
				got = append(got, item.ID)
			}
			require.Equal(f, want, got, begins)
		}
	}},
	{"with an id only that one is yielded or nothing", func(f *fixture) {
		f.start()
		f.update(store.ToolItem(tool("c1-1"), 0))
		f.update(store.ToolItem(tool("c1-10"), 0))
		got := f.items(store.KindTool, "c1-1")
		require.Len(f, got, 1)
		require.Equal(f, "c1-1", got[0].ID)
		require.Empty(f, f.items(store.KindTool, "c1"))
	}},
	{"many items come in pages that the caller does not see", func(f *fixture) {
		f.start()
		for i := range 30 {
			t := tool(fmt.Sprintf("c1-%02d", i))
			t.Memo = map[string]jsonText{"big": jsonText(`"` + noise(100_000) + `"`)}
			f.update(store.ToolItem(t, 0))
		}
		got := f.items(store.KindTool, "")
		require.Len(f, got, 30)
		require.Equal(f, "c1-29", got[29].ID)
	}},
	{"values handed out are not shared", func(f *fixture) {
		f.start()
		f.head().Head.Title = "changed"
		require.Equal(f, "a title", f.head().Head.Title)
	}},
	{"an item that was large is read as the small one it became, and as a large one again", func(f *fixture) {
		f.start()
		ledger := tool("c1-1")
		for rev, size := range []int{1 << 20, 1, 1 << 20, 2} {
			ledger.Memo = map[string]jsonText{"big": jsonText(`"` + noise(size) + `"`)}
			require.Equal(f, store.ToolItem(ledger, int64(rev+1)), f.update(store.ToolItem(ledger, int64(rev))))
			require.Equal(f, []store.Item{store.ToolItem(ledger, int64(rev+1))}, f.items(store.KindTool, "c1-1"))
		}
	}},
	{"kinds are apart though their ids are the same", func(f *fixture) {
		f.start()
		f.update(store.ToolItem(tool("1"), 0))
		f.update(store.RunItem(session.Run{ID: 1}, 0))
		require.Len(f, f.items(store.KindTool, ""), 1)
		require.Len(f, f.items(store.KindRun, "1"), 1)
	}},
}
