package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// Update writes one item that is not an entry; see [store.Store]. Of a deleted
// session it refuses what existed; an item that never did may be left behind
// by a worker that was stopped meanwhile, until Delete is called again.
func (s *Store) Update(ctx context.Context, key session.Key, item store.Item) (store.Item, error) {
	stored, err := s.update(ctx, key, &item)
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) {
		return store.Item{}, conflict
	}
	return stored, fail("update", key, err)
}

func (s *Store) update(ctx context.Context, key session.Key, item *store.Item) (store.Item, error) {
	if err := validateKey(key, item.Kind); err != nil {
		return store.Item{}, err
	}
	r, err := encodeItem(key, item)
	if err != nil {
		return store.Item{}, err
	}
	if err := s.spill(ctx, []large{r.large(key)}); err != nil {
		return store.Item{}, err
	}
	write := s.newWrite()
	now, err := s.writeItem(ctx, r, write)
	var refused *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &refused) && r.wrote(refused.Item, write):
		now = refused.Item // an earlier try of this very call, whose answer was lost
	case errors.As(err, &refused) && isFence(r.kind, refused.Item):
		return store.Item{}, errDeleted
	case errors.As(err, &refused):
		there, err := s.decode(ctx, key, r.kind, r.id, refused.Item)
		if err != nil {
			return store.Item{}, err
		}
		return store.Item{}, &store.ConflictError{Key: key, Item: &there}
	case err != nil:
		return store.Item{}, err
	}
	stored, err := store.NewItem(r.kind, r.id, r.rev+1, r.body)
	if err == nil && stored.Head != nil {
		stored.Head.Lease = leaseOf(now)
	}
	return stored, err
}

// writeItem makes the one conditional write of an update and returns the item's
// attributes afterwards when they may be more than what was written.
func (s *Store) writeItem(ctx context.Context, r *record, write string) (attributes, error) {
	var e expression
	condition := r.condition(&e)
	if !r.updates() {
		_, err := request(ctx, s, s.cfg.DynamoDB.PutItem, &dynamodb.PutItemInput{
			TableName: &s.cfg.Table, Item: r.item(write), ConditionExpression: &condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return nil, err
	}
	change, returns := r.change(&e, write), types.ReturnValueNone
	if r.kind == store.KindHead {
		returns = types.ReturnValueAllNew // with its lease
	}
	out, err := request(ctx, s, s.cfg.DynamoDB.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.cfg.Table, Key: r.at.key(), ConditionExpression: &condition, UpdateExpression: &change,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValues: returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
