package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// fenceFor is how long a fence is kept in place of an entry: longer than a worker can be stopped
// and then continue.
const fenceFor = 30 * 24 * time.Hour

// removedIn is how long a removal is given before its tombstone is due: until then who began it may
// still be at it.
const removedIn = time.Minute

// batchWrite is how many items DynamoDB writes in one batch.
const batchWrite = 25

// Delete removes a session but for its tombstone; see [store.Store]. HEAD becomes
// the tombstone first. Then the seq after the newest entry is taken by a fence, so
// that no worker can go on, and each entry is replaced by one, so that a worker
// stopped long ago finds no free seq either. What is left is removed, the bucket
// last. A delete that was cut short is finished by the next one: until then the tombstone is due.
func (s *Store) Delete(ctx context.Context, key session.Key) error {
	return fail("delete", key, s.delete(ctx, key))
}

func (s *Store) delete(ctx context.Context, key session.Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if err := s.writeTombstone(ctx, key); err != nil {
		return err
	}
	if err := s.fence(ctx, key); err != nil {
		return err
	}
	if err := s.clear(ctx, key); err != nil {
		return err
	}
	if err := s.blobs.Clear(ctx, key); err != nil {
		return err
	}
	return s.finishTombstone(ctx, key)
}

// finishTombstone takes the due time away from a tombstone: there is nothing left to remove.
func (s *Store) finishTombstone(ctx context.Context, key session.Key) error {
	there, err := s.get(ctx, itemAddress(key, store.KindHead, ""))
	if err != nil || there[attrDue] == nil {
		return err
	}
	tomb, err := s.decode(ctx, key, store.KindHead, "", there)
	if err != nil {
		return err
	}
	tomb.Head.Deleted, tomb.Head.Due = true, nil
	r, err := encodeItem(key, &tomb)
	if err != nil {
		return err
	}
	r.beside[attrDeleted] = yes()
	var e expression
	condition := e.compare(attrRev, "=", number(tomb.Rev))
	change := r.change(&e, s.newWrite())
	_, err = retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.cfg.Table, Key: r.at.key(), ConditionExpression: &condition, UpdateExpression: &change,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return nil // somebody else has finished it as well
	}
	return err
}

// writeTombstone turns HEAD into a tombstone, which is in no index but that of what is due.
func (s *Store) writeTombstone(ctx context.Context, key session.Key) error {
	for {
		there, err := s.get(ctx, itemAddress(key, store.KindHead, ""))
		switch {
		case err != nil:
			return err
		case len(there) == 0:
			return store.ErrNotFound
		case isDeleted(there):
			return nil
		}
		tomb := journal.Head{Key: key, Deleted: true, Due: new(s.cfg.Now().Add(removedIn).UTC())}
		if was, err := s.decode(ctx, key, store.KindHead, "", there); err == nil { // a record that cannot be read still gets a tombstone
			h := was.Head
			tomb.Status, tomb.Task, tomb.StatusSeq, tomb.CreatedAt, tomb.UpdatedAt = h.Status, h.Task, h.StatusSeq, h.CreatedAt, h.UpdatedAt
		}
		r, err := encodeItem(key, &store.Item{Kind: store.KindHead, Rev: numberOf(there, attrRev), Head: &tomb})
		if err != nil {
			return err
		}
		r.beside[attrDeleted] = yes()
		_, err = s.writeItem(ctx, r, s.newWrite())
		if refused := (*types.ConditionalCheckFailedException)(nil); !errors.As(err, &refused) {
			return err
		}
	}
}

// fence takes the seq after the newest entry.
func (s *Store) fence(ctx context.Context, key session.Key) error {
	for {
		var newest attributes
		in := &dynamodb.QueryInput{ScanIndexForward: aws.Bool(false), Limit: aws.Int32(1)}
		for page, err := range s.collection(ctx, in, partition(key), entryPrefix, lastEntrySK) {
			if err != nil {
				return err
			}
			for _, item := range page { // at most one, which is the newest
				newest = item
			}
			if newest != nil {
				break
			}
		}
		if isDeleted(newest) {
			return nil
		}
		next, err := seqAfter(newest)
		if err != nil {
			return err
		}
		_, err = retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.PutItem, &dynamodb.PutItemInput{
			TableName: &s.cfg.Table, Item: s.fenceAt(entryAddress(key, next)),
			ConditionExpression: aws.String("attribute_not_exists(" + attrPK + ")"),
		})
		if refused := (*types.ConditionalCheckFailedException)(nil); !errors.As(err, &refused) {
			return err
		}
	}
}

// seqAfter returns the seq after that of an entry's item, 1 when there is none.
func seqAfter(newest attributes) (int64, error) {
	if newest == nil {
		return 1, nil
	}
	seq, err := strconv.ParseInt(strings.TrimPrefix(textOf(newest, attrSK), entryPrefix), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: entry %q", store.ErrCorrupt, textOf(newest, attrSK))
	}
	return seq + 1, nil
}

func (s *Store) fenceAt(at address) attributes {
	item := at.key()
	item[attrDeleted] = yes()
	item[attrExpires] = number(s.cfg.Now().Add(fenceFor).Unix())
	return item
}

// clear puts a fence at the place of every entry and of every call's ledger, and
// removes every other item but HEAD. A ledger that was free again would let a
// worker that was stopped meanwhile do the side effect a second time.
func (s *Store) clear(ctx context.Context, key session.Key) error {
	in := &dynamodb.QueryInput{
		ProjectionExpression:     aws.String("#pk, #sk, #" + attrDeleted),
		ExpressionAttributeNames: map[string]string{"#" + attrDeleted: attrDeleted},
	}
	for page, err := range s.collection(ctx, in, partition(key), "!", "~") {
		if err != nil {
			return err
		}
		var writes []types.WriteRequest
		for _, item := range page {
			at := addressOf(item)
			switch {
			case isDeleted(item) || at.sk == headSK:
			case strings.HasPrefix(at.sk, entryPrefix), strings.HasPrefix(at.sk, prefixes[store.KindTool]):
				writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: s.fenceAt(at)}})
			default:
				writes = append(writes, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: at.key()}})
			}
		}
		for batch := range slices.Chunk(writes, batchWrite) {
			if err := s.writeAll(ctx, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) writeAll(ctx context.Context, writes []types.WriteRequest) error {
	asked := map[string][]types.WriteRequest{s.cfg.Table: writes}
	for attempt := 1; ; attempt++ {
		out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.BatchWriteItem, &dynamodb.BatchWriteItemInput{RequestItems: asked})
		if err != nil {
			return err
		}
		if asked = out.UnprocessedItems; len(asked) == 0 {
			return nil
		}
		if err := s.sender.Again(ctx, attempt); err != nil {
			return err
		}
	}
}
