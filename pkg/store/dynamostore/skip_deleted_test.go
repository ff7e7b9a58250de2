package dynamostore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// Rows whose items are gone when they are read make room for others, and for no more
// than so many: no page holds more than was asked for.
func TestFind_what_is_gone_makes_room_for_as_much(t *testing.T) {
	t.Parallel()
	s, tab := listStore(t)
	const many, limit = 100, 20
	for n := range many {
		key, of := sessionAt(fmt.Sprintf("s-%03d", n), at(n))
		tab.put(key, of)
	}
	var stays []string
	for n := range many {
		stays = append(stays, fmt.Sprintf("s-%03d", many-1-n))
	}
	queries := 0
	tab.after = func(*dynamodb.QueryInput) {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		if queries++; queries != shards {
			return
		}
		for _, id := range stays[3:8] { // of the first page, after its rows were read
			key, of := sessionAt(id, time.Time{})
			it, err := dynamostore.Stored(key, of)
			require.NoError(t, err)
			delete(tab.items, rowKey(it))
		}
		tab.rows = nil
	}
	pages := walk(t, s, store.FindParams{Kind: store.FindSessions, Tenant: "acme", Limit: limit}, untouched)
	require.Len(t, pages[0], limit)
	require.Equal(t, slices.Delete(slices.Clone(stays), 3, 8), slices.Concat(pages...))
}

// What is due is one list too, in pages of any size: each item once, soonest first,
// those that are due at the very moment among them, and nothing after it.
func TestFind_due_is_one_list(t *testing.T) {
	t.Parallel()
	s, tab := listStore(t)
	const many, by = 90, 20
	for n := range many {
		key, of := sessionAt(fmt.Sprintf("s-%03d", n), at(0))
		due := at(n / 3)
		of.Head.Due = &due
		tab.put(key, of)
	}
	var want []string
	for n := range 3 * (by + 1) {
		want = append(want, fmt.Sprintf("s-%03d", n))
	}
	for _, limit := range []int{1, 2, 7, 200} {
		pages := walk(t, s, store.FindParams{Kind: store.FindDue, Before: at(by), Limit: limit}, untouched)
		require.Equal(t, want, slices.Concat(pages...), "pages of %d", limit)
	}
}
