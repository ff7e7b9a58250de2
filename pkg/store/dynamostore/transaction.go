package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// transaction makes writes, all or nothing. When the condition of one failed it
// returns the reasons: one for each write, in their order. token names the call.
func (s *Store) transaction(ctx context.Context, token string, writes []types.TransactWriteItem) ([]types.CancellationReason, error) {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(token), TransactItems: writes}
	again := func(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
		out, err := s.cfg.DynamoDB.TransactWriteItems(ctx, in, opts...)
		// A try that was cancelled has certainly not happened and the next is a new
		// one. After any other error the token says that it is the same.
		if cancelled := (*types.TransactionCanceledException)(nil); errors.As(err, &cancelled) {
			in.ClientRequestToken = aws.String(s.newWrite())
		}
		return out, err
	}
	_, err := retry.DynamoDB(ctx, s.sender, again, in)
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil, err
	}
	reasons := cancelled.CancellationReasons
	switch {
	case len(reasons) != len(writes):
		return nil, fmt.Errorf("%w: %d reasons for %d items: %s", store.ErrUnavailable, len(reasons), len(writes), err.Error())
	case !slices.ContainsFunc(reasons, retry.ConditionFailed):
		return nil, fmt.Errorf("DynamoDB cancelled the transaction: %s", err.Error())
	}
	return reasons, nil
}

// writeIDLength is 60 bits of a digest.
const writeIDLength = 10

// newWrite names one call that writes, however often its request is made.
func (s *Store) newWrite() string { return bucket.Hash([]byte(s.cfg.NewID()))[:writeIDLength] }

func (s *Store) put(item attributes, condition string, e expression) *types.Put {
	return &types.Put{
		TableName: &s.cfg.Table, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// write is a record's part in a transaction.
func (s *Store) write(r *record, id string) types.TransactWriteItem {
	var e expression
	condition := r.condition(&e)
	if !r.updates() {
		return types.TransactWriteItem{Put: s.put(r.item(id), condition, e)}
	}
	change := r.change(&e, id)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.cfg.Table, Key: r.at.key(), ConditionExpression: &condition, UpdateExpression: &change,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
