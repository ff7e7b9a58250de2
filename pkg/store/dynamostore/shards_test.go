package dynamostore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// A session must be in the same shard for ever: what is there was written by
// programs of before. The number may be raised (docs/design/sharded-lists.md), not lowered.
func TestShards_are_fixed(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"s-1": "acme#2", "ses_4kYt0QhRtYw2xk3C": "acme#7", "order-1": "acme#3", "order-2": "acme#5", "order-12": "acme",
	} {
		require.Equal(t, want, dynamostore.ShardOfSession(session.Key{Tenant: "acme", ID: id}), id)
	}
}

// What one tenant writes is spread evenly, whatever its ids look like: no shard
// gets so much more than its share that it is the first to be hot.
func TestShards_are_even(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, id := range map[string]func(n int) string{
		"random":  func(int) string { return fmt.Sprintf("ses_%016x", random.Uint64()) },
		"counted": func(n int) string { return fmt.Sprintf("order-%d", n) },
		"padded":  func(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) },
		"dated":   func(n int) string { return epoch.Add(time.Duration(n) * time.Minute).Format("20060102T150405") },
	} {
		const many = 16_000
		count := map[string]int{}
		for n := range many {
			count[dynamostore.ShardOfSession(session.Key{Tenant: "acme", ID: id(n)})]++
		}
		require.Len(t, count, shards, name)
		chi := 0.0
		for _, n := range count {
			off := float64(n) - many/shards
			chi += off * off / (many / shards)
		}
		require.Less(t, chi, 24.3, "%s: chi-square of 7 degrees of freedom, passed by 1 of 1,000 even spreads: %v", name, count)
	}
}

// at is so many seconds after the epoch.
func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// sessionAt is HEAD of a session that moved at a time.
func sessionAt(id string, moved time.Time) (session.Key, store.Item) {
	h := head()
	h.Key, h.UpdatedAt = session.Key{Tenant: "acme", ID: id}, moved
	return h.Key, store.HeadItem(h, 0)
}

// walk follows the cursors of a search to its end and returns each page's sessions.
func walk(t *testing.T, s *dynamostore.Store, p store.FindParams, between func(page int)) (pages [][]string) {
	t.Helper()
	for n := 0; ; n++ {
		require.Less(t, n, 5000, "the pages do not end")
		found, err := s.Find(t.Context(), p)
		require.NoError(t, err)
		require.LessOrEqual(t, len(found.Found), p.Limit)
		page := []string{}
		for _, f := range found.Found {
			require.NoError(t, f.Unread)
			page = append(page, strings.TrimSpace(f.Key.ID+" "+f.Item.ID))
		}
		pages = append(pages, page)
		if p.Cursor = found.Cursor; p.Cursor == "" {
			return pages
		}
		between(n)
	}
}

func untouched(int) {}

// The shards are one list: in one order, each item once, whatever the pages' size,
// also of items that a program of before wrote, which knew one shard.
func TestFind_shards_are_one_list(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 12 {
		s, tab := listStore(t)
		var want []string
		many := random.IntN(300)
		for n := range many {
			id := fmt.Sprintf("s-%d", n)
			key, of := sessionAt(id, at(random.IntN(50))) // many at the same time
			tab.put(key, of, func(it item) {
				if random.IntN(4) == 0 {
					it["list"] = str("acme") // where all were once
				}
			})
			want = append(want, of.Head.UpdatedAt.Format(time.RFC3339Nano)+"#"+id)
		}
		slices.Sort(want)
		slices.Reverse(want)
		for i, position := range want {
			_, want[i], _ = strings.Cut(position, "#")
		}
		limit := 1 + random.IntN(120)
		pages := walk(t, s, store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: limit}, untouched)
		require.Equal(t, append([]string{}, want...), append([]string{}, slices.Concat(pages...)...))
		for _, page := range pages[:len(pages)-1] {
			require.Len(t, page, limit, "only the last page is short")
		}
		require.Len(t, pages, max(1, (many+limit-1)/limit), "no empty page follows a last one that is full")
	}
}

// A last page that is full has no cursor, also when one shard has so much of it that
// it does not say by itself that it has no more.
func TestFind_a_last_page_of_one_shard(t *testing.T) {
	t.Parallel()
	s, tab := listStore(t)
	for n, id := range []string{"order-1", "order-3", "order-4", "order-12", "order-24"} { // but for the first, of shard 0
		key, of := sessionAt(id, at(-n))
		tab.put(key, of)
	}
	page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: 5})
	require.NoError(t, err)
	require.Len(t, page.Found, 5)
	require.Empty(t, page.Cursor)
	require.Equal(t, map[string]int{"Query": shards + 1, "BatchGetItem": 1}, tab.used.requests, "one more says so")
}

// What moves while somebody goes through the pages may be missed by him, for it is
// now before where he is; all that stayed is there once, in order.
func TestFind_items_move_between_pages(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	s, tab := listStore(t)
	const many = 300
	for n := range many {
		key, of := sessionAt(fmt.Sprintf("s-%03d", n), at(n))
		tab.put(key, of, func(it item) {
			if n%3 == 0 {
				it["list"] = str("acme") // and gets its own shard when it moves
			}
		})
	}
	moved := map[string]bool{}
	pages := walk(t, s, store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: 17}, func(page int) {
		for range 5 {
			id := fmt.Sprintf("s-%03d", random.IntN(many))
			moved[id] = true
			key, of := sessionAt(id, at(1000+page))
			tab.put(key, of)
		}
	})
	got := slices.Concat(pages...)
	require.Greater(t, len(moved), 20)
	require.Len(t, got, len(slices.Compact(slices.Sorted(slices.Values(got)))), "none twice")
	next := many
	for _, id := range got {
		var n int
		_, err := fmt.Sscanf(id, "s-%d", &n)
		require.NoError(t, err)
		require.Less(t, n, next, "in order")
		for missed := n + 1; missed < next; missed++ {
			require.True(t, moved[fmt.Sprintf("s-%03d", missed)], "s-%03d stayed", missed)
		}
		next = n
	}
}

// While the shards of one page are read, a session of before gets a shard of its
// own: it is seen in both.
func TestFind_an_item_changes_its_shard_meanwhile(t *testing.T) {
	t.Parallel()
	s, tab := listStore(t)
	key, of := sessionAt("s-1", at(1)) // in shard 2
	tab.put(key, of, func(it item) { it["list"] = str("acme") })
	first := make(chan struct{})
	tab.before = func(in *dynamodb.QueryInput) {
		if partition := textIn(in.ExpressionAttributeValues, ":v0"); partition == "acme#2" {
			<-first
			moved := of
			moved.Head.UpdatedAt = at(2)
			tab.put(key, moved)
		}
	}
	tab.after = func(in *dynamodb.QueryInput) {
		if textIn(in.ExpressionAttributeValues, ":v0") == "acme" {
			close(first)
		}
	}
	pages := walk(t, s, store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: 10}, untouched)
	require.Equal(t, [][]string{{"s-1"}}, pages)
}

// A shard is no tenant: whoever could name one would see an eighth of another's list.
func TestFind_no_tenant_is_a_shard(t *testing.T) {
	t.Parallel()
	s, _ := listStore(t)
	for _, tenant := range []string{"acme#7", "acme#7#lab", "#"} {
		for _, kind := range []store.FindKind{store.FindSessions, store.FindWaits} {
			_, err := s.Find(t.Context(), store.FindParams{Kind: kind, Tenant: tenant})
			require.ErrorIs(t, err, session.ErrInvalidID, "%s of %q", kind, tenant)
		}
	}
}
