package dynamostore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// waitsOf puts n open waits of one tenant, each of a session of its own; ten of them, spread evenly, are
// of a rare tool, agent and kind, for a rare person.
func waitsOf(tab *table, n int) {
	for i := range n {
		w := journal.WaitRecord{State: session.WaitOpen, Agent: "lab", Wait: session.Wait{
			ID: "w2-0", Kind: session.WaitApproval, Tool: "deploy", OpenedAt: at(i), Who: []string{"bob"}, Arguments: []byte(`{"service":"web","region":"eu-west-1"}`),
		}}
		if i%(n/10) == n/20 {
			w.Agent, w.Wait.Kind, w.Wait.Tool, w.Wait.Who = "clerk", session.WaitQuestion, "rm", []string{"ana"}
		}
		tab.put(session.Key{Tenant: "acme", ID: fmt.Sprintf("ses_%012d", i)}, store.WaitItem(w, 0))
	}
}

// TestInboxIsFlat: a page of the inbox costs the same requests and units among 10,000 waits as among
// 1,000, whole and kept to a tool, an agent or a kind, or to two of them. Kept to a person, or to a tool and
// a kind of which there are few together, it looks at so many rows for each page and no more.
func TestInboxIsFlat(t *testing.T) {
	t.Parallel()
	const limit = 50
	pages := map[string]store.FindParams{
		"whole": {}, "tool": {Tool: "rm"}, "agent": {Agent: "clerk"}, "kind": {WaitKind: session.WaitQuestion},
		"tool and kind": {Tool: "rm", WaitKind: session.WaitQuestion}, "agent and kind": {Agent: "clerk", WaitKind: session.WaitQuestion},
	}
	cost := map[string][]usage{}
	for _, n := range []int{1000, 10_000} {
		s, tab := listStore(t)
		waitsOf(tab, n)
		for name, p := range pages {
			p.Kind, p.Tenant, p.Limit = store.FindWaits, "acme", limit
			tab.reset()
			page, err := s.Find(t.Context(), p)
			require.NoError(t, err)
			require.Len(t, page.Found, map[bool]int{true: limit, false: 10}[name == "whole"], name)
			cost[name] = append(cost[name], tab.used)
		}
		for name, c := range map[string]struct {
			p     store.FindParams
			found int
		}{
			"a person":                        {store.FindParams{User: "ana"}, 10},
			"a tool, and a kind it never has": {store.FindParams{Tool: "deploy", WaitKind: session.WaitQuestion}, 0},
		} {
			p := c.p
			p.Kind, p.Tenant, p.Limit = store.FindWaits, "acme", limit
			found := 0
			for pages := 1; ; pages++ {
				tab.reset()
				page, err := s.Find(t.Context(), p)
				require.NoError(t, err)
				require.LessOrEqual(t, tab.used.requests["Query"], (asksOfPage+1)*shards, "%s: a page of 50 begins with fewer rows than one of 100", name)
				found += len(page.Found)
				if p.Cursor = page.Cursor; p.Cursor == "" {
					break
				}
				require.Less(t, pages, 5, name)
			}
			require.Equal(t, c.found, found, name)
		}
	}
	for name, of := range cost {
		t.Logf("%-14s %v, %.1f read units; among ten times as many %v, %.1f", name, of[0].requests, of[0].reads, of[1].requests, of[1].reads)
		require.Equal(t, of[0].requests["BatchGetItem"], of[1].requests["BatchGetItem"], name)
		// Which shards have the soonest waits is chance: one of them may be asked once more.
		require.InDelta(t, of[0].requests["Query"], of[1].requests["Query"], 2, name)
		require.InDelta(t, of[0].reads, of[1].reads, 3, name)
	}
}
