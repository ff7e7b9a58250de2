package storetest

import (
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// newer adds fields of a later program to a record.
func newer[T any](f *fixture, record *T) *T {
	f.Helper()
	text, err := journal.MarshalRecord(record)
	require.NoError(f, err)
	var fields map[string]any
	require.NoError(f, json.Unmarshal(text, &fields))
	fields["zzNew"] = map[string]any{"a": []any{1.0, "<b>"}}
	if inner, ok := fields["wait"].(map[string]any); ok {
		inner["zzNew"] = true
	}
	text, err = json.Marshal(fields)
	require.NoError(f, err)
	out := new(T)
	require.NoError(f, journal.UnmarshalRecord(text, out))
	again, err := journal.MarshalRecord(out)
	require.NoError(f, err)
	require.JSONEq(f, string(text), string(again), "else nothing is tested with it")
	return out
}

// ofNewer is an item whose record has a field of a later program.
func ofNewer(f *fixture, item store.Item) store.Item {
	f.Helper()
	record := recordOf(f, item)
	item, err := store.NewItem(item.Kind, item.ID, item.Rev, []byte(`{"zzNew":[1,{"b":"<c>"}],`+record[1:]))
	require.NoError(f, err)
	return item
}

func recordOf(f *fixture, item store.Item) string {
	f.Helper()
	record, err := item.Record()
	require.NoError(f, err)
	record, _ = journal.TakeSeal(record, item.Rev+1)
	return string(record)
}

// newerTests are about what a newer program wrote.
var newerTests = []test{
	{"unknown fields of a record are kept when it is written again", func(f *fixture) {
		h, w, t := head(f.key), wait("w1-1"), tool("c1-1")
		f.commit(1, store.HeadItem(*newer(f, &h), 0), store.WaitItem(*newer(f, &w), 0), store.ToolItem(*newer(f, &t), 0))

		at1 := f.head()
		at1.Head.Resent = 7
		f.update(at1)
		h.Resent = 7
		require.JSONEq(f, recordOf(f, store.HeadItem(*newer(f, &h), 0)), recordOf(f, f.head()))

		got := f.items(store.KindWait, "w1-1")[0]
		got.Wait.State, got.Wait.Held = session.WaitAnswered, true
		f.commit(2, got)
		w.State, w.Held = session.WaitAnswered, true
		require.Equal(f, journal.SealWhole, journal.SealOf(f.items(store.KindWait, "w1-1")[0].Wait))
		require.JSONEq(f, recordOf(f, store.WaitItem(*newer(f, &w), 0)), recordOf(f, f.items(store.KindWait, "w1-1")[0]))

		ledger := f.update(f.items(store.KindTool, "c1-1")[0])
		require.JSONEq(f, recordOf(f, store.ToolItem(*newer(f, &t), 0)), recordOf(f, ledger), "as it came back")

		ledger.Rev = 99
		_, err := f.store.Update(f.Context(), f.key, ledger)
		require.JSONEq(f, recordOf(f, store.ToolItem(*newer(f, &t), 0)), recordOf(f, *conflict(f, err).Item), "as returned by a conflict")
	}},
	{"they are kept on a record of every kind, of the session, of others and of the tenant", func(f *fixture) {
		var all []store.Item
		for _, item := range everyKind(f) {
			all = append(all, ofNewer(f, item))
		}
		f.commit(1, all...)
		for _, item := range all {
			want := recordOf(f, item)
			require.Contains(f, want, "zzNew")
			got := f.items(item.Kind, item.ID)
			require.Len(f, got, 1, item.Kind)
			require.JSONEq(f, want, recordOf(f, got[0]), item.Kind)
			require.JSONEq(f, want, recordOf(f, f.update(got[0])), item.Kind)
			require.JSONEq(f, want, recordOf(f, f.items(item.Kind, item.ID)[0]), item.Kind)
		}
		theirs, own := f.items(store.KindWait, "w1-0")[0].In(f.key), f.key
		f.key.ID = "s-2"
		f.start()
		_, err := f.store.Update(f.Context(), f.key, theirs, f.head())
		require.NoError(f, err)
		require.JSONEq(f, recordOf(f, all[1]), recordOf(f, f.of(own, store.KindWait, "w1-0")[0]))
	}},
	{"an entry that needs an unknown feature is ErrNeeds", func(f *fixture) {
		f.start()
		e := entry(2)
		e.Needs = []string{"of the future"}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: e})
		require.NoError(f, err)
		seen := 0
		for _, err := range f.store.Entries(f.Context(), f.key, 0) {
			if seen++; seen == 1 {
				require.NoError(f, err)
				continue
			}
			require.ErrorIs(f, err, journal.ErrNeeds)
			require.NotErrorIs(f, err, store.ErrCorrupt)
			require.ErrorContains(f, err, `entry 2 needs "of the future"`)
		}
		require.Equal(f, 2, seen)
		_, err = f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2)})
		require.ErrorIs(f, err, journal.ErrNeeds)
	}},
	{"a wait that needs an unknown feature is ErrNeeds, and in a list it is unread beside the others", func(f *fixture) {
		w := wait("w1-1")
		w.Wait.Needs = []string{"of the future"}
		f.commit(1, store.HeadItem(head(f.key), 0), store.WaitItem(w, 0), store.WaitItem(wait("w1-2"), 0))
		for _, err := range f.store.Items(f.Context(), f.key, store.KindWait, "w1-1") {
			require.ErrorIs(f, err, journal.ErrNeeds)
			require.NotErrorIs(f, err, store.ErrCorrupt)
			require.ErrorContains(f, err, "wait w1-1")
		}
		for _, tool := range []string{"", w.Wait.Tool} {
			page := f.find(store.FindParams{Kind: store.FindWaits, Tenant: f.key.Tenant, Tool: tool})
			require.Len(f, page.Found, 2, "tool %q", tool)
			for _, found := range page.Found {
				if found.Item.ID == "w1-1" {
					require.ErrorIs(f, found.Unread, journal.ErrNeeds)
					continue
				}
				require.NoError(f, found.Unread)
				require.Equal(f, wait("w1-2"), *found.Item.Wait)
			}
		}
		require.Empty(f, f.find(store.FindParams{Kind: store.FindWaits, Tenant: f.key.Tenant, Tool: "another"}).Found)
	}},
}
