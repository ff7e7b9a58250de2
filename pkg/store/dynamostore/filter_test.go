package dynamostore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// spelt is an expression of a query with its names and values in their places.
func spelt(in *dynamodb.QueryInput, expression *string) string {
	var pairs []string
	for name, attr := range in.ExpressionAttributeNames {
		pairs = append(pairs, name, attr)
	}
	for name, v := range in.ExpressionAttributeValues {
		pairs = append(pairs, name, "'"+v.(*types.AttributeValueMemberS).Value+"'")
	}
	return strings.NewReplacer(pairs...).Replace(aws.ToString(expression))
}

// What a search keeps is said to the index, so that nothing else is read item by
// item; what an index of its own keeps is not said again.
func TestFind_says_to_the_index_what_is_kept(t *testing.T) {
	const mayAnswer = "(attribute_not_exists(who) OR contains(who, 'ana'))"
	for _, c := range []struct {
		p                store.FindParams
		index, key, want string
	}{
		{store.FindParams{Kind: store.FindSessions}, "sessions", "list = 'acme#7'", ""},
		{store.FindParams{Kind: store.FindSessions, Status: session.StatusFailed}, "sessions", "list = 'acme#7'", "status = 'failed'"},
		{store.FindParams{Kind: store.FindSessions, Agent: "lab"}, "sessions", "list = 'acme#7'", "agent = 'lab'"},
		{store.FindParams{Kind: store.FindSessions, Root: "s-0"}, "sessions", "list = 'acme#7'", "root = 's-0'"},
		{store.FindParams{Kind: store.FindSessions, User: "ana"}, "sessions", "list = 'acme#7'", "user = 'ana'"},
		{store.FindParams{Kind: store.FindSessions, Tag: "x"}, "sessions", "list = 'acme#7'", "contains(tags, 'x')"},
		{
			store.FindParams{Kind: store.FindSessions, Status: session.StatusFailed, Agent: "lab", Root: "s-0", User: "ana", Tag: "x"},
			"sessions", "list = 'acme#7'",
			"status = 'failed' AND agent = 'lab' AND root = 's-0' AND contains(tags, 'x') AND user = 'ana'",
		},
		{store.FindParams{Kind: store.FindWaits}, "inbox", "inbox = 'acme#7'", ""},
		{store.FindParams{Kind: store.FindWaits, Root: "s-0"}, "inbox", "inbox = 'acme#7'", "root = 's-0'"},
		{store.FindParams{Kind: store.FindWaits, User: "ana"}, "inbox", "inbox = 'acme#7'", mayAnswer},
		{store.FindParams{Kind: store.FindWaits, Agent: "lab"}, "inboxByAgent", "inboxAgent = 'acme#7#lab'", ""},
		{store.FindParams{Kind: store.FindWaits, WaitKind: session.WaitApproval}, "inboxByKind", "inboxKind = 'acme#7#approval'", ""},
		{store.FindParams{Kind: store.FindWaits, Tool: "rm"}, "inboxByTool", "inboxTool = 'acme#7#rm'", ""},
		{store.FindParams{Kind: store.FindWaits, Agent: "lab", User: "ana"}, "inboxByAgent", "inboxAgent = 'acme#7#lab'", mayAnswer},
		{store.FindParams{Kind: store.FindWaits, Agent: "lab", WaitKind: session.WaitApproval}, "inboxByAgent", "inboxAgent = 'acme#7#lab'", "kind = 'approval'"},
		{
			store.FindParams{Kind: store.FindWaits, Agent: "lab", Root: "s-0", WaitKind: session.WaitApproval, Tool: "rm", User: "ana"},
			"inboxByTool", "inboxTool = 'acme#7#rm'",
			"agent = 'lab' AND root = 's-0' AND kind = 'approval' AND " + mayAnswer,
		},
	} {
		bubbleOnce(t, string(c.p.Kind)+" "+c.index+" "+c.want, func(t *testing.T) {
			p := c.p
			p.Tenant, p.Limit = "acme", 7
			s, f, _ := scripted(t, slices.Repeat([]answer{done()}, shards)...)
			f.everyShard = true
			_, err := s.Find(t.Context(), p)
			require.NoError(t, err)
			var keys []string
			for _, asked := range f.asked {
				in := asked.(*dynamodb.QueryInput)
				keys = append(keys, spelt(in, in.KeyConditionExpression))
				require.Equal(t, c.index, *in.IndexName)
				require.Equal(t, c.want, spelt(in, in.FilterExpression))
				require.EqualValues(t, 4, *in.Limit, "the most that one of eight shards has of seven rows, as a rule")
				require.Equal(t, c.p.Kind == store.FindWaits, *in.ScanIndexForward)
			}
			require.Len(t, keys, shards)
			require.Contains(t, keys, c.key)
		})
	}
}

// asksOfPage is how often a page of 100 asks a shard that has nothing for it: for 22
// rows, and each time for twice as many, until they are 1,250.
const asksOfPage = 6

// A page that finds nothing ends after so many queries, with a cursor from which the
// next one goes on.
func TestFind_asks_so_often_for_a_page(t *testing.T) {
	bubble(t, func(t *testing.T) {
		row := func(n int) item {
			return item{"pk": str("S#acme#s"), "sk": str("HEAD"), "list": str("acme"), "listAt": str(fmt.Sprintf("2026-02-03T04:05:%02d.000000000Z#s", 59-n))}
		}
		var answers []answer
		for n := range asksOfPage {
			answers = append(answers, is(&dynamodb.QueryOutput{LastEvaluatedKey: row(n)}))
		}
		s, f, _ := scripted(t, append(answers, is(&dynamodb.QueryOutput{}))...)
		p := store.FindParams{Kind: store.FindSessions, Tenant: "acme", Tag: "rare"}
		page, err := s.Find(t.Context(), p)
		require.NoError(t, err)
		require.Empty(t, page.Found)
		require.NotEmpty(t, page.Cursor)
		require.Len(t, f.asked, asksOfPage)
		p.Cursor = page.Cursor
		page, err = s.Find(t.Context(), p)
		require.NoError(t, err)
		require.Empty(t, page.Found)
		require.Empty(t, page.Cursor)
		for n, in := range f.asked[1:] {
			q := in.(*dynamodb.QueryInput)
			require.Equal(t, "list = 'acme' AND listAt < '"+row(n)["listAt"].(*types.AttributeValueMemberS).Value+"'", spelt(q, q.KeyConditionExpression))
		}
	})
}

// An index lags: what it says is kept may be so no longer.
func TestFind_keeps_by_the_item_and_not_the_index(t *testing.T) {
	row := item{"pk": str("S#acme#s-1"), "sk": str("HEAD"), "list": str("acme"), "listAt": str("2026-02-03T04:05:06.123456789Z#s-1")}
	now := storedHead(item{"list": row["list"], "listAt": row["listAt"], "status": str("running")})
	waits := openWait("w1-1", "", 0)
	waits["body"] = str(`{"state":"open","agent":"lab","wait":{"id":"w1-1","kind":"approval","tool":"rm","who":["ana"]}}`)
	for name, c := range map[string]struct {
		p    store.FindParams
		item item
		kept bool
	}{
		"status":       {store.FindParams{Kind: store.FindSessions, Status: session.StatusFailed}, now, false},
		"its status":   {store.FindParams{Kind: store.FindSessions, Status: session.StatusRunning}, now, true},
		"agent":        {store.FindParams{Kind: store.FindSessions, Agent: "clerk"}, now, false},
		"root":         {store.FindParams{Kind: store.FindSessions, Root: "s-0"}, now, false},
		"its root":     {store.FindParams{Kind: store.FindSessions, Root: "s-1"}, now, true},
		"user":         {store.FindParams{Kind: store.FindSessions, User: "ana"}, now, false},
		"tag":          {store.FindParams{Kind: store.FindSessions, Tag: "x"}, now, false},
		"wait's agent": {store.FindParams{Kind: store.FindWaits, Agent: "clerk"}, waits, false},
		"wait's root":  {store.FindParams{Kind: store.FindWaits, Root: "s-0"}, waits, false},
		"kind":         {store.FindParams{Kind: store.FindWaits, WaitKind: session.WaitQuestion}, waits, false},
		"tool":         {store.FindParams{Kind: store.FindWaits, Tool: "deploy"}, waits, false},
		"who":          {store.FindParams{Kind: store.FindWaits, User: "bob"}, waits, false},
		"its own who":  {store.FindParams{Kind: store.FindWaits, User: "ana"}, waits, true},
	} {
		bubbleOnce(t, name, func(t *testing.T) {
			p := c.p
			p.Tenant = "acme"
			s, _, _ := scripted(t, inbox(c.item)...)
			page, err := s.Find(t.Context(), p)
			require.NoError(t, err)
			require.Equal(t, c.kept, len(page.Found) == 1)
		})
	}
}
