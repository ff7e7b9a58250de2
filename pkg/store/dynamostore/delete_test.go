package dynamostore_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
)

// A delete beside a worker that goes on: each of its steps is overtaken in the end.
func TestDeleteRaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		headAt := func(rev int64) answer {
			return is(&dynamodb.GetItemOutput{Item: storedHead(map[string]types.AttributeValue{"rev": num(rev)})})
		}
		newest := func(seq int64) answer {
			return is(&dynamodb.QueryOutput{Items: []item{storedEntry(t, entry(seq))}})
		}
		refused := refusedWith(nil)
		place := func(seq int64) item { return item{"pk": str("S#acme#s-1"), "sk": storedEntry(t, entry(seq))["sk"]} }
		everything := is(&dynamodb.QueryOutput{Items: []item{
			place(1), place(2), {"pk": str("S#acme#s-1"), "sk": str("HEAD")}, {"pk": str("S#acme#s-1"), "sk": str("RUN#1")},
		}})
		undone := []types.WriteRequest{{DeleteRequest: &types.DeleteRequest{Key: item{"pk": str("S#acme#s-1"), "sk": str("RUN#1")}}}}
		s, f, _ := scripted(t,
			headAt(1), refused, headAt(2), is(&dynamodb.UpdateItemOutput{}), // HEAD moved meanwhile
			newest(1), refused, newest(2), done(), // and an entry was written
			everything, is(&dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{"adjourn": undone}}),
			is(&dynamodb.BatchWriteItemOutput{}),
			is(&dynamodb.GetItemOutput{Item: storedHead(map[string]types.AttributeValue{"rev": num(3), "deleted": &types.AttributeValueMemberBOOL{Value: true}, "due": str("d")})}), refused, // somebody else has finished it
		)
		require.NoError(t, s.Delete(t.Context(), key))
		require.Empty(t, f.answers)
		tomb := f.asked[3].(*dynamodb.UpdateItemInput)
		require.Contains(t, *tomb.UpdateExpression, "REMOVE")
		for _, attr := range []string{"#list", "#listAt", "#due", "#dueAt", "#leaseOwner", "#leaseSeq"} {
			require.Contains(t, *tomb.UpdateExpression, attr)
		}
		require.Contains(t, *tomb.UpdateExpression, "#due = ", "until it is finished")
		finished := *f.asked[12].(*dynamodb.UpdateItemInput).UpdateExpression
		require.NotContains(t, finished, "#due = ")
		require.Contains(t, finished, "#due")
		require.NotContains(t, finished, "#list = ")
		fence := f.asked[7].(*dynamodb.PutItemInput)
		require.Equal(t, str("E#0000000003"), fence.Item["sk"])
		require.Equal(t, num(epoch.AddDate(0, 0, 30).Unix()), fence.Item["expiresAt"])
		batch := f.asked[9].(*dynamodb.BatchWriteItemInput).RequestItems["adjourn"]
		require.Len(t, batch, 3, "two fences and one item; HEAD stays")
		require.Equal(t, undone, f.asked[10].(*dynamodb.BatchWriteItemInput).RequestItems["adjourn"])
	})
}

func TestDeleteStopsWhereItFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, _, _ := scripted(t, is(&dynamodb.GetItemOutput{}))
		require.ErrorIs(t, s.Delete(t.Context(), key), store.ErrNotFound)
		s, _, _ = scripted(t, is(&dynamodb.GetItemOutput{Item: storedHead(nil)}), fails(forbidden))
		require.ErrorIs(t, s.Delete(t.Context(), key), store.ErrUnavailable)
		s, f, b := scripted(t,
			is(&dynamodb.GetItemOutput{Item: storedHead(nil)}), is(&dynamodb.UpdateItemOutput{}),
			is(&dynamodb.QueryOutput{}), done(), is(&dynamodb.QueryOutput{}))
		b.objects["sessions/acme/s-1/x"] = nil
		b.fault = s3Fault(forbidden.Err)
		require.ErrorIs(t, s.Delete(t.Context(), key), store.ErrUnavailable)
		require.Empty(t, f.answers, "the bucket comes last")
	})
}
