package dynamostore_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// bubble runs a test in which pauses cost no time.
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, run)
}

func plainCommit(ctx context.Context, s *dynamostore.Store) error {
	_, err := s.Commit(ctx, store.CommitParams{Key: key, Entry: entry(2)})
	return err
}

// richCommit writes an entry with HEAD at revision 1 and a new ledger.
func richCommit(ctx context.Context, s *dynamostore.Store) error {
	_, err := s.Commit(ctx, store.CommitParams{Key: key, Entry: entry(2), Items: []store.Item{
		store.HeadItem(head(), 1), store.ToolItem(journal.ToolRecord{Call: "c1-0", State: journal.ToolStarted}, 0),
	}})
	return err
}

func updateTool(ctx context.Context, s *dynamostore.Store) error {
	_, err := s.Update(ctx, key, store.ToolItem(journal.ToolRecord{Call: "c1-0", State: journal.ToolStarted}, 0))
	return err
}

func claimOf(mode store.ClaimMode, owner string, seq int64) store.ClaimParams {
	return store.ClaimParams{Key: key, Mode: mode, Owner: owner, Seq: seq, Now: epoch, Until: epoch.Add(20 * time.Second)}
}

func take(ctx context.Context, s *dynamostore.Store) error {
	_, err := s.Claim(ctx, claimOf(store.ClaimTake, "w", 2))
	return err
}

// calls are one call of the store for each kind of request.
var calls = []struct {
	name string
	call func(ctx context.Context, s *dynamostore.Store) error
	out  any
}{
	{"put of an entry", plainCommit, &dynamodb.PutItemOutput{}},
	{"transaction", richCommit, &dynamodb.TransactWriteItemsOutput{}},
	{"update", updateTool, &dynamodb.PutItemOutput{}},
	{"update of several", updateSeveral, &dynamodb.TransactWriteItemsOutput{}},
	{"claim", take, &dynamodb.UpdateItemOutput{Attributes: leased("w", 2, 1, epoch, "x")}},
	{"query", func(ctx context.Context, s *dynamostore.Store) error {
		for _, err := range s.Entries(ctx, key, 0) {
			return err
		}
		return nil
	}, &dynamodb.QueryOutput{}},
	{"get", func(ctx context.Context, s *dynamostore.Store) error {
		for _, err := range s.Items(ctx, key, store.KindHead, "") {
			return err
		}
		return nil
	}, &dynamodb.GetItemOutput{}},
	{"search", func(ctx context.Context, s *dynamostore.Store) error {
		_, err := s.Find(ctx, store.FindParams{Kind: store.FindSessions, Tenant: "acme"})
		return err
	}, &dynamodb.QueryOutput{}},
}

// passing are errors that may go away.
var passing = map[string]error{
	"throttled": throttled, "answer lost": lost, "internal error": broken, "transaction conflict": conflicted, "in progress": errInProgress,
	"answer cut off": &smithy.DeserializationError{Err: io.ErrUnexpectedEOF},
}

func TestPassingFaultsAreRetried(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		for name, fault := range passing {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s, f, _ := scripted(t, fails(fault), fails(fault), is(c.out))
					began := time.Now()
					require.NoError(t, c.call(t.Context(), s))
					require.Len(t, f.asked, 3)
					require.Greater(t, time.Since(began), 30*time.Millisecond, "it paused")
					require.Less(t, time.Since(began), 200*time.Millisecond)
				})
			})
		}
	}
}

func TestFaultsThatStayAreUnavailable(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var all []answer
				for range 8 {
					all = append(all, fails(throttled))
				}
				s, f, _ := scripted(t, all...)
				err := c.call(t.Context(), s)
				require.ErrorIs(t, err, store.ErrUnavailable)
				require.ErrorContains(t, err, "ProvisionedThroughputExceeded")
				require.Len(t, f.asked, 8)
				var sdk *types.ProvisionedThroughputExceededException
				require.NotErrorAs(t, err, &sdk, "its type goes no further")
			})
			bubbleOnce(t, "no rights", func(t *testing.T) {
				s, f, _ := scripted(t, fails(forbidden))
				require.ErrorIs(t, c.call(t.Context(), s), store.ErrUnavailable)
				require.Len(t, f.asked, 1)
			})
			bubbleOnce(t, "a mistake of ours", func(t *testing.T) {
				s, f, _ := scripted(t, fails(invalid))
				err := c.call(t.Context(), s)
				require.ErrorContains(t, err, "ValidationException")
				require.NotErrorIs(t, err, store.ErrUnavailable)
				require.Len(t, f.asked, 1)
			})
			bubbleOnce(t, "no table", func(t *testing.T) {
				s, _, _ := scripted(t, fails(errNoTable))
				err := c.call(t.Context(), s)
				require.ErrorIs(t, err, store.ErrUnavailable)
				require.ErrorContains(t, err, `table "adjourn"`)
				require.ErrorContains(t, err, "deploy the template")
			})
		})
	}
}

func bubbleOnce(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

func TestSlowAttempts(t *testing.T) {
	t.Parallel()
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			bubbleOnce(t, "one is given up and the next answers", func(t *testing.T) {
				s, f, _ := scripted(t, silent(), is(c.out))
				began := time.Now()
				require.NoError(t, c.call(t.Context(), s))
				require.Len(t, f.asked, 2)
				require.InDelta(t, 3, time.Since(began).Seconds(), 0.1)
			})
			bubbleOnce(t, "none answers", func(t *testing.T) {
				var all []answer
				for range 8 {
					all = append(all, silent())
				}
				s, _, _ := scripted(t, all...)
				err := c.call(t.Context(), s)
				require.ErrorIs(t, err, store.ErrUnavailable)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's time is not up")
			})
			bubbleOnce(t, "the caller's time is up", func(t *testing.T) {
				cause := errors.New("enough")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 4*time.Second, cause)
				defer cancel()
				s, f, _ := scripted(t, silent(), silent())
				began := time.Now()
				require.ErrorIs(t, c.call(ctx, s), cause)
				require.Len(t, f.asked, 2)
				require.Equal(t, 4*time.Second, time.Since(began))
			})
			bubbleOnce(t, "it is up in a pause", func(t *testing.T) {
				cause := errors.New("enough")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, cause)
				defer cancel()
				s, f, _ := scripted(t, fails(throttled))
				require.ErrorIs(t, c.call(ctx, s), cause)
				require.Len(t, f.asked, 1)
			})
		})
	}
}

// What was written by a try whose answer was lost is ours, and nothing else is.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	theirs := entry(2)
	theirs.Attempt.ID = "somebody"
	ownHead := func(_ context.Context, in any) (any, error) {
		values := in.(*dynamodb.UpdateItemInput).ExpressionAttributeValues
		item := leased("w", 2, 1, epoch, "x")
		item["rev"] = num(4) // others wrote since
		for _, v := range values {
			if text, ok := v.(*types.AttributeValueMemberS); ok && len(text.Value) == 10 { // the write's id
				item["w2"], item["leaseW"] = v, v
			}
		}
		return nil, &types.ConditionalCheckFailedException{Item: item}
	}
	ownTransaction := func(_ context.Context, in any) (any, error) {
		items := in.(*dynamodb.TransactWriteItemsInput).TransactItems
		return nil, reasons(reason("ConditionalCheckFailed", items[0].Put.Item), reason("ConditionalCheckFailed", storedHead(nil)), none)
	}
	updateHead := func(ctx context.Context, s *dynamostore.Store) error {
		got, err := s.Update(ctx, key, store.HeadItem(head(), 1))
		if err == nil && got[0].Head.Lease.Owner != "w" {
			return errors.New("the lease is gone")
		}
		return err
	}
	release := func(ctx context.Context, s *dynamostore.Store) error {
		_, err := s.Claim(ctx, claimOf(store.ClaimRelease, "w", 2))
		return err
	}
	for _, c := range []struct {
		name  string
		call  func(ctx context.Context, s *dynamostore.Store) error
		then  answer
		wants error
	}{
		{"put of an entry, ours", plainCommit, refusedByOwn(), nil},
		{"put of an entry, theirs", plainCommit, refusedWith(storedEntry(t, theirs)), store.ErrConflict},
		{"transaction, the token answers", richCommit, is(&dynamodb.TransactWriteItemsOutput{}), nil},
		{"transaction, ours", richCommit, ownTransaction, nil},
		{"transaction, theirs", richCommit, fails(reasons(reason("ConditionalCheckFailed", storedEntry(t, theirs)), none, none)), store.ErrConflict},
		{"update of an item, ours", updateTool, refusedByOwn(), nil},
		{"update of HEAD, ours", updateHead, ownHead, nil},
		{"update of HEAD, theirs", updateHead, refusedWith(storedHead(nil)), store.ErrConflict},
		{"claim, ours", take, ownHead, nil},
		{"claim, theirs", take, refusedWith(leased("other", 2, 1, epoch.Add(time.Minute), "x")), store.ErrLeaseHeld},
		{"release, ours", release, ownHead, nil},
		{"release, theirs", release, refusedWith(leased("other", 2, 1, epoch.Add(time.Minute), "x")), store.ErrLeaseHeld},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, f, _ := scripted(t, fails(lost), c.then)
				err := c.call(t.Context(), s)
				if c.wants == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.wants)
				}
				require.Len(t, f.asked, 2)
			})
		})
	}
}

// token returns the client token of the n-th request.
func (f *fake) token(n int) string {
	return *f.asked[n].(*dynamodb.TransactWriteItemsInput).ClientRequestToken
}

func TestTransactionTokens(t *testing.T) {
	t.Parallel()
	t.Run("the same after a lost answer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, f, _ := scripted(t, fails(lost), fails(throttled), fails(errInProgress), done())
			require.NoError(t, richCommit(t.Context(), s))
			require.Equal(t, f.token(0), f.token(1))
			require.Equal(t, f.token(0), f.token(3))
		})
	})
	t.Run("a new one after a conflict, which has certainly not happened", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, f, _ := scripted(t, fails(reasons(none, reason("TransactionConflict", nil), none)), done())
			require.NoError(t, richCommit(t.Context(), s))
			require.NotEqual(t, f.token(0), f.token(1))
		})
	})
}

func TestCancellationReasons(t *testing.T) {
	t.Parallel()
	theirs := entry(2)
	theirs.Attempt.ID = "somebody"
	const condition, conflict, throttling, throughput = "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"
	fence := map[string]types.AttributeValue{"pk": str("S#acme#s-1"), "sk": str("E#0000000002"), "deleted": &types.AttributeValueMemberBOOL{Value: true}}
	tomb := storedHead(map[string]types.AttributeValue{"deleted": &types.AttributeValueMemberBOOL{Value: true}})
	absent := &dynamodb.GetItemOutput{}
	for _, c := range []struct {
		name    string
		answers []answer
		check   func(t *testing.T, err error)
	}{
		{
			"conflicts and throttling are tried again",
			[]answer{fails(reasons(none, reason(conflict, nil), none)), fails(reasons(reason(throttling, nil), none, reason(throughput, nil))), done()},
			func(t *testing.T, err error) { require.NoError(t, err) },
		},
		{
			"a failed condition beside a conflict decides",
			[]answer{fails(reasons(reason(condition, storedEntry(t, theirs)), reason(conflict, nil), none))},
			func(t *testing.T, err error) { require.Equal(t, "somebody", conflictOf(t, err).Entry.Attempt.ID) },
		},
		{
			"the entry is told before the item",
			[]answer{fails(reasons(reason(condition, storedEntry(t, theirs)), reason(condition, storedHead(nil)), none))},
			func(t *testing.T, err error) { require.NotNil(t, conflictOf(t, err).Entry) },
		},
		{
			"the entry is told though only the item was looked at",
			[]answer{fails(reasons(none, reason(condition, storedHead(nil)), none)), is(&dynamodb.GetItemOutput{Item: storedEntry(t, theirs)})},
			func(t *testing.T, err error) { require.NotNil(t, conflictOf(t, err).Entry) },
		},
		{
			"the first item",
			[]answer{fails(reasons(none, reason(condition, storedHead(nil)), none)), is(absent)},
			func(t *testing.T, err error) { require.Equal(t, store.KindHead, conflictOf(t, err).Item.Kind) },
		},
		{
			"the second item, which is absent",
			[]answer{fails(reasons(none, none, reason(condition, nil))), is(absent)},
			func(t *testing.T, err error) {
				require.Equal(t, store.Item{Kind: store.KindTool, ID: "c1-0"}, *conflictOf(t, err).Item)
			},
		},
		{
			"a fence is the end of the session",
			[]answer{fails(reasons(reason(condition, fence), reason(condition, tomb), none))},
			func(t *testing.T, err error) { require.ErrorIs(t, err, store.ErrNotFound) },
		},
		{
			"so is a tombstone",
			[]answer{fails(reasons(none, reason(condition, tomb), none)), is(absent)},
			func(t *testing.T, err error) { require.ErrorIs(t, err, store.ErrNotFound) },
		},
		{
			"what no retry helps is told as it is",
			[]answer{fails(reasons(none, reason("ValidationError", nil), none))},
			func(t *testing.T, err error) {
				require.ErrorContains(t, err, "cancelled the transaction")
				require.NotErrorIs(t, err, store.ErrConflict)
			},
		},
		{
			"reasons that do not fit the request are not guessed at",
			[]answer{fails(reasons(reason(condition, nil)))},
			func(t *testing.T, err error) { require.ErrorIs(t, err, store.ErrUnavailable) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, f, _ := scripted(t, c.answers...)
				c.check(t, richCommit(t.Context(), s))
				require.Empty(t, f.answers, "all were asked for")
			})
		})
	}
}

func conflictOf(t *testing.T, err error) *store.ConflictError {
	t.Helper()
	var c *store.ConflictError
	require.ErrorAs(t, err, &c)
	return c
}

// A claim is one update; only a lease that is out of the ordinary costs a second.
func TestClaimRequests(t *testing.T) {
	t.Parallel()
	lapsed := leased("other", 2, 3, epoch.Add(-time.Second), "seen")
	t.Run("a lapsed lease is taken as it was seen", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, f, _ := scripted(t, refusedWith(lapsed), is(&dynamodb.UpdateItemOutput{Attributes: leased("w", 2, 4, epoch, "x")}))
			require.NoError(t, take(t.Context(), s))
			second := f.asked[1].(*dynamodb.UpdateItemInput)
			require.Contains(t, *second.ConditionExpression, "#leaseW = ")
			require.Contains(t, second.ExpressionAttributeValues, ":v0")
			require.Equal(t, str("seen"), second.ExpressionAttributeValues[":v0"])
		})
	})
	t.Run("when somebody was faster it looks again", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, _, _ := scripted(t, refusedWith(lapsed), refusedWith(leased("faster", 2, 4, epoch.Add(time.Minute), "y")))
			var held *store.LeaseError
			require.ErrorAs(t, take(t.Context(), s), &held)
			require.Equal(t, "faster", held.Head.Head.Lease.Owner)
		})
	})
	t.Run("no HEAD", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, _, _ := scripted(t, refusedWith(nil))
			require.ErrorIs(t, take(t.Context(), s), store.ErrNotFound)
		})
	})
}
