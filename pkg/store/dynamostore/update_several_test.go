package dynamostore_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// updateSeveral writes two new ledgers and a wait at revision 1.
func updateSeveral(ctx context.Context, s *dynamostore.Store) error {
	_, err := s.Update(ctx, key,
		store.ToolItem(journal.ToolRecord{Call: "c1-0", State: journal.ToolStarted}, 0),
		store.ToolItem(journal.ToolRecord{Call: "c1-1", State: journal.ToolStarted}, 0),
		store.WaitItem(journal.WaitRecord{Wait: session.Wait{ID: "w1-0"}, State: session.WaitAnswered}, 1))
	return err
}

// storedItem is an item as it lies in the table, written by somebody else.
func storedItem(sk, body string, rev int64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": str("S#acme#s-1"), "sk": str(sk), "rev": num(rev), "w1": str("somebody"), "body": str(body)}
}

// The reasons of a cancelled update come in the order of its items.
func TestUpdateOfSeveral(t *testing.T) {
	t.Parallel()
	const condition, conflict, throttling = "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError"
	ledger := storedItem("TOOL#c1-1", `{"call":"c1-1","state":"finished","at":"2026-02-03T04:05:06Z"}`, 1)
	fence := map[string]types.AttributeValue{"pk": str("S#acme#s-1"), "sk": str("TOOL#c1-0"), "deleted": &types.AttributeValueMemberBOOL{Value: true}}
	// own cancels a transaction by its n-th item as an earlier try of it left it.
	own := func(n int, change func(item map[string]types.AttributeValue)) answer {
		return func(_ context.Context, in any) (any, error) {
			all := []types.CancellationReason{none, none, none}
			there := map[string]types.AttributeValue{}
			for name, v := range in.(*dynamodb.TransactWriteItemsInput).TransactItems[n].Put.Item {
				there[name] = v
			}
			change(there)
			all[n] = reason(condition, there)
			return nil, reasons(all...)
		}
	}
	asItWas := func(map[string]types.AttributeValue) {}
	works := func(t *testing.T, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	for _, c := range []struct {
		name    string
		answers []answer
		check   func(t *testing.T, err error)
	}{
		{"all of them", []answer{done()}, works},
		{"conflicts and throttling are tried again", []answer{
			fails(reasons(none, reason(conflict, nil), none)), fails(reasons(reason(throttling, nil), none, none)), done(),
		}, works},
		{"the answer is lost and the token answers", []answer{fails(lost), done()}, works},
		{"the answer is lost and the first is ours", []answer{fails(lost), own(0, asItWas)}, works},
		{"the answer is lost and only the second was looked at", []answer{fails(lost), own(1, asItWas)}, works},
		{"the answer is lost and others wrote since", []answer{fails(lost), own(1, func(item map[string]types.AttributeValue) {
			item["rev"], item["w2"] = num(2), str("somebody")
		})}, works},
		{"the answer is lost and it is theirs", []answer{fails(lost), fails(reasons(none, reason(condition, ledger), none))}, func(t *testing.T, err error) {
			t.Helper()
			require.Equal(t, "c1-1", conflictOf(t, err).Item.ID)
		}},
		{"the first that was refused is told", []answer{fails(reasons(none, reason(condition, ledger), reason(condition, nil)))}, func(t *testing.T, err error) {
			t.Helper()
			there := conflictOf(t, err).Item
			require.Equal(t, "c1-1", there.ID)
			require.EqualValues(t, 1, there.Rev)
			require.Equal(t, journal.ToolFinished, there.Tool.State)
		}},
		{"one that is absent", []answer{fails(reasons(none, none, reason(condition, nil)))}, func(t *testing.T, err error) {
			t.Helper()
			require.Equal(t, store.Item{Kind: store.KindWait, ID: "w1-0"}, *conflictOf(t, err).Item)
		}},
		{"a failed condition beside a conflict decides", []answer{fails(reasons(reason(conflict, nil), reason(condition, ledger), none))}, func(t *testing.T, err error) {
			t.Helper()
			require.Equal(t, "c1-1", conflictOf(t, err).Item.ID)
		}},
		{"a fence is the end of the session", []answer{fails(reasons(reason(condition, fence), none, none))}, func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, store.ErrNotFound)
		}},
		{"what no retry helps is told as it is", []answer{fails(reasons(none, reason("ValidationError", nil), none))}, func(t *testing.T, err error) {
			t.Helper()
			require.ErrorContains(t, err, "cancelled the transaction")
			require.NotErrorIs(t, err, store.ErrConflict)
		}},
		{"reasons that do not fit the request are not guessed at", []answer{fails(reasons(reason(condition, nil)))}, func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, store.ErrUnavailable)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, f, _ := scripted(t, c.answers...)
				c.check(t, updateSeveral(t.Context(), s))
				require.Empty(t, f.answers, "all were asked for")
			})
		})
	}
}

// A transaction does not tell what it wrote, so HEAD's lease is read after it.
func TestUpdateOfHeadAmongSeveral(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, _ := scripted(t, done(), is(&dynamodb.GetItemOutput{Item: leased("w", 2, 1, epoch, "x")}))
		got, err := s.Update(t.Context(), key, store.HeadItem(head(), 1), store.ToolItem(journal.ToolRecord{Call: "c1-0"}, 0))
		require.NoError(t, err)
		require.Equal(t, "w", got[0].Head.Lease.Owner)
		require.EqualValues(t, 2, got[0].Rev)
		require.Len(t, f.asked, 2)
	})
}

// One item is one plain request, two are one transaction, and none is none.
func TestUpdateRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := store.ToolItem(journal.ToolRecord{Call: "c1-0"}, 0)
		two := store.ToolItem(journal.ToolRecord{Call: "c1-1"}, 1)
		s, f, _ := scripted(t, done(), is(&dynamodb.UpdateItemOutput{}), done())
		for _, items := range [][]store.Item{{}, {one}, {two}, {one, two}} {
			_, err := s.Update(t.Context(), key, items...)
			require.NoError(t, err)
		}
		require.Len(t, f.asked, 3)
		require.IsType(t, &dynamodb.PutItemInput{}, f.asked[0])
		require.IsType(t, &dynamodb.UpdateItemInput{}, f.asked[1])
		transaction := f.asked[2].(*dynamodb.TransactWriteItemsInput)
		require.Len(t, transaction.TransactItems, 2)
		require.NotNil(t, transaction.TransactItems[0].Put)
		require.NotNil(t, transaction.TransactItems[1].Update)
	})
}
