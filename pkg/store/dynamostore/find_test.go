package dynamostore_test

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
)

// One due item that cannot be read (its object is gone or denied, or the bucket
// does not answer) must not hide what else is due, of every tenant.
func TestFind_due_is_not_blinded_by_what_cannot_be_read(t *testing.T) {
	bubble(t, func(t *testing.T) {
		due := epoch.Add(-time.Minute)
		row := func(sk string) item {
			return item{"pk": str("S#acme#s-1"), "sk": str(sk), "due": str("0"), "dueAt": str(due.Format("2006-01-02T15:04:05.000000000Z") + "#S#acme#s-1#" + sk)}
		}
		bad := item{"pk": str("S#acme#s-1"), "sk": str("WAIT#w1-1"), "rev": num(1), "blob": str("sessions/acme/s-1/gone"), "blobBytes": num(300000)}
		good := storedHead(nil)
		good["body"] = str(strings.Replace(storedHeadBody, `"version":1`, `"version":1,"due":"2026-01-01T00:00:00Z"`, 1))
		answers := []answer{is(&dynamodb.QueryOutput{Items: []item{row("HEAD"), row("WAIT#w1-1")}})}
		for range 31 {
			answers = append(answers, is(&dynamodb.QueryOutput{}))
		}
		answers = append(answers, is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {bad, good}}}))
		bad["due"], bad["dueAt"] = str("0"), str("any")
		s, _, bucket := scripted(t, answers...)
		bucket.fault = s3Fault(forbidden.Err) // and nobody asks it
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindDue, Before: epoch})
		require.NoError(t, err)
		require.Len(t, page.Found, 2)
		require.NotNil(t, page.Found[0].Item.Head)
		require.NoError(t, page.Found[0].Unread)
		require.Equal(t, store.Item{Kind: store.KindWait, ID: "w1-1"}, page.Found[1].Item)
		require.Error(t, page.Found[1].Unread)
	})
}

// Anybody can compute a cursor's check sum; what it names must be a position.
func TestFind_refuses_cursors_that_are_made_up(t *testing.T) {
	t.Parallel()
	for name, position := range map[string]string{"too long": strings.Repeat("x", 1024), "no text": "2026\xff\xfe"} {
		for _, kind := range []store.FindKind{store.FindSessions, store.FindWaits, store.FindDue} {
			p := store.FindParams{Kind: kind, Tenant: "acme", Before: epoch}
			sum := crc32.ChecksumIEEE([]byte(strings.Join([]string{string(kind), "acme", "", position}, "|")))
			p.Cursor = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%08x%s", sum, position))
			s, _, _ := scripted(t) // nothing is asked
			_, err := s.Find(t.Context(), p)
			require.ErrorIs(t, err, store.ErrInvalidCursor, "%s, %s", kind, name)
		}
	}
}

// The same of one whose body is no JSON of ours.
func TestFind_due_is_not_blinded_by_what_is_no_record(t *testing.T) {
	bubble(t, func(t *testing.T) {
		row := item{"pk": str("S#acme#s-1"), "sk": str("WAIT#w1-1"), "due": str("0"), "dueAt": str(epoch.Add(-time.Minute).Format("2006-01-02T15:04:05.000000000Z") + "#")}
		answers := []answer{is(&dynamodb.QueryOutput{Items: []item{row}})}
		for range 31 {
			answers = append(answers, is(&dynamodb.QueryOutput{}))
		}
		answers = append(answers, is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {
			{"pk": str("S#acme#s-1"), "sk": str("WAIT#w1-1"), "rev": num(1), "body": str("{"), "due": str("0")},
		}}}))
		s, _, _ := scripted(t, answers...)
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindDue, Before: epoch})
		require.NoError(t, err)
		require.Equal(t, store.Item{Kind: store.KindWait, ID: "w1-1"}, page.Found[0].Item)
	})
}

// An index is no snapshot: an item that moves while it is read is there twice.
func TestFind_a_row_that_is_in_the_index_twice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		row := func(at string) item {
			return item{"pk": str("S#acme#s-1"), "sk": str("HEAD"), "list": str("acme"), "listAt": str(at + "#s-1")}
		}
		s, f, _ := scripted(t, is(&dynamodb.QueryOutput{Items: []item{row("2026-02-03T04:05:07.000000000Z"), row("2026-02-03T04:05:06.000000000Z")}}),
			is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {storedHead(nil)}}}))
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindSessions, Tenant: "acme"})
		require.NoError(t, err)
		require.Len(t, f.asked[1].(*dynamodb.BatchGetItemInput).RequestItems["adjourn"].Keys, 1, "DynamoDB: Provided list of item keys contains duplicates")
		require.Len(t, page.Found, 1)
	})
}

// An index lags; no emulator's does.
func TestFind_believes_the_item_and_not_the_index(t *testing.T) {
	bubbleOnce(t, "inbox", func(t *testing.T) {
		row := func(id string) item {
			return item{"pk": str("S#acme#s-1"), "sk": str("WAIT#" + id), "inbox": str("acme"), "inboxAt": str("~#" + id)}
		}
		answered := item{"pk": str("S#acme#s-1"), "sk": str("WAIT#w1-1"), "rev": num(2), "body": str(`{"state":"answered","wait":{"id":"w1-1"}}`)}
		s, _, _ := scripted(t, is(&dynamodb.QueryOutput{Items: []item{row("w1-1"), row("w1-2")}}),
			is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {answered}}}))
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindWaits, Tenant: "acme"})
		require.NoError(t, err)
		require.Empty(t, page.Found)
	})
	bubbleOnce(t, "due", func(t *testing.T) {
		row := item{"pk": str("S#acme#s-1"), "sk": str("HEAD"), "due": str("0"), "dueAt": str("2026-01-01T00:00:00.000000000Z#S#acme#s-1#HEAD")}
		later := storedHead(nil)
		later["body"] = str(strings.Replace(storedHeadBody, `"version":1`, `"version":1,"due":"2027-01-01T00:00:00Z"`, 1))
		answers := []answer{is(&dynamodb.QueryOutput{Items: []item{row}})}
		for range 31 {
			answers = append(answers, is(&dynamodb.QueryOutput{}))
		}
		answers = append(answers, is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {later}}}))
		s, _, _ := scripted(t, answers...)
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindDue, Before: epoch})
		require.NoError(t, err)
		require.Empty(t, page.Found)
	})
	bubbleOnce(t, "ahead", func(t *testing.T) {
		row := item{"pk": str("S#acme#s-1"), "sk": str("HEAD"), "due": str("0"), "dueAt": str("2027-01-01T00:00:00.000000000Z#S#acme#s-1#HEAD")}
		for due, want := range map[string]int{"2026-01-01T00:00:00Z": 0, "2027-01-01T00:00:00Z": 1} {
			moved := storedHead(item{"due": row["due"]})
			moved["body"] = str(strings.Replace(storedHeadBody, `"version":1`, `"version":1,"due":"`+due+`"`, 1))
			answers := []answer{is(&dynamodb.QueryOutput{Items: []item{row}})}
			for range 15 { // deadlines may be far away and are not looked at
				answers = append(answers, is(&dynamodb.QueryOutput{}))
			}
			answers = append(answers, is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {moved}}}))
			s, f, _ := scripted(t, answers...)
			page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindAhead, After: epoch})
			require.NoError(t, err)
			require.Len(t, page.Found, want)
			for _, in := range f.asked[:16] {
				q := in.(*dynamodb.QueryInput)
				require.Contains(t, spelt(q, q.KeyConditionExpression), "dueAt BETWEEN '2026-02-03T04:05:06.123456789Z$' AND '~'")
				require.NotContains(t, spelt(q, q.KeyConditionExpression), "deadline")
			}
		}
	})
	bubbleOnce(t, "deleted", func(t *testing.T) {
		row := item{"pk": str("S#acme#s-1"), "sk": str("HEAD"), "list": str("acme"), "listAt": str("2026-02-03T04:05:06.123456789Z#s-1")}
		tomb := storedHead(item{"deleted": &types.AttributeValueMemberBOOL{Value: true}})
		tomb["body"] = str(strings.Replace(storedHeadBody, `"version":1`, `"version":1,"deleted":true`, 1))
		s, _, _ := scripted(t, is(&dynamodb.QueryOutput{Items: []item{row}}),
			is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {tomb}}}))
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindSessions, Tenant: "acme"})
		require.NoError(t, err)
		require.Empty(t, page.Found)
	})
	bubbleOnce(t, "due, and large", func(t *testing.T) {
		settled := item{"pk": str("S#acme#s-1"), "sk": str("WAIT#w1-1"), "rev": num(2), "blob": str("sessions/acme/s-1/any"), "blobBytes": num(300000)}
		row := item{"pk": settled["pk"], "sk": settled["sk"], "due": str("0"), "dueAt": str("2026-01-01T00:00:00.000000000Z#S#acme#s-1#WAIT#w1-1")}
		answers := []answer{is(&dynamodb.QueryOutput{Items: []item{row}})}
		for range 31 {
			answers = append(answers, is(&dynamodb.QueryOutput{}))
		}
		answers = append(answers, is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {settled}}}))
		s, _, _ := scripted(t, answers...)
		page, err := s.Find(t.Context(), store.FindParams{Kind: store.FindDue, Before: epoch})
		require.NoError(t, err)
		require.Empty(t, page.Found)
	})
}
