package dynamostore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// A fleet is a huge tenant, acme, and many small ones in one table. In the huge one
// one wait of 500 is a question of the agent clerk for the tool rm, all others are
// approvals of the agent lab for the tool deploy; one of 1,000 sessions has a tag.
const (
	hugeSessions = 20_000
	hugeWaits    = 5_000
	smallTenants = 2_000
)

// fleet hands out all items of a fleet.
func fleet(put func(key session.Key, of store.Item)) {
	wait := func(tenant string, n int) {
		key := session.Key{Tenant: tenant, ID: fmt.Sprintf("ses_%012d", n)}
		w := journal.WaitRecord{State: session.WaitOpen, Agent: "lab", Wait: session.Wait{
			ID: "w2-0", Kind: session.WaitApproval, Tool: "deploy", OpenedAt: at(n), Who: []string{"bob"},
			Arguments: []byte(`{"service":"web","region":"eu-west-1"}`),
		}}
		if n%500 == 7 {
			w.Agent, w.Wait.Kind, w.Wait.Tool = "clerk", session.WaitQuestion, "rm"
		}
		if n%1000 == 999 {
			w.Wait.Who = []string{"ana"}
		}
		put(key, store.WaitItem(w, 0))
	}
	for n := range hugeSessions {
		key, of := sessionAt(fmt.Sprintf("ses_%012d", n), at(n))
		if n%1000 == 0 {
			of.Head.Tags = []string{"rare"}
		}
		if n%2 == 0 {
			of.Head.Status = session.StatusCompleted
		}
		put(key, of)
	}
	for n := range hugeWaits {
		wait("acme", n)
	}
	for n := range smallTenants {
		tenant := fmt.Sprintf("small-%d", n)
		key, of := sessionAt("ses_000000000001", at(n))
		key.Tenant, of.Head.Key.Tenant = tenant, tenant
		put(key, of)
		wait(tenant, 1)
	}
}

// listing is a page of a fleet's lists, and what it may cost.
type listing struct {
	name string
	p    store.FindParams
	next bool // the page after the first
	// rows of the page, queries and read units it takes, these at most.
	rows, queries int
	reads         float64
}

// listings are the pages that people and programs ask for. One consistent read of
// each item that is shown is among the units, half a unit of each query at least.
func listings() []listing {
	sessions, waits := store.FindSessions, store.FindWaits
	return []listing{
		{name: "sessions, first page", p: store.FindParams{Kind: sessions, Tenant: "acme"}, rows: 100, queries: shards, reads: 100 + shards},
		{name: "sessions, next page", p: store.FindParams{Kind: sessions, Tenant: "acme"}, next: true, rows: 100, queries: shards + 1, reads: 101 + shards},
		{name: "sessions, page of 1,000", p: store.FindParams{Kind: sessions, Tenant: "acme", Limit: 1000}, rows: 1000, queries: shards + 1, reads: 1000 + 6*shards},
		{name: "sessions of a status", p: store.FindParams{Kind: sessions, Tenant: "acme", Status: session.StatusCompleted}, rows: 100, queries: 2*shards + 2, reads: 100 + 4*shards},
		{name: "sessions of a rare tag", p: store.FindParams{Kind: sessions, Tenant: "acme", Tag: "rare"}, rows: 9, queries: asksOfPage * shards, reads: 280},
		{name: "inbox, first page", p: store.FindParams{Kind: waits, Tenant: "acme"}, rows: 100, queries: shards, reads: 100 + 1.5*shards},
		{name: "inbox, next page", p: store.FindParams{Kind: waits, Tenant: "acme"}, next: true, rows: 100, queries: shards + 1, reads: 100 + 1.5*shards},
		{name: "inbox of a rare tool", p: store.FindParams{Kind: waits, Tenant: "acme", Tool: "rm"}, rows: 10, queries: shards, reads: 10 + 0.5*shards},
		{name: "inbox of a rare agent", p: store.FindParams{Kind: waits, Tenant: "acme", Agent: "clerk"}, rows: 10, queries: shards, reads: 10 + 0.5*shards},
		{name: "inbox of a rare kind", p: store.FindParams{Kind: waits, Tenant: "acme", WaitKind: session.WaitQuestion}, rows: 10, queries: shards, reads: 10 + 0.5*shards},
		{name: "inbox of a rare user", p: store.FindParams{Kind: waits, Tenant: "acme", User: "ana"}, rows: 5, queries: asksOfPage * shards, reads: 240},
		{name: "small tenant's sessions", p: store.FindParams{Kind: sessions, Tenant: "small-7"}, rows: 1, queries: shards, reads: 1 + 0.5*shards},
		{name: "small tenant's inbox", p: store.FindParams{Kind: waits, Tenant: "small-7"}, rows: 1, queries: shards, reads: 1 + 0.5*shards},
		{name: "nobody's sessions", p: store.FindParams{Kind: sessions, Tenant: "nobody"}, queries: shards, reads: 0.5 * shards},
	}
}

// before returns the parameters of the page that is to be looked at.
func (l *listing) before(t testing.TB, s store.Store) store.FindParams {
	t.Helper()
	p := l.p
	if l.next {
		page, err := s.Find(t.Context(), p)
		require.NoError(t, err)
		p.Cursor = page.Cursor
	}
	return p
}

// TestListsOfAFleet counts what pages cost beside 2,000 other tenants and among
// 20,000 sessions and 5,000 waits: what they show, and little more.
func TestListsOfAFleet(t *testing.T) {
	t.Parallel()
	s, tab := listStore(t)
	fleet(func(key session.Key, of store.Item) { tab.put(key, of) })
	for _, l := range listings() {
		p := l.before(t, s)
		tab.reset()
		page, err := s.Find(t.Context(), p)
		require.NoError(t, err, l.name)
		require.Len(t, page.Found, l.rows, l.name)
		t.Logf("%-26s %v, %.1f read units", l.name, tab.used.requests, tab.used.reads)
		require.LessOrEqual(t, tab.used.requests["Query"], l.queries, l.name)
		require.GreaterOrEqual(t, tab.used.requests["Query"], shards, l.name)
		require.LessOrEqual(t, tab.used.requests["BatchGetItem"], max(1, l.rows/25), l.name)
		require.LessOrEqual(t, tab.used.reads, l.reads, l.name)
		for partition, n := range tab.scanned {
			require.LessOrEqual(t, n, 1250, "%s of %s", l.name, partition)
		}
	}
	// What is rare is found all the same, page by page, each of which is bounded.
	pages := walk(t, s, store.FindParams{Kind: store.FindSessions, Tenant: "acme", Tag: "rare", Limit: 100}, untouched)
	all := slices.Concat(pages...)
	require.Len(t, all, hugeSessions/1000)
	require.Equal(t, "ses_000000019000", all[0])
	require.LessOrEqual(t, len(pages), 3, "of about 10,000 rows each")
}

// A move of a status writes to each index once, twice where its key moves, in the
// shard in which the session is; a claim writes to none.
func TestIndexWritesOfAMove(t *testing.T) {
	t.Parallel()
	schema := dynamostore.StateSchema()
	stored := func(of store.Item) item {
		it, err := dynamostore.Stored(key, of)
		require.NoError(t, err)
		return it
	}
	moved := func(status session.Status, seconds int) item {
		h := head()
		h.Status, h.UpdatedAt = status, at(seconds)
		return stored(store.HeadItem(h, 0))
	}
	wait := func(state session.WaitState) item {
		return stored(store.WaitItem(journal.WaitRecord{State: state, Agent: "lab", Wait: session.Wait{
			ID: "w1-0", Kind: session.WaitApproval, Tool: "rm", OpenedAt: epoch,
		}}, 0))
	}
	running, suspended, again := moved(session.StatusRunning, 1), moved(session.StatusSuspended, 2), moved(session.StatusRunning, 3)
	require.Equal(t, 1, indexUnits(schema, nil, running), "it is listed")
	require.Equal(t, 2, indexUnits(schema, running, suspended))
	require.Equal(t, 2, indexUnits(schema, suspended, again))
	open := wait(session.WaitOpen)
	require.Equal(t, 4, indexUnits(schema, nil, open), "the inbox, and those of its agent, its kind and its tool")
	require.Equal(t, 4, indexUnits(schema, open, wait(session.WaitAnswered)))
	for _, it := range []item{running, suspended, again} {
		require.Equal(t, running["list"], it["list"])
	}
	for _, attr := range []string{"inboxAgent", "inboxKind", "inboxTool"} {
		require.True(t, strings.HasPrefix(textIn(open, attr), textIn(running, "list")+"#"), "the shard of its session")
	}
	leased := stored(store.HeadItem(head(), 0))
	claimed := stored(store.HeadItem(head(), 0))
	claimed["leaseOwner"], claimed["leaseUntil"] = str("w"), num(epoch.Add(time.Minute).UnixNano())
	require.Zero(t, indexUnits(schema, leased, claimed))
}
