package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// crowd puts sessions of two tenants that differ in all that lists can be kept
// to, the last first in a list: a to e, d a child of b, e one of d.
func (f *fixture) crowd() {
	f.Helper()
	under := func(parent, root string) *session.Parent {
		return &session.Parent{Session: parent, Wait: "w1-0", Root: root, Depth: 1}
	}
	for i, h := range []journal.Head{
		{Key: session.Key{ID: "e"}, Agent: "clerk", StartedBy: "bob", Parent: under("d", "b"), Status: session.StatusFailed},
		{Key: session.Key{ID: "d"}, Agent: "clerk", StartedBy: "ana", Tags: []string{"x"}, Parent: under("b", "b"), Status: session.StatusFailed},
		{Key: session.Key{ID: "c"}, Agent: "lab", StartedBy: "ana", Tags: []string{"x", "team:web"}, Status: session.StatusRunning},
		{Key: session.Key{ID: "b"}, Agent: "lab", StartedBy: "bob", Tags: []string{"team:web"}, Status: session.StatusRunning},
		{Key: session.Key{ID: "a"}, Agent: "lab", Tags: []string{"xy"}, Status: session.StatusFailed},
	} {
		for _, tenant := range []string{"acme", "globex"} {
			f.put(tenant, h.Key.ID, func(to *journal.Head) {
				to.Agent, to.StartedBy, to.Tags, to.Parent, to.Status, to.UpdatedAt = h.Agent, h.StartedBy, h.Tags, h.Parent, h.Status, at(i)
			})
		}
	}
}

// queue puts waits that differ in all that lists can be kept to into two
// sessions of a crowd, in the order of a list: b 1 to 4, d 1 and 2.
func (f *fixture) queue() {
	f.Helper()
	for i, w := range []journal.WaitRecord{
		{Agent: "lab", Wait: session.Wait{ID: "b1", Kind: session.WaitApproval, Tool: "rm"}},
		{Agent: "lab", Wait: session.Wait{ID: "b2", Kind: session.WaitApproval, Tool: "deploy", Who: []string{"ana"}}},
		{Agent: "lab", Wait: session.Wait{ID: "b3", Kind: session.WaitQuestion, Tool: "rm", Who: []string{"ana", "bob", "ana"}}},
		{Agent: "lab", Wait: session.Wait{ID: "b4", Kind: session.WaitInput}},
		{Agent: "clerk", Root: "b", Wait: session.Wait{ID: "d1", Kind: session.WaitApproval, Tool: "rm", Who: []string{"bob"}}},
		{Agent: "clerk", Root: "b", Wait: session.Wait{ID: "d2", Kind: session.WaitUnknown, Tool: "rm"}},
	} {
		for _, tenant := range []string{"acme", "globex"} {
			f.key = session.Key{Tenant: tenant, ID: w.Wait.ID[:1]}
			w.State, w.Wait.OpenedAt = session.WaitOpen, at(i)
			f.update(store.WaitItem(w, 0))
		}
	}
}

// keeps requires what a search finds, by ids, in pages of every size.
func (f *fixture) keeps(p store.FindParams, want ...string) {
	f.Helper()
	p.Tenant = "acme"
	for _, limit := range []int{0, 1, 2, 3} {
		p.Limit = limit
		var ids []string
		for _, name := range f.findAll(p) {
			ids = append(ids, name[max(0, len(name)-2):])
		}
		require.Equal(f, want, ids, "%+v", p)
	}
}

var keepTests = []test{
	{"sessions are kept to an agent a root a user or a tag", func(f *fixture) {
		f.crowd()
		sessions := store.FindParams{Kind: store.FindSessions}
		for _, c := range []struct {
			set  func(p *store.FindParams)
			want []string
		}{
			{func(p *store.FindParams) { p.Agent = "lab" }, []string{"a", "b", "c"}},
			{func(p *store.FindParams) { p.Agent = "la" }, nil},
			{func(p *store.FindParams) { p.Root = "b" }, []string{"b", "d", "e"}},
			{func(p *store.FindParams) { p.Root = "d" }, nil},
			{func(p *store.FindParams) { p.Root = "a" }, []string{"a"}},
			{func(p *store.FindParams) { p.User = "ana" }, []string{"c", "d"}},
			{func(p *store.FindParams) { p.User = "an" }, nil},
			{func(p *store.FindParams) { p.Tag = "x" }, []string{"c", "d"}},
			{func(p *store.FindParams) { p.Tag = "team:web" }, []string{"b", "c"}},
			{func(p *store.FindParams) { p.Tag = "team" }, nil},
		} {
			p := sessions
			c.set(&p)
			f.keeps(p, c.want...)
		}
	}},
	{"waits are selected by agent root kind tool or user who may answer", func(f *fixture) {
		f.crowd()
		f.queue()
		for _, c := range []struct {
			set  func(p *store.FindParams)
			want []string
		}{
			{func(p *store.FindParams) { p.Agent = "clerk" }, []string{"d1", "d2"}},
			{func(p *store.FindParams) { p.Root = "b" }, []string{"b1", "b2", "b3", "b4", "d1", "d2"}},
			{func(p *store.FindParams) { p.Root = "d" }, nil},
			{func(p *store.FindParams) { p.WaitKind = session.WaitApproval }, []string{"b1", "b2", "d1"}},
			{func(p *store.FindParams) { p.Tool = "rm" }, []string{"b1", "b3", "d1", "d2"}},
			{func(p *store.FindParams) { p.Tool = "r" }, nil},
			{func(p *store.FindParams) { p.User = "ana" }, []string{"b1", "b2", "b3", "b4", "d2"}},
			{func(p *store.FindParams) { p.User = "bob" }, []string{"b1", "b3", "b4", "d1", "d2"}},
			{func(p *store.FindParams) { p.User = "an" }, []string{"b1", "b4", "d2"}},
		} {
			p := store.FindParams{Kind: store.FindWaits}
			c.set(&p)
			f.keeps(p, c.want...)
		}
	}},
	{"all that keep only some hold at once", func(f *fixture) {
		f.crowd()
		f.queue()
		f.keeps(store.FindParams{Kind: store.FindSessions, Agent: "lab", Tag: "team:web", User: "ana"}, "c")
		f.keeps(store.FindParams{Kind: store.FindSessions, Status: session.StatusFailed, Root: "b"}, "d", "e")
		f.keeps(store.FindParams{Kind: store.FindSessions, Status: session.StatusRunning, Agent: "clerk"})
		f.keeps(store.FindParams{Kind: store.FindWaits, Agent: "clerk", WaitKind: session.WaitApproval, User: "bob", Root: "b", Tool: "rm"}, "d1")
		f.keeps(store.FindParams{Kind: store.FindWaits, WaitKind: session.WaitApproval, User: "ana", Tool: "deploy"}, "b2")
	}},
	{"what has changed is kept by what it is now", func(f *fixture) {
		f.crowd()
		f.queue()
		f.key = session.Key{Tenant: "acme", ID: "c"}
		h := f.head()
		h.Head.Tags, h.Head.Agent, h.Head.StartedBy = []string{"y"}, "clerk", ""
		f.update(h)
		f.keeps(store.FindParams{Kind: store.FindSessions, Tag: "x"}, "d")
		f.keeps(store.FindParams{Kind: store.FindSessions, Tag: "y"}, "c")
		f.keeps(store.FindParams{Kind: store.FindSessions, User: "ana"}, "d")
		f.keeps(store.FindParams{Kind: store.FindSessions, Agent: "clerk"}, "c", "d", "e")
		h = f.head()
		h.Head.Tags = nil
		f.update(h)
		f.keeps(store.FindParams{Kind: store.FindSessions, Tag: "y"})
		f.key.ID = "b"
		w := f.currentWait("b2")
		w.Wait.Wait.Who = nil
		f.update(w)
		f.keeps(store.FindParams{Kind: store.FindWaits, User: "bob"}, "b1", "b2", "b3", "b4", "d1", "d2")
		w = f.currentWait("b2")
		w.Wait.State = session.WaitAnswered
		f.update(w)
		f.keeps(store.FindParams{Kind: store.FindWaits, Tool: "deploy"})
	}},
	{"among many few are found in pages that lose none", func(f *fixture) {
		var want []string
		for i := range 90 {
			f.put("acme", fmt.Sprintf("s%02d", i), func(h *journal.Head) {
				if i%30 == 7 {
					h.Tags = []string{"rare"}
				}
			})
			if i%30 == 7 {
				want = append(want, f.key.ID)
			}
		}
		for _, limit := range []int{1, 2, 3, 4, 100} {
			require.ElementsMatch(f, want, f.findAll(store.FindParams{Kind: store.FindSessions, Tenant: "acme", Tag: "rare", Limit: limit}))
		}
	}},
	{"a parameter that does not fit the search, and a tenant that cannot be, are refused", func(f *fixture) {
		for _, p := range []store.FindParams{
			{Kind: store.FindSessions, WaitKind: session.WaitApproval},
			{Kind: store.FindSessions, Tool: "rm"},
			{Kind: store.FindWaits, Status: session.StatusRunning},
			{Kind: store.FindWaits, Tag: "x"},
			{Kind: store.FindDue, Agent: "lab"},
			{Kind: store.FindDue, User: "ana"},
			{Kind: store.FindDue, Root: "b"},
			{Kind: store.FindDue, Status: session.StatusRunning},
			{Kind: store.FindAhead, Tool: "rm"},
			{Kind: "odd"},
		} {
			p.Tenant = "acme"
			_, err := f.store.Find(f.Context(), p)
			require.Error(f, err, "%+v", p)
		}
		for _, tenant := range []string{"", "a/b"} {
			for _, kind := range []store.FindKind{store.FindSessions, store.FindWaits} {
				_, err := f.store.Find(f.Context(), store.FindParams{Kind: kind, Tenant: tenant})
				require.ErrorIs(f, err, session.ErrInvalidID, "%s of %q", kind, tenant)
			}
		}
	}},
	{"a cursor of another selection is refused", func(f *fixture) {
		f.crowd()
		f.queue()
		for _, p := range []store.FindParams{
			{Kind: store.FindSessions, Agent: "lab"},
			{Kind: store.FindSessions, Tag: "x"},
			{Kind: store.FindSessions, Root: "b"},
			{Kind: store.FindSessions, User: "ana"},
			{Kind: store.FindWaits, Tool: "rm"},
			{Kind: store.FindWaits, WaitKind: session.WaitApproval},
		} {
			p.Tenant, p.Limit = "acme", 1
			ours := f.find(p).Cursor
			require.NotEmpty(f, ours)
			_, err := f.store.Find(f.Context(), store.FindParams{Kind: p.Kind, Tenant: "acme", Cursor: ours})
			require.ErrorIs(f, err, store.ErrInvalidCursor, "%+v", p)
			_, err = f.store.Find(f.Context(), store.FindParams{Kind: p.Kind, Tenant: "acme", Cursor: ours, Agent: "clerk"})
			require.ErrorIs(f, err, store.ErrInvalidCursor, "%+v", p)
		}
	}},
	{"what is damaged is not found where only some are kept", func(f *fixture) {
		saboteur, ok := f.store.(Saboteur)
		if !ok {
			f.Skip("this fixture cannot damage an item")
		}
		f.crowd()
		f.queue()
		bad := session.Key{Tenant: "acme", ID: "b"}
		require.NoError(f, saboteur.SpoilItem(f.Context(), bad, store.KindHead, ""))
		require.NoError(f, saboteur.SpoilItem(f.Context(), bad, store.KindWait, "b1"))
		f.keeps(store.FindParams{Kind: store.FindSessions, Agent: "lab"}, "a", "c")
		f.keeps(store.FindParams{Kind: store.FindWaits, Tool: "rm"}, "b3", "d1", "d2")
	}},
}
