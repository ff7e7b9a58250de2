package dynamostore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// What is wrong in itself is refused before anything is asked or written.
func TestRefusedAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	commit := func(change func(p *store.CommitParams)) func(s *dynamostore.Store) error {
		return func(s *dynamostore.Store) error {
			p := store.CommitParams{Key: key, Entry: entry(2)}
			change(&p)
			_, err := s.Commit(ctx, p)
			return err
		}
	}
	with := func(items ...store.Item) func(s *dynamostore.Store) error {
		return commit(func(p *store.CommitParams) { p.Items = items })
	}
	claim := func(p store.ClaimParams) func(s *dynamostore.Store) error {
		return func(s *dynamostore.Store) error {
			_, err := s.Claim(ctx, p)
			return err
		}
	}
	read := func(kind store.ItemKind) func(s *dynamostore.Store) error {
		return func(s *dynamostore.Store) error {
			for _, err := range s.Items(ctx, key, kind, "") {
				return err
			}
			return nil
		}
	}
	find := func(p store.FindParams) func(s *dynamostore.Store) error {
		return func(s *dynamostore.Store) error {
			_, err := s.Find(ctx, p)
			return err
		}
	}
	foreign := head()
	foreign.Key.ID = "other"
	tool := store.ToolItem(journal.ToolRecord{Call: "c1-0"}, 0)
	for name, c := range map[string]struct {
		call func(s *dynamostore.Store) error
		says string
	}{
		"entry of another version": {commit(func(p *store.CommitParams) { p.Entry.V = 99 }), "version 99"},
		"entry zero":               {commit(func(p *store.CommitParams) { p.Entry.Seq = 0 }), "out of range"},
		"entry of eleven digits":   {commit(func(p *store.CommitParams) { p.Entry.Seq = 10_000_000_000 }), "out of range"},
		"wake that points nowhere": {commit(func(p *store.CommitParams) { p.Wakes = []journal.Wake{{Tenant: "a/b"}} }), "wake"},
		"item twice":               {with(tool, tool), "twice"},
		"item of no kind":          {with(store.Item{Kind: "odd", ID: "x"}), "unknown kind"},
		"empty item":               {with(store.Item{Kind: store.KindTool, ID: "x"}), "empty"},
		"item without an id":       {with(store.ToolItem(journal.ToolRecord{}, 0)), "no id"},
		"negative revision":        {with(store.ToolItem(journal.ToolRecord{Call: "c"}, -1)), "revision -1"},
		"HEAD of another session":  {with(store.HeadItem(foreign, 0)), "other"},
		"HEAD with an id":          {with(store.Item{Kind: store.KindHead, ID: "x", Head: &journal.Head{Key: key}}), "no id"},
		"claim of no mode":         {claim(store.ClaimParams{Key: key, Mode: "steal", Owner: "w", Seq: 1}), "steal"},
		"claim by nobody":          {claim(store.ClaimParams{Key: key, Mode: store.ClaimTake, Seq: 1}), "no owner"},
		"claim of nothing":         {claim(store.ClaimParams{Key: key, Mode: store.ClaimTake, Owner: "w"}), "entry 0"},
		"items of no kind":         {read("odd"), "unknown kind"},
		"all idempotency records":  {read(store.KindIdempotency), "by their key"},
		"search of no kind":        {find(store.FindParams{Kind: "odd"}), "unknown kind"},
		"search without a tenant":  {find(store.FindParams{Kind: store.FindSessions}), "tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := scripted(t)
			require.ErrorContains(t, c.call(s), c.says)
		})
	}
}

// A key of any length is found again, and is no other's.
func TestIdempotencyKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		long := strings.Repeat("k", 3000)
		partitions := map[string]bool{}
		for _, id := range []string{"k", "k#long", long, long + "x"} {
			s, f, _ := scripted(t, done(), done())
			_, err := s.Update(t.Context(), session.Key{Tenant: "acme"}, store.IdempotencyItem(journal.Idempotency{Key: id, ExpiresAt: epoch}, 0))
			require.NoError(t, err)
			for range s.Items(t.Context(), session.Key{Tenant: "acme"}, store.KindIdempotency, id) { //nolint:errcheck // there are none
				require.Fail(t, "there is none")
			}
			put := f.asked[0].(*dynamodb.PutItemInput).Item
			pk := put["pk"].(*types.AttributeValueMemberS).Value
			require.Less(t, len(pk), 2048)
			require.Equal(t, put["pk"], f.asked[1].(*dynamodb.GetItemInput).Key["pk"])
			require.Equal(t, num(epoch.Unix()+1), put["expiresAt"])
			partitions[pk] = true
		}
		require.Len(t, partitions, 4)
	})
}

// A session that is deleted while it is read did not end where the fences begin.
func TestEntriesOfASessionThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	fence := func(sk string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pk": str("S#acme#s-1"), "sk": str(sk), "deleted": &types.AttributeValueMemberBOOL{Value: true}}
	}
	first := storedEntry(t, entry(1))
	t.Run("between pages", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, _, _ := scripted(t, is(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{first}, LastEvaluatedKey: first}),
				is(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{fence("E#0000000002")}}))
			var last error
			for _, err := range s.Entries(t.Context(), key, 0) {
				last = err
			}
			require.ErrorIs(t, last, store.ErrNotFound, "it is not told as a shorter journal")
		})
	})
	for name, page := range map[string][]map[string]types.AttributeValue{
		"within the first page": {first, fence("E#0000000002")}, "before": {fence("E#0000000001")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, _, _ := scripted(t, is(&dynamodb.QueryOutput{Items: page}))
				for e, err := range s.Entries(t.Context(), key, 0) {
					t.Errorf("a deleted session has no entries: %d, %v", e.Seq, err)
				}
			})
		})
	}
}
