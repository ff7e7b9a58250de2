//go:build aws

package dynamostore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
	"github.com/adjourn/adjourn/pkg/store/storetest"
)

// faulty is DynamoDB on a bad day: before or after a request is carried out,
// fault may say that its answer is an error.
type faulty struct {
	dynamostore.API
	before, after func(in any) error
}

func carry[I, O any](ctx context.Context, f *faulty, in I, do func(context.Context, I, ...func(*dynamodb.Options)) (O, error), opts []func(*dynamodb.Options)) (O, error) {
	var zero O
	if err := f.before(in); err != nil {
		return zero, err
	}
	out, err := do(ctx, in, opts...)
	if fault := f.after(in); fault != nil {
		return zero, fault
	}
	return out, err
}

func (f *faulty) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return carry(ctx, f, in, f.API.GetItem, opts)
}

func (f *faulty) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return carry(ctx, f, in, f.API.Query, opts)
}

func (f *faulty) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return carry(ctx, f, in, f.API.BatchGetItem, opts)
}

func (f *faulty) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return carry(ctx, f, in, f.API.PutItem, opts)
}

func (f *faulty) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return carry(ctx, f, in, f.API.UpdateItem, opts)
}

func (f *faulty) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return carry(ctx, f, in, f.API.TransactWriteItems, opts)
}

func (f *faulty) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return carry(ctx, f, in, f.API.BatchWriteItem, opts)
}

func fine(any) error { return nil }

// firstTry says fault of the first try of each request, or none.
func firstTry(fault func(in any) error) func(in any) error {
	var mu sync.Mutex
	seen := map[any]bool{} // a retry is made with the same input
	return func(in any) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[in] {
			return nil
		}
		seen[in] = true
		return fault(in)
	}
}

// TestStoreOnABadDay runs the whole contract while the first answer to every
// request is lost, and while requests and answers fail by chance: no caller may notice.
func TestStoreOnABadDay(t *testing.T) {
	t.Parallel()
	conflict := func(in any) error {
		transaction, ok := in.(*dynamodb.TransactWriteItemsInput)
		if !ok {
			return conflicted
		}
		all := make([]types.CancellationReason, len(transaction.TransactItems))
		for i := range all {
			all[i] = none
		}
		all[len(all)-1] = reason("TransactionConflict", nil)
		return reasons(all...)
	}
	chance := func(in any) error {
		switch rand.IntN(8) {
		case 0:
			return throttled
		case 1:
			return lost
		case 2:
			return conflict(in)
		}
		return nil
	}
	days := map[string]func() (before, after func(in any) error){
		"every answer is lost":      func() (_, _ func(in any) error) { return fine, firstTry(func(any) error { return lost }) },
		"requests and answers fail": func() (_, _ func(in any) error) { return chance, lostByChance },
	}
	for name, day := range days {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store {
				return newFixture(t, func(cfg *dynamostore.Config) {
					before, after := day()
					cfg.DynamoDB = &faulty{API: cfg.DynamoDB, before: before, after: after}
					cfg.Attempts = 30
				}).store
			})
		})
	}
}

func lostByChance(any) error {
	if rand.IntN(6) == 0 {
		return lost
	}
	return nil
}
