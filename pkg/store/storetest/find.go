package storetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// put writes HEAD of a session of its own.
func (f *fixture) put(tenant, id string, change func(h *journal.Head)) {
	f.Helper()
	f.key = session.Key{Tenant: tenant, ID: id}
	h := head(f.key)
	if change != nil {
		change(&h)
	}
	f.commit(1, store.HeadItem(h, 0))
}

func (f *fixture) find(p store.FindParams) store.Page {
	f.Helper()
	page, err := f.store.Find(f.Context(), p)
	require.NoError(f, err)
	return page
}

// findAll follows the cursors and names what was found.
func (f *fixture) findAll(p store.FindParams) []string {
	f.Helper()
	var names []string
	for range 100 {
		page := f.find(p)
		if p.Limit > 0 {
			require.LessOrEqual(f, len(page.Found), p.Limit)
		}
		for _, found := range page.Found {
			name := found.Key.ID
			switch {
			case found.Item.Wait != nil:
				require.Equal(f, found.Item.ID, found.Item.Wait.Wait.ID)
				name += " " + found.Item.ID
			case found.Item.Notice != nil:
				require.Equal(f, found.Item.ID, found.Item.Notice.ID)
				name += " " + strings.TrimLeft(found.Item.ID, "e0")
			default:
				require.Equal(f, found.Key, found.Item.Head.Key)
			}
			names = append(names, name)
		}
		if page.Cursor == "" {
			return names
		}
		p.Cursor = page.Cursor
	}
	require.Fail(f, "the pages do not end")
	return nil
}

func (f *fixture) putWait(id string, change func(w *journal.WaitRecord)) {
	f.Helper()
	w := wait(id)
	if change != nil {
		change(&w)
	}
	f.update(store.WaitItem(w, 0))
}

func until(n int) func(w *journal.WaitRecord) {
	return func(w *journal.WaitRecord) {
		w.Wait.Deadline = &session.Deadline{At: at(n), Outcome: session.ExpireDeny}
	}
}

func (f *fixture) currentWait(id string) store.Item {
	f.Helper()
	items := f.items(store.KindWait, id)
	require.Len(f, items, 1)
	return items[0]
}

var findTests = []test{
	{"sessions are those of a tenant and the last moved first", func(f *fixture) {
		for i, id := range []string{"b", "d", "a", "c"} {
			f.put("acme", id, func(h *journal.Head) { h.UpdatedAt = at(10 * i) })
		}
		f.put("globex", "other", nil)
		p := store.FindParams{Kind: store.FindSessions, Tenant: "acme"}
		require.Equal(f, []string{"c", "a", "d", "b"}, f.findAll(p))
		f.key.Tenant, f.key.ID = "acme", "b"
		moved := f.head()
		moved.Head.UpdatedAt = at(100)
		f.update(moved)
		require.Equal(f, []string{"b", "c", "a", "d"}, f.findAll(p))
		require.Empty(f, f.findAll(store.FindParams{Kind: store.FindSessions, Tenant: "nobody"}))
	}},
	{"sessions can be kept to a status", func(f *fixture) {
		for i := range 6 {
			f.put("acme", fmt.Sprintf("s%d", i), func(h *journal.Head) {
				h.UpdatedAt = at(i)
				if i%2 == 0 {
					h.Status = session.StatusSuspended
				}
			})
		}
		p := store.FindParams{Kind: store.FindSessions, Tenant: "acme", Status: session.StatusSuspended}
		require.Equal(f, []string{"s4", "s2", "s0"}, f.findAll(p))
		p.Limit = 1
		require.Equal(f, []string{"s4", "s2", "s0"}, f.findAll(p))
	}},
	{"what is found is HEAD as it is with its lease and rev", func(f *fixture) {
		f.start()
		f.claim(take("w", 2, 0, 20))
		page := f.find(store.FindParams{Kind: store.FindSessions, Tenant: "acme"})
		require.Equal(f, []store.Found{{Key: f.key, Item: f.head()}}, page.Found)
	}},
	{"waits are the open ones of a tenant by deadline then those without one by age", func(f *fixture) {
		f.put("acme", "a", nil)
		f.putWait("w2-0", until(50))
		f.putWait("w2-1", func(w *journal.WaitRecord) { w.Wait.OpenedAt = at(9) })
		f.putWait("w2-2", func(w *journal.WaitRecord) { w.State = session.WaitAnswered })
		f.put("acme", "b", nil)
		f.putWait("w2-0", until(40))
		f.putWait("w2-1", func(w *journal.WaitRecord) { w.Wait.OpenedAt = at(3) })
		f.put("globex", "c", nil)
		f.putWait("w2-0", until(1))
		p := store.FindParams{Kind: store.FindWaits, Tenant: "acme"}
		want := []string{"b w2-0", "a w2-0", "b w2-1", "a w2-1"}
		require.Equal(f, want, f.findAll(p))
		p.Limit = 1
		require.Equal(f, want, f.findAll(p))
	}},
	{"a wait that is answered leaves the inbox", func(f *fixture) {
		f.start()
		f.putWait("w1-0", until(50))
		item := f.currentWait("w1-0")
		item.Wait.State = session.WaitAnswered
		f.update(item)
		require.Empty(f, f.findAll(store.FindParams{Kind: store.FindWaits, Tenant: "acme"}))
	}},
	{"a wait that is extended and delegated is found by its new deadline and the person who was added", func(f *fixture) {
		f.start()
		f.putWait("w1-0", func(w *journal.WaitRecord) { until(50)(w); w.Due, w.Wait.Who = ptr(at(50)), []string{"ana"} })
		f.putWait("w1-1", func(w *journal.WaitRecord) { until(60)(w); w.Wait.Who = []string{"ana"} })
		item := f.currentWait("w1-0")
		item.Wait.Wait.Deadline, item.Wait.Due, item.Wait.Wait.Who = &session.Deadline{At: at(70), Outcome: session.ExpireDeny}, ptr(at(70)), []string{"ana", "bob"}
		item.Wait.Acts = []session.WaitAct{{Kind: session.ActDelegated, Who: "ana", To: "bob", At: at(1)}}
		f.update(item)
		require.Equal(f, []string{"s-1 w1-1", "s-1 w1-0"}, f.findAll(store.FindParams{Kind: store.FindWaits, Tenant: "acme"}))
		require.Equal(f, []string{"s-1 w1-0"}, f.findAll(store.FindParams{Kind: store.FindWaits, Tenant: "acme", User: "bob"}))
		require.NotContains(f, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(69)}), "s-1 w1-0")
		require.Contains(f, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(70)}), "s-1 w1-0")
	}},
	{"due are heads and waits of every tenant up to a time and the earliest first", func(f *fixture) {
		due := func(n int) func(h *journal.Head) { return func(h *journal.Head) { h.Due = ptr(at(n)) } }
		dueWait := func(n int) func(w *journal.WaitRecord) {
			return func(w *journal.WaitRecord) { w.Due, w.State = ptr(at(n)), session.WaitAnswered }
		}
		f.put("acme", "a", due(30))
		f.putWait("w2-0", dueWait(10))
		f.put("globex", "b", due(20))
		f.putWait("w2-0", dueWait(41))
		f.put("acme", "c", nil)
		f.putWait("w2-0", nil)
		p := store.FindParams{Kind: store.FindDue, Before: at(40)}
		want := []string{"a w2-0", "b", "a"}
		require.Equal(f, want, f.findAll(p))
		p.Limit = 1
		require.Equal(f, want, f.findAll(p))
		p.Before = at(10)
		require.Equal(f, []string{"a w2-0"}, f.findAll(p), "not after: the time itself counts")
		p.Before = at(9)
		require.Empty(f, f.findAll(p))
	}},
	{"ahead are heads and waits but open ones that are due after a time and the earliest first", func(f *fixture) {
		due := func(n int) func(h *journal.Head) { return func(h *journal.Head) { h.Due = ptr(at(n)) } }
		dueWait := func(n int, state session.WaitState) func(w *journal.WaitRecord) {
			return func(w *journal.WaitRecord) { w.Due, w.State = ptr(at(n)), state }
		}
		f.put("acme", "a", due(130))
		f.putWait("w2-0", dueWait(110, session.WaitAnswered))
		f.putWait("w2-1", dueWait(110, session.WaitOpen)) // a deadline may be far away
		f.put("globex", "b", due(120))
		f.putWait("w2-0", dueWait(100, session.WaitExpired))
		f.putWait("w2-1", dueWait(99, session.WaitExpired))
		f.put("acme", "c", nil)
		p := store.FindParams{Kind: store.FindAhead, After: at(100)}
		want := []string{"a w2-0", "b", "a"}
		require.Equal(f, want, f.findAll(p))
		p.Limit = 1
		require.Equal(f, want, f.findAll(p))
		p.After = at(99)
		require.Equal(f, []string{"b w2-0", "a w2-0", "b", "a"}, f.findAll(p), "after: the time itself does not count")
		p.After = at(130)
		require.Empty(f, f.findAll(p))
		f.key = session.Key{Tenant: "acme", ID: "a"}
		answered := f.currentWait("w2-1")
		answered.Wait.State = session.WaitAnswered
		f.update(answered)
		p.After = at(100)
		require.Equal(f, []string{"a w2-0", "a w2-1", "b", "a"}, f.findAll(p), "the due of an answered wait is no deadline")
		require.Equal(f, []string{"b w2-1", "b w2-0", "a w2-0", "a w2-1", "b", "a"}, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(1000)}))
	}},
	{"ahead is not what expires long after its end", func(f *fixture) {
		f.put("acme", "a", func(h *journal.Head) { h.Due = ptr(at(130)) })
		f.put("acme", "b", func(h *journal.Head) { h.Due, h.Status = ptr(at(120)), session.StatusSuspended })
		f.put("acme", "c", func(h *journal.Head) { h.Due, h.Status = ptr(at(125)), session.StatusInterrupted })
		for i, status := range []session.Status{session.StatusCompleted, session.StatusFailed, session.StatusCancelled} {
			f.put("acme", string(status), func(h *journal.Head) { h.Due, h.Status = ptr(at(121+i)), status })
		}
		for _, limit := range []int{0, 1} {
			require.Equal(f, []string{"b", "c", "a"}, f.findAll(store.FindParams{Kind: store.FindAhead, After: at(100), Limit: limit}))
			require.Equal(f, []string{"b", "completed", "failed", "cancelled", "c", "a"}, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(130), Limit: limit}))
		}
	}},
	{"ahead is not what is cancelled long after its start", func(f *fixture) {
		until := func(due, cancelled int) func(h *journal.Head) {
			return func(h *journal.Head) {
				h.Due, h.CancelAt, h.Status = ptr(at(due)), ptr(at(cancelled)), session.StatusSuspended
			}
		}
		f.put("acme", "a", until(130, 130))
		f.put("acme", "b", until(120, 130))
		f.put("acme", "c", until(125, 110))
		f.put("acme", "d", func(h *journal.Head) { h.Due, h.CancelAt, h.Status = ptr(at(128)), ptr(at(128)), session.StatusRunning })
		for _, limit := range []int{0, 1} {
			require.Equal(f, []string{"b", "c", "d"}, f.findAll(store.FindParams{Kind: store.FindAhead, After: at(100), Limit: limit}))
			require.Equal(f, []string{"b", "c", "d", "a"}, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(130), Limit: limit}))
		}
		require.True(f, at(128).Equal(*f.head().Head.CancelAt))
	}},
	{"a time centuries away sorts last and does not come early", func(f *fixture) {
		far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		f.put("acme", "a", func(h *journal.Head) { h.Due = &far })
		f.putWait("w2-0", func(w *journal.WaitRecord) {
			w.Due, w.Wait.Deadline = &far, &session.Deadline{At: far, Outcome: session.ExpireDeny}
		})
		f.putWait("w2-1", nil)
		f.putWait("w2-2", until(50))
		p := store.FindParams{Kind: store.FindWaits, Tenant: "acme"}
		require.Equal(f, []string{"a w2-2", "a w2-0", "a w2-1"}, f.findAll(p))
		p.Limit = 1
		require.Equal(f, []string{"a w2-2", "a w2-0", "a w2-1"}, f.findAll(p))
		for _, year := range []int{2026, 2262, 2263, 2300, 9000} {
			before := time.Date(year, 5, 1, 0, 0, 0, 0, time.UTC)
			require.Empty(f, f.findAll(store.FindParams{Kind: store.FindDue, Before: before}), year)
		}
		require.Equal(f, []string{"a"}, f.findAll(store.FindParams{Kind: store.FindAhead, After: at(0)}))
		require.True(f, far.Equal(*f.head().Head.Due))
	}},
	{"notices are those of a tenant the newest first and due as far ahead as they say", func(f *fixture) {
		for i, id := range []string{"a", "b", "c"} {
			f.put([]string{"acme", "acme", "globex"}[i], id, nil)
			f.update(store.NoticeItem(notice(i+1), 0))
			f.update(store.NoticeItem(notice(i+7), 0))
		}
		for _, limit := range []int{0, 1, 3} {
			require.Equal(f, []string{"b 8", "a 7", "b 2", "a 1"}, f.findAll(store.FindParams{Kind: store.FindNotices, Tenant: "acme", Limit: limit}))
		}
		require.Equal(f, []string{"a 1", "b 2", "c 3"}, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(103)}))
		require.Empty(f, f.findAll(store.FindParams{Kind: store.FindAhead, After: at(0)}))
		f.key = session.Key{Tenant: "globex", ID: "c"}
		sent := f.items(store.KindNotice, notice(3).ID)[0]
		sent.Notice.Due = nil
		f.update(sent)
		require.Equal(f, []string{"a 1", "b 2"}, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(103)}))
		require.Equal(f, []string{"c 9", "c 3"}, f.findAll(store.FindParams{Kind: store.FindNotices, Tenant: "globex"}))
	}},
	{"what is no longer due is not found", func(f *fixture) {
		f.put("acme", "a", func(h *journal.Head) { h.Due = ptr(at(5)) })
		h := f.head()
		h.Head.Due = nil
		f.update(h)
		require.Empty(f, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(1000)}))
	}},
	{"equal times lose nothing between pages", func(f *fixture) {
		want := map[string]bool{}
		for i := range 12 {
			id := fmt.Sprintf("s%d", i)
			want[id] = true
			want[id+" w1-0"] = true
			f.put("acme", id, func(h *journal.Head) { h.Due = ptr(at(5)) })
			f.putWait("w1-0", func(w *journal.WaitRecord) { w.Due = ptr(at(5)) })
		}
		for limit := 1; limit <= 7; limit += 3 {
			sessions := f.findAll(store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: limit})
			waits := f.findAll(store.FindParams{Kind: store.FindWaits, Tenant: "acme", Limit: limit})
			due := f.findAll(store.FindParams{Kind: store.FindDue, Before: at(5), Limit: limit})
			require.ElementsMatch(f, names(want), append(sessions, waits...), limit)
			require.ElementsMatch(f, names(want), due, limit)
		}
	}},
	{"a page is at most its limit long and says whether there is another", func(f *fixture) {
		for i := range 5 {
			f.put("acme", fmt.Sprintf("s%d", i), nil)
		}
		p := store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: 3}
		first := f.find(p)
		require.Len(f, first.Found, 3)
		require.NotEmpty(f, first.Cursor)
		p.Cursor = first.Cursor
		second := f.find(p)
		require.Len(f, second.Found, 2)
		require.Empty(f, second.Cursor)
		p.Cursor, p.Limit = "", 5
		require.Empty(f, f.find(p).Cursor)
	}},
	{"the limit is 100 by default", func(f *fixture) {
		for i := range 101 {
			f.put("acme", fmt.Sprintf("s%d", i), nil)
		}
		page := f.find(store.FindParams{Kind: store.FindSessions, Tenant: "acme"})
		require.Len(f, page.Found, 100)
		require.NotEmpty(f, page.Cursor)
	}},
	{"a limit out of range is refused", func(f *fixture) {
		for _, limit := range []int{-1, 1001, math.MaxInt} {
			_, err := f.store.Find(f.Context(), store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: limit})
			require.Error(f, err)
		}
	}},
	{"a cursor that is not ours is refused", func(f *fixture) {
		for i := range 3 {
			f.put("acme", fmt.Sprintf("s%d", i), func(h *journal.Head) { h.Due = ptr(at(1)) })
			f.putWait("w1-0", nil)
		}
		p := store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: 1}
		ours := f.find(p).Cursor
		for _, cursor := range []string{"x", "!!", "AAAA", ours + "A", ours[1:], "MS4yLjM", strings.Repeat("A", 4_000)} {
			for _, kind := range []store.FindKind{store.FindSessions, store.FindWaits, store.FindDue, store.FindAhead} {
				_, err := f.store.Find(f.Context(), store.FindParams{Kind: kind, Tenant: "acme", Before: at(1), Cursor: cursor})
				require.ErrorIs(f, err, store.ErrInvalidCursor, "%s %q", kind, cursor)
			}
		}
		_, err := f.store.Find(f.Context(), store.FindParams{Kind: store.FindWaits, Tenant: "acme", Cursor: ours})
		require.ErrorIs(f, err, store.ErrInvalidCursor, "that of another search")
		_, err = f.store.Find(f.Context(), store.FindParams{Kind: store.FindSessions, Tenant: "globex", Cursor: ours})
		require.ErrorIs(f, err, store.ErrInvalidCursor, "that of another tenant")
		_, err = f.store.Find(f.Context(), store.FindParams{Kind: store.FindSessions, Tenant: "acme", Status: session.StatusFailed, Cursor: ours})
		require.ErrorIs(f, err, store.ErrInvalidCursor, "that of another status")
	}},
	{"what cannot be read hides nothing else and is found without its record", func(f *fixture) {
		saboteur, ok := f.store.(Saboteur)
		if !ok {
			f.Skip("this fixture cannot damage an item")
		}
		for i, id := range []string{"a", "b", "c"} {
			f.put("acme", id, func(h *journal.Head) {
				h.Due, h.Status, h.UpdatedAt = ptr(at(i)), session.StatusSuspended, at(i)
			})
			f.putWait("w1-0", func(w *journal.WaitRecord) { w.Due, w.Wait.OpenedAt = ptr(at(10+i)), at(i) })
		}
		bad := session.Key{Tenant: "acme", ID: "b"}
		require.NoError(f, saboteur.SpoilItem(f.Context(), bad, store.KindHead, ""))
		require.NoError(f, saboteur.SpoilItem(f.Context(), bad, store.KindWait, "w1-0"))
		unread := func(p store.FindParams) []store.Item {
			var items []store.Item
			page := f.find(p)
			require.Empty(f, page.Cursor)
			for _, found := range page.Found {
				require.Equal(f, found.Key == bad, found.Unread != nil, found.Key)
				if found.Unread != nil {
					items = append(items, found.Item)
				}
			}
			require.Len(f, page.Found, 3*len(items))
			return items
		}
		head := &journal.Head{Key: bad, Status: session.StatusSuspended, UpdatedAt: at(1)}
		wait := &journal.WaitRecord{Wait: session.Wait{ID: "w1-0", OpenedAt: at(1)}, State: session.WaitOpen}
		p := store.FindParams{Kind: store.FindSessions, Tenant: "acme"}
		require.Equal(f, []store.Item{{Kind: store.KindHead, Head: head}}, unread(p))
		p.Status = session.StatusSuspended
		require.Len(f, unread(p), 1)
		p.Status = session.StatusFailed
		require.Empty(f, unread(p))
		require.Equal(f, []store.Item{{Kind: store.KindWait, ID: "w1-0", Wait: wait}}, unread(store.FindParams{Kind: store.FindWaits, Tenant: "acme"}))
		require.Equal(f, []store.Item{{Kind: store.KindHead}, {Kind: store.KindWait, ID: "w1-0"}}, unread(store.FindParams{Kind: store.FindDue, Before: at(20)}))
	}},
	{"a write is found as soon as it returned", func(f *fixture) {
		for i := range 20 {
			f.put("acme", fmt.Sprintf("s%02d", i), func(h *journal.Head) { h.UpdatedAt = at(i) })
			page := f.find(store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: 1})
			require.Equal(f, f.key, page.Found[0].Key)
		}
	}},
	{"deleted sessions and their waits are not found", func(f *fixture) {
		f.put("acme", "a", func(h *journal.Head) { h.Due = ptr(at(1)) })
		f.putWait("w1-0", func(w *journal.WaitRecord) { w.Due = ptr(at(1)) })
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		for _, kind := range []store.FindKind{store.FindSessions, store.FindWaits, store.FindDue, store.FindAhead} {
			require.Empty(f, f.findAll(store.FindParams{Kind: kind, Tenant: "acme", Before: at(100)}), kind)
		}
	}},
}

func names(set map[string]bool) []string {
	var all []string
	for name := range set {
		all = append(all, name)
	}
	return all
}

var deleteTests = []test{
	{"everything is removed but a tombstone of HEAD", func(f *fixture) {
		items := everyKind(f)
		f.commit(1, items...)
		f.commit(2)
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		require.Empty(f, f.entries(0))
		for _, item := range items {
			switch item.Kind {
			case store.KindHead:
				h := f.head().Head
				require.True(f, h.Deleted)
				require.Equal(f, f.key, h.Key)
				require.Empty(f, h.Title)
				require.Zero(f, h.Lease)
			case store.KindIdempotency, store.KindTenantRecord: // the tenant's
				require.NotEmpty(f, f.items(item.Kind, item.ID), item.Kind)
			case store.KindWait, store.KindRun, store.KindTool, store.KindMail, store.KindAudit, store.KindNotice:
				require.Empty(f, f.items(item.Kind, ""), item.Kind)
			}
		}
	}},
	{"deleting twice is no error", func(f *fixture) {
		f.start()
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
	}},
	{"a session that never existed is not found", func(f *fixture) {
		require.ErrorIs(f, f.store.Delete(f.Context(), f.key), store.ErrNotFound)
	}},
	{"the id is never used again", func(f *fixture) {
		f.start()
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: []store.Item{store.HeadItem(head(f.key), 0)}})
		require.True(f, conflict(f, err).Item.Head.Deleted)
		require.Empty(f, f.entries(0))
	}},
	{"a worker that was stopped meanwhile finds no session whatever it commits", func(f *fixture) {
		f.start()
		for seq := int64(2); seq <= 7; seq++ {
			f.commit(seq)
		}
		f.update(store.WaitItem(wait("w1-0"), 0))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		refused := func(seq int64, items ...store.Item) {
			f.Helper()
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(seq), Items: items})
			require.ErrorIs(f, err, store.ErrNotFound)
		}
		for _, seq := range []int64{8, 7, 3} { // it may have been stopped long ago
			refused(seq)
			refused(seq, store.HeadItem(head(f.key), 1))
			refused(seq, store.HeadItem(head(f.key), 2)) // the tombstone's, perhaps
			refused(seq, store.WaitItem(wait("w1-0"), 1), store.HeadItem(head(f.key), 1))
			refused(seq, store.ToolItem(tool("c1-0"), 0))
		}
		require.Empty(f, f.entries(0))
		require.Empty(f, f.entries(6))
		require.Empty(f, f.items(store.KindTool, ""))
		require.True(f, f.head().Head.Deleted)
	}},
	{"a call whose ledger was written cannot be started again", func(f *fixture) {
		f.start()
		f.update(store.ToolItem(tool("c1-0"), 0))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		_, err := f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-0"), 0))
		require.ErrorIs(f, err, store.ErrNotFound)
		_, err = f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-0"), 1))
		require.Error(f, err)
		for _, rev := range []int64{0, 1} { // nor among several
			_, err = f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-1"), 0), store.ToolItem(tool("c1-0"), rev))
			require.Error(f, err)
		}
		require.Empty(f, f.items(store.KindTool, ""))
		require.Empty(f, f.items(store.KindTool, "c1-0"))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
	}},
	{"other sessions are not touched", func(f *fixture) {
		f.put("acme", "b", nil)
		f.put("globex", "a", nil)
		f.put("acme", "a", nil)
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		for _, key := range []session.Key{{Tenant: "acme", ID: "b"}, {Tenant: "globex", ID: "a"}} {
			f.key = key
			require.Len(f, f.entries(0), 1)
			require.False(f, f.head().Head.Deleted)
		}
	}},
}
