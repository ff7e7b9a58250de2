package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// Update writes items that are not entries: one in one request, several in one transaction; see
// [store.Store]. For a deleted session it refuses items that existed. A worker that was stopped
// meanwhile may leave an item that never existed, until Delete is called again.
func (s *Store) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	stored, err := s.update(ctx, key, items)
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) {
		return nil, conflict
	}
	return stored, fail("update", key, err)
}

func (s *Store) update(ctx context.Context, key session.Key, items []store.Item) ([]store.Item, error) {
	records, err := encodeItems(key, items)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	values := make([]bucket.Value, len(records))
	for i, r := range records {
		values[i] = r.large()
	}
	if err := s.blobs.Spill(ctx, values); err != nil {
		return nil, err
	}
	var heads map[address]attributes // afterwards, with their leases, if any are among them
	if write := s.newWrite(); len(records) == 1 {
		heads, err = s.updateOne(ctx, key, records[0], write)
	} else {
		heads, err = s.updateSeveral(ctx, key, records, write)
	}
	if err != nil {
		return nil, err
	}
	stored := make([]store.Item, len(records))
	for i, r := range records {
		if stored[i], err = store.NewItem(r.kind, r.id, r.rev+1, r.body); err != nil {
			return nil, err
		}
		if r.kind == store.KindHead {
			stored[i].Head.Lease = leaseOf(heads[r.at])
		}
		stored[i].Key = r.named
	}
	return stored, nil
}

func encodeItems(key session.Key, items []store.Item) ([]*record, error) {
	if err := store.ValidateUpdate(key, items); err != nil {
		return nil, err
	}
	records := make([]*record, len(items))
	for i := range items {
		var err error
		if records[i], err = encodeItem(key, &items[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// updateOne writes one item.
func (s *Store) updateOne(ctx context.Context, key session.Key, r *record, write string) (map[address]attributes, error) {
	now, err := s.writeItem(ctx, r, write)
	var refused *types.ConditionalCheckFailedException
	switch {
	case !errors.As(err, &refused):
		return map[address]attributes{r.at: now}, err
	case r.wrote(refused.Item, write):
		return map[address]attributes{r.at: refused.Item}, nil // an earlier try of this very call, whose answer was lost
	}
	return nil, s.inTheWay(ctx, key, r, refused.Item)
}

// updateSeveral writes several items, all or nothing.
func (s *Store) updateSeveral(ctx context.Context, key session.Key, records []*record, write string) (map[address]attributes, error) {
	writes := make([]types.TransactWriteItem, len(records))
	for i, r := range records {
		writes[i] = s.write(r, write)
	}
	reasons, err := s.transaction(ctx, write, writes)
	if err != nil {
		return nil, err
	}
	first := -1 // the first that was refused
	for i, r := range records {
		if len(reasons) == 0 || !retry.ConditionFailed(reasons[i]) {
			continue
		}
		if r.wrote(reasons[i].Item, write) {
			first = -1 // an earlier try of this very call, whose answer was lost, wrote them all
			break
		}
		if first < 0 {
			first = i
		}
	}
	if first >= 0 {
		return nil, s.inTheWay(ctx, key, records[first], reasons[first].Item)
	}
	heads := map[address]attributes{}
	for _, r := range records {
		if r.kind != store.KindHead {
			continue
		}
		if heads[r.at], err = s.get(ctx, r.at); err != nil { // a transaction does not tell what was written
			return nil, err
		}
	}
	return heads, nil
}

// inTheWay tells what a refused update of a record met.
func (s *Store) inTheWay(ctx context.Context, key session.Key, r *record, there attributes) error {
	if isFence(r.kind, there) && r.key == key {
		return errDeleted
	}
	return s.itemConflict(ctx, key, r, there)
}

// itemConflict is the conflict with an item that its writer saw in another state.
func (s *Store) itemConflict(ctx context.Context, key session.Key, r *record, there attributes) error {
	if isFence(r.kind, there) {
		there = nil
	}
	item, err := s.decode(ctx, r.key, r.kind, r.id, there)
	if err != nil {
		return err
	}
	item.Key = r.named
	return &store.ConflictError{Key: key, Item: &item}
}

// writeItem makes the one conditional write of an update and returns the item's
// attributes afterwards when they may be more than what was written.
func (s *Store) writeItem(ctx context.Context, r *record, write string) (attributes, error) {
	var e expression
	condition := r.condition(&e)
	if !r.updates() {
		_, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.PutItem, &dynamodb.PutItemInput{
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
	out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.cfg.Table, Key: r.at.key(), ConditionExpression: &condition, UpdateExpression: &change,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValues: returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
