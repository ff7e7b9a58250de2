package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

var (
	parent   = session.Key{Tenant: "acme", ID: "parent"}
	stranger = session.Key{Tenant: "globex", ID: "parent"}
)

// family starts a parent that waits, and the session of the fixture, its child.
func (f *fixture) family() {
	f.Helper()
	child := f.key
	f.put(parent.Tenant, parent.ID, nil)
	f.putWait("w1-0", until(50))
	f.key = child
	f.start()
}

// of reads as another session.
func (f *fixture) of(key session.Key, kind store.ItemKind, id string) []store.Item {
	f.Helper()
	return collect(f, f.store.Items(f.Context(), key, kind, id))
}

// writes are the two ways to write items of a session that has one entry.
var writes = map[string]func(f *fixture, items ...store.Item) error{
	"commit": func(f *fixture, items ...store.Item) error {
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(2), Items: items})
		return err
	},
	"update": func(f *fixture, items ...store.Item) error {
		_, err := f.store.Update(f.Context(), f.key, items...)
		return err
	},
}

// unchanged requires that a family is as it was started.
func (f *fixture) unchanged() {
	f.Helper()
	require.Len(f, f.entries(0), 1)
	require.EqualValues(f, 1, f.head().Rev)
	require.Empty(f, f.items(store.KindTool, ""))
	require.Equal(f, session.WaitOpen, f.of(parent, store.KindWait, "w1-0")[0].Wait.State)
	require.EqualValues(f, 1, f.of(parent, store.KindHead, "")[0].Rev)
	require.Empty(f, f.of(parent, store.KindMail, ""))
}

func letter() store.Item { return store.MailItem(journal.Mail{ID: "m1", Who: "child", At: at(5)}, 0) }

var acrossTests = []test{
	{"a commit writes its entry and items of other sessions of its tenant", func(f *fixture) {
		f.family()
		mine := head(f.key)
		mine.Status = session.StatusCompleted
		theirs := head(parent)
		theirs.MailCount = 1
		f.commit(2, store.HeadItem(mine, 1), store.WaitItem(answered("w1-0", 2), 1).In(parent), letter().In(parent), store.HeadItem(theirs, 1).In(parent))
		require.Len(f, f.entries(0), 2)
		require.Equal(f, session.StatusCompleted, f.head().Head.Status)
		require.Equal(f, []store.Item{store.WaitItem(answered("w1-0", 2), 2)}, f.of(parent, store.KindWait, ""))
		require.Equal(f, []store.Item{store.HeadItem(theirs, 2)}, f.of(parent, store.KindHead, ""))
		require.Len(f, f.of(parent, store.KindMail, "m1"), 1)
		require.Empty(f, f.items(store.KindWait, ""))
		require.Empty(f, f.items(store.KindMail, ""))
		require.Empty(f, f.findAll(store.FindParams{Kind: store.FindWaits, Tenant: "acme"}))
	}},
	{"an update writes items of other sessions and its results name theirs", func(f *fixture) {
		f.family()
		given := []store.Item{store.ToolItem(tool("c1-0"), 0), store.WaitItem(answered("w1-0", 2), 1).In(parent), store.HeadItem(head(parent), 1).In(parent)}
		got, err := f.store.Update(f.Context(), f.key, given...)
		require.NoError(f, err)
		for i := range given {
			given[i].Rev++
		}
		require.Equal(f, given, got)
		require.Equal(f, []store.Item{store.WaitItem(answered("w1-0", 2), 2)}, f.of(parent, store.KindWait, ""))
	}},
	{"one item of another session is written", func(f *fixture) {
		f.family()
		got, err := f.store.Update(f.Context(), f.key, store.WaitItem(answered("w1-0", 2), 1).In(parent))
		require.NoError(f, err)
		require.Equal(f, []store.Item{store.WaitItem(answered("w1-0", 2), 2).In(parent)}, got)
		require.Empty(f, f.items(store.KindWait, ""))
	}},
	{"where no item is the session's own a tenant is enough", func(f *fixture) {
		f.family()
		got, err := f.store.Update(f.Context(), session.Key{Tenant: "acme"}, store.WaitItem(answered("w1-0", 2), 1).In(parent), store.HeadItem(head(f.key), 1).In(f.key))
		require.NoError(f, err)
		require.Equal(f, []session.Key{parent, f.key}, []session.Key{got[0].Key, got[1].Key})
		_, err = f.store.Update(f.Context(), session.Key{Tenant: "acme"}, store.WaitItem(answered("w1-0", 2), 2))
		require.ErrorIs(f, err, session.ErrInvalidID)
	}},
	{"an item that names the own session is like one that names none", func(f *fixture) {
		f.start()
		got := f.update(store.ToolItem(tool("c1-0"), 0).In(f.key))
		require.Equal(f, store.ToolItem(tool("c1-0"), 1), got)
		f.commit(2, store.ToolItem(tool("c1-0"), 1).In(f.key))
		_, err := f.store.Update(f.Context(), f.key, store.ToolItem(tool("c1-0"), 1).In(f.key))
		require.Equal(f, store.ToolItem(tool("c1-0"), 2), *conflict(f, err).Item)
	}},
	{"nothing is written in any session when one item refuses and the conflict names its session", func(f *fixture) {
		f.family()
		mine, theirs := store.HeadItem(head(f.key), 1), store.WaitItem(answered("w1-0", 2), 1).In(parent)
		for name, write := range writes {
			err := write(f, mine, store.ToolItem(tool("c1-0"), 0), store.WaitItem(answered("w1-0", 2), 4).In(parent))
			require.Equal(f, store.WaitItem(f.waiting(), 1).In(parent), *conflict(f, err).Item, name)
			err = write(f, mine, store.WaitItem(answered("w7-0", 2), 1).In(parent))
			require.Equal(f, store.Item{Kind: store.KindWait, ID: "w7-0", Key: parent}, *conflict(f, err).Item, name)
			err = write(f, theirs, store.HeadItem(head(f.key), 9))
			require.Equal(f, f.head(), *conflict(f, err).Item, name)
			err = write(f, theirs, store.HeadItem(head(parent), 9).In(parent))
			require.Equal(f, store.HeadItem(head(parent), 1).In(parent), *conflict(f, err).Item, name)
			f.unchanged()
		}
		_, err := f.store.Commit(f.Context(), store.CommitParams{Key: f.key, Entry: entry(1), Items: []store.Item{theirs}})
		require.NotNil(f, conflict(f, err).Entry)
		f.unchanged()
	}},
	{"of 64 sessions that answer one wait of another one wins and the others wrote nothing", func(f *fixture) {
		f.family()
		errs := race(64, func(i int) error {
			key := session.Key{Tenant: "acme", ID: fmt.Sprintf("child-%d", i)}
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: key, Entry: entry(1), Items: []store.Item{
				store.HeadItem(head(key), 0), store.WaitItem(answered("w1-0", int64(i+1)), 1).In(parent),
			}})
			return err
		})
		require.Equal(f, 1, successes(errs))
		winner := f.of(parent, store.KindWait, "w1-0")[0].Wait.TakenBy - 1
		for i := range errs {
			f.key.ID = fmt.Sprintf("child-%d", i)
			if int64(i) == winner {
				require.Len(f, f.entries(0), 1)
			} else {
				require.Empty(f, f.entries(0))
				require.Empty(f, f.items(store.KindHead, ""))
			}
		}
	}},
	{"an item of another tenant is refused", func(f *fixture) {
		f.put(stranger.Tenant, stranger.ID, nil)
		f.putWait("w1-0", nil)
		f.key = session.Key{Tenant: "acme", ID: "s-1"}
		f.family()
		foreign := []store.Item{
			store.WaitItem(answered("w1-0", 2), 1).In(stranger), store.HeadItem(head(stranger), 1).In(stranger),
			store.TenantItem(journal.TenantRecord{Name: "n"}, 0).In(session.Key{Tenant: "globex"}),
			store.IdempotencyItem(journal.Idempotency{Key: "k"}, 0).In(session.Key{Tenant: "globex"}),
		}
		for name, write := range writes {
			for _, item := range foreign {
				for _, items := range [][]store.Item{{item}, {item, store.ToolItem(tool("c1-0"), 0)}} {
					err := write(f, items...)
					require.Error(f, err, name)
					require.NotErrorIs(f, err, store.ErrConflict, name)
				}
			}
		}
		f.unchanged()
		require.Equal(f, session.WaitOpen, f.of(stranger, store.KindWait, "w1-0")[0].Wait.State)
		require.Empty(f, f.of(stranger, store.KindTenantRecord, "n"))
		require.Empty(f, f.of(stranger, store.KindIdempotency, "k"))
	}},
	{"a new item of another session needs a HEAD of it that exists in the same write", func(f *fixture) {
		f.family()
		unborn := session.Key{Tenant: "acme", ID: "unborn"}
		for name, write := range writes {
			for _, items := range [][]store.Item{
				{letter().In(parent)},
				{letter().In(parent), store.HeadItem(head(f.key), 1)},
				{letter().In(parent), store.WaitItem(answered("w1-0", 2), 1).In(parent)},
				{letter().In(unborn), store.HeadItem(head(parent), 1).In(parent)},
				{letter().In(unborn), store.HeadItem(head(unborn), 0).In(unborn)},
				{store.HeadItem(head(unborn), 0).In(unborn)},
			} {
				err := write(f, items...)
				require.Error(f, err, name)
				require.NotErrorIs(f, err, store.ErrConflict, name)
				f.unchanged()
			}
			err := write(f, letter().In(parent), store.HeadItem(head(parent), 2).In(parent))
			require.Equal(f, parent, conflict(f, err).Item.Key, name)
			f.unchanged()
		}
		f.commit(2, letter().In(parent), store.HeadItem(head(parent), 1).In(parent))
		require.Len(f, f.of(parent, store.KindMail, ""), 1)
	}},
	{"an item of another session that was deleted is a conflict absent or with the tombstone", func(f *fixture) {
		child := f.key
		f.family()
		f.key = parent
		f.update(store.ToolItem(tool("c1-0"), 0))
		require.NoError(f, f.store.Delete(f.Context(), parent))
		f.key = child
		mine := store.HeadItem(head(f.key), 1)
		for name, write := range writes {
			err := write(f, mine, store.WaitItem(answered("w1-0", 2), 1).In(parent))
			require.Equal(f, store.Item{Kind: store.KindWait, ID: "w1-0", Key: parent}, *conflict(f, err).Item, name)
			for _, items := range [][]store.Item{{store.ToolItem(tool("c1-0"), 1).In(parent)}, {store.ToolItem(tool("c1-0"), 1).In(parent), mine}} {
				err = write(f, items...)
				require.Equal(f, store.Item{Kind: store.KindTool, ID: "c1-0", Key: parent}, *conflict(f, err).Item, name)
			}
			for rev := range int64(3) {
				tombstone := store.HeadItem(head(parent), rev+1).In(parent)
				for _, items := range [][]store.Item{{tombstone}, {tombstone, mine}, {letter().In(parent), tombstone}} {
					there := conflict(f, write(f, items...)).Item
					require.True(f, there.Head.Deleted, name)
					require.Equal(f, parent, there.Key, name)
				}
			}
		}
		require.Len(f, f.entries(0), 1)
		require.EqualValues(f, 1, f.head().Rev)
		require.Empty(f, f.of(parent, store.KindMail, ""))
		require.Empty(f, f.of(parent, store.KindWait, ""))
		require.Empty(f, f.of(parent, store.KindTool, ""))
	}},
	{"a session that was deleted writes nothing into others", func(f *fixture) {
		f.family()
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		err := writes["commit"](f, store.WaitItem(answered("w1-0", 2), 1).In(parent))
		require.ErrorIs(f, err, store.ErrNotFound)
		err = writes["commit"](f, store.WaitItem(answered("w1-0", 2), 9).In(parent)) // whatever its condition
		require.ErrorIs(f, err, store.ErrNotFound)
		require.Equal(f, session.WaitOpen, f.of(parent, store.KindWait, "w1-0")[0].Wait.State)
	}},
	{"each session's HEAD keeps the lease it has", func(f *fixture) {
		f.family()
		thief := journal.Lease{Owner: "thief", Seq: 9, N: 9, Until: at(99)}
		mine, p := f.claim(take("mine", 2, 0, 20)), take("theirs", 5, 0, 30)
		p.Key = parent
		theirs := f.claim(p)
		items := func(rev int64) []store.Item {
			h, p := head(f.key), head(parent)
			h.Lease, p.Lease = thief, thief
			return []store.Item{store.HeadItem(p, rev).In(parent), store.HeadItem(h, rev)}
		}
		got, err := f.store.Update(f.Context(), f.key, items(1)...)
		require.NoError(f, err)
		require.Equal(f, theirs.Head.Lease, got[0].Head.Lease)
		require.Equal(f, mine.Head.Lease, got[1].Head.Lease)
		f.commit(2, items(2)...)
		require.Equal(f, theirs.Head.Lease, f.of(parent, store.KindHead, "")[0].Head.Lease)
		require.Equal(f, mine.Head.Lease, f.head().Head.Lease)
	}},
	{"an item may be in a write once and sessions are apart in it", func(f *fixture) {
		f.family()
		twice := store.WaitItem(answered("w1-0", 2), 1).In(parent)
		for name, write := range writes {
			err := write(f, twice, store.ToolItem(tool("c1-0"), 0), twice)
			require.Error(f, err, name)
			require.NotErrorIs(f, err, store.ErrConflict, name)
			err = write(f, store.ToolItem(tool("c1-0"), 0), store.ToolItem(tool("c1-0"), 0).In(f.key))
			require.Error(f, err, name)
		}
		f.unchanged()
		f.update(store.WaitItem(wait("w1-0"), 0))
		f.commit(2, twice, store.WaitItem(answered("w1-0", 3), 1))
		require.EqualValues(f, 2, f.of(parent, store.KindWait, "w1-0")[0].Wait.TakenBy)
		require.EqualValues(f, 3, f.items(store.KindWait, "w1-0")[0].Wait.TakenBy)
	}},
	{"HEAD of another session is that session's", func(f *fixture) {
		f.family()
		for name, write := range writes {
			require.Error(f, write(f, store.HeadItem(head(f.key), 1).In(parent)), name)
			require.Error(f, write(f, store.HeadItem(head(parent), 1)), name)
		}
		f.unchanged()
	}},
	{"a large item of another session outlives its writer's", func(f *fixture) {
		f.family()
		large := answered("w1-0", 2)
		large.Answer = &session.Answer{Wait: "w1-0", Kind: session.AnswerChild, Result: jsonText(`"` + noise(1<<20) + `"`), When: at(3)}
		f.commit(2, store.WaitItem(large, 1).In(parent))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		require.Equal(f, large, *f.of(parent, store.KindWait, "w1-0")[0].Wait)
		f.key.ID = "s-2"
		f.start()
		_, err := f.store.Update(f.Context(), f.key, store.WaitItem(large, 1).In(parent))
		require.Equal(f, store.WaitItem(large, 2).In(parent), *conflict(f, err).Item)
	}},
	{"what another session made due is found with its own key", func(f *fixture) {
		f.family()
		due := answered("w1-0", 2)
		due.Due = ptr(at(7))
		f.commit(2, store.WaitItem(due, 1).In(parent))
		require.Equal(f, []string{"parent w1-0"}, f.findAll(store.FindParams{Kind: store.FindDue, Before: at(9)}))
	}},
	{"what another session asks is kept by the root of the session it waits in", func(f *fixture) {
		f.family()
		f.commit(2, store.WaitItem(wait("w2-0"), 0).In(parent), store.HeadItem(head(parent), 1).In(parent))
		p := store.FindParams{Kind: store.FindWaits, Tenant: "acme", Root: parent.ID}
		require.ElementsMatch(f, []string{"parent w1-0", "parent w2-0"}, f.findAll(p))
		p.Root = f.key.ID
		require.Empty(f, f.findAll(p))
	}},
	{"what another session asks at the same time in two is found in both", func(f *fixture) {
		child, uncle := f.key, session.Key{Tenant: "acme", ID: "uncle"}
		f.put(uncle.Tenant, uncle.ID, nil)
		f.key = child
		f.family()
		f.commit(2, store.WaitItem(wait("w2-0"), 0).In(parent), store.HeadItem(head(parent), 1).In(parent),
			store.WaitItem(wait("w2-0"), 0).In(uncle), store.HeadItem(head(uncle), 1).In(uncle))
		p := store.FindParams{Kind: store.FindWaits, Tenant: "acme", Limit: 1}
		require.ElementsMatch(f, []string{"parent w1-0", "parent w2-0", "uncle w2-0"}, f.findAll(p))
	}},
}

// waiting is the wait of a family's parent.
func (f *fixture) waiting() journal.WaitRecord {
	w := wait("w1-0")
	until(50)(&w)
	return w
}

func counter(n int) journal.TenantRecord {
	return journal.TenantRecord{Name: "spent", Value: jsonText(fmt.Sprint(n))}
}

var tenantTests = []test{
	{"a record is read with any key of its tenant and no other", func(f *fixture) {
		f.start()
		got := f.update(store.TenantItem(counter(1), 0))
		require.Equal(f, store.TenantItem(counter(1), 1), got)
		for _, key := range []session.Key{f.key, parent, {Tenant: "acme"}} {
			require.Equal(f, []store.Item{got}, f.of(key, store.KindTenantRecord, "spent"))
			require.Equal(f, []store.Item{got}, f.of(key, store.KindTenantRecord, ""))
		}
		require.Empty(f, f.of(stranger, store.KindTenantRecord, "spent"))
		require.Empty(f, f.of(stranger, store.KindTenantRecord, ""))
	}},
	{"a record may name its tenant and comes back without", func(f *fixture) {
		f.start()
		tenant := session.Key{Tenant: "acme"}
		for _, own := range []session.Key{f.key, tenant} {
			got, err := f.store.Update(f.Context(), own, store.TenantItem(journal.TenantRecord{Name: "by " + own.ID, Value: jsonText("1")}, 0).In(tenant))
			require.Error(f, err, "a space is in no name")
			require.Empty(f, got)
			record := journal.TenantRecord{Name: "by/" + own.ID, Value: jsonText("1")}
			got, err = f.store.Update(f.Context(), own, store.TenantItem(record, 0).In(tenant))
			require.NoError(f, err)
			require.Equal(f, []store.Item{store.TenantItem(record, 1)}, got)
		}
		_, err := f.store.Update(f.Context(), f.key, store.TenantItem(counter(1), 0).In(f.key))
		require.Error(f, err, "a session has none")
	}},
	{"a record is conditioned by its rev in commits and updates alike", func(f *fixture) {
		f.family()
		there := f.update(store.TenantItem(counter(1), 0))
		for name, write := range writes {
			for _, rev := range []int64{0, 2} {
				for _, items := range [][]store.Item{
					{store.TenantItem(counter(5), rev)},
					{store.ToolItem(tool("c1-0"), 0), store.WaitItem(answered("w1-0", 2), 1).In(parent), store.TenantItem(counter(5), rev)},
				} {
					require.Equal(f, there, *conflict(f, write(f, items...)).Item, name)
				}
			}
			absent := conflict(f, write(f, store.TenantItem(journal.TenantRecord{Name: "other"}, 3))).Item
			require.Equal(f, store.Item{Kind: store.KindTenantRecord, ID: "other"}, *absent, name)
			f.unchanged()
		}
		f.commit(2, store.TenantItem(counter(2), 1), store.ToolItem(tool("c1-0"), 0))
		require.Equal(f, []store.Item{store.TenantItem(counter(2), 2)}, f.items(store.KindTenantRecord, "spent"))
	}},
	{"of 64 commits of different sessions that spend one record one wins", func(f *fixture) {
		f.update(store.TenantItem(counter(0), 0))
		errs := race(64, func(i int) error {
			key := session.Key{Tenant: "acme", ID: fmt.Sprintf("s-%d", i)}
			_, err := f.store.Commit(f.Context(), store.CommitParams{Key: key, Entry: entry(1), Items: []store.Item{
				store.HeadItem(head(key), 0), store.TenantItem(counter(i+1), 1),
			}})
			return err
		})
		require.Equal(f, 1, successes(errs))
		for i, found := range f.findAll(store.FindParams{Kind: store.FindSessions, Tenant: "acme"}) {
			require.Zero(f, i)
			f.key.ID = found
		}
		spent := f.items(store.KindTenantRecord, "spent")[0]
		require.EqualValues(f, 2, spent.Rev)
		require.Equal(f, "s-"+fmt.Sprint(number(f, spent)-1), f.key.ID)
	}},
	{"records are ordered by name as text whatever it is made of", func(f *fixture) {
		want := []string{"!", "#", "#~", "a#b", "kill/agent:lab", "user@example.com", "~", "~~", "~~~"}
		for i := range want {
			f.update(store.TenantItem(journal.TenantRecord{Name: want[(i*4)%len(want)], Value: jsonText("null")}, 0))
		}
		f.update(store.IdempotencyItem(journal.Idempotency{Key: "k"}, 0))
		var got []string
		for _, item := range f.items(store.KindTenantRecord, "") {
			got = append(got, item.TenantRecord.Name)
		}
		require.Equal(f, want, got)
		require.Len(f, f.items(store.KindTenantRecord, "~"), 1)
		require.Len(f, f.items(store.KindTenantRecord, "~*"), 3)
		require.Len(f, f.items(store.KindTenantRecord, "#*"), 2)
	}},
	{"a name that cannot be is refused", func(f *fixture) {
		longest := noise(512)
		f.update(store.TenantItem(journal.TenantRecord{Name: longest, Value: jsonText("1")}, 0))
		require.Len(f, f.items(store.KindTenantRecord, longest), 1)
		for _, name := range []string{"", " ", "*", "a*", "a*b", "a b", "a\n", "é", "\x7f", longest + "x"} {
			_, err := f.store.Update(f.Context(), f.key, store.TenantItem(journal.TenantRecord{Name: name}, 0))
			require.Error(f, err, name)
		}
	}},
	{"a record that belongs to no tenant is read with that key alone and is in no session's write", func(f *fixture) {
		f.start()
		everywhere := session.Key{Tenant: store.Everywhere}
		got, err := f.store.Update(f.Context(), everywhere, store.TenantItem(counter(1), 0))
		require.NoError(f, err)
		require.Equal(f, []store.Item{store.TenantItem(counter(1), 1)}, got)
		require.Equal(f, got, f.of(everywhere, store.KindTenantRecord, "spent"))
		require.Empty(f, f.items(store.KindTenantRecord, "spent"))
		_, err = f.store.Update(f.Context(), everywhere, store.TenantItem(counter(2), 2))
		var refused *store.ConflictError
		require.ErrorAs(f, err, &refused)
		require.Equal(f, got[0], *refused.Item)
		for _, item := range []store.Item{store.HeadItem(head(session.Key{Tenant: store.Everywhere, ID: "s"}), 0), store.IdempotencyItem(journal.Idempotency{Key: "k"}, 0), store.ToolItem(tool("c1-0"), 0)} {
			_, err = f.store.Update(f.Context(), everywhere, item)
			require.ErrorIs(f, err, session.ErrInvalidID, item.Kind)
		}
		for name, write := range writes {
			require.Error(f, write(f, store.TenantItem(counter(2), 1).In(everywhere)), name)
		}
		require.Equal(f, got, f.of(everywhere, store.KindTenantRecord, ""))
	}},
	{"records outlive the session that wrote them", func(f *fixture) {
		f.start()
		large := journal.TenantRecord{Name: "large", Value: jsonText(`"` + noise(1<<20) + `"`)}
		f.commit(2, store.TenantItem(counter(1), 0), store.TenantItem(large, 0))
		require.NoError(f, f.store.Delete(f.Context(), f.key))
		require.Equal(f, counter(1), *f.items(store.KindTenantRecord, "spent")[0].TenantRecord)
		require.Equal(f, large, *f.items(store.KindTenantRecord, "large")[0].TenantRecord)
	}},
}

func number(f *fixture, item store.Item) (n int) {
	f.Helper()
	_, err := fmt.Sscan(string(item.TenantRecord.Value), &n)
	require.NoError(f, err)
	return n
}
