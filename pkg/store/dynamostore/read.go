package dynamostore

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// get reads one item consistently; nil when it is absent.
func (s *Store) get(ctx context.Context, at address) (attributes, error) {
	out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.GetItem, &dynamodb.GetItemInput{
		TableName: &s.cfg.Table, Key: at.key(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// collection queries a partition between two sort keys, consistently, page by
// page: DynamoDB ends one at 1 MB.
func (s *Store) collection(ctx context.Context, in *dynamodb.QueryInput, pk, from, to string) iter.Seq2[[]attributes, error] {
	return func(yield func([]attributes, error) bool) {
		var e expression
		in.TableName, in.ConsistentRead = &s.cfg.Table, aws.Bool(true)
		in.KeyConditionExpression = aws.String(e.compare(attrPK, "=", text(pk)) + " AND " +
			e.name(attrSK) + " BETWEEN " + e.value(text(from)) + " AND " + e.value(text(to)))
		for name, attr := range in.ExpressionAttributeNames {
			e.names[name] = attr
		}
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
		for {
			out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.Query, in)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(out.Items, nil) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// Entries yields a session's entries above a seq; see [store.Store]. What is
// warm costs one query that finds nothing.
func (s *Store) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		if err := s.entries(ctx, key, min(max(after, 0), maxSeq)+1, yield); err != nil {
			yield(journal.Entry{}, fail("read entries of", key, err))
		}
	}
}

// entries returns an error that was not yielded.
func (s *Store) entries(ctx context.Context, key session.Key, next int64, yield func(journal.Entry, error) bool) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if next > maxSeq {
		return nil
	}
	from, first := entryAddress(key, next), next
	for page, err := range s.collection(ctx, &dynamodb.QueryInput{}, from.pk, from.sk, lastEntrySK) {
		if err != nil {
			return err
		}
		for _, item := range page {
			if isDeleted(item) && next == first {
				return nil // a fence: the session was deleted
			}
			if isDeleted(item) {
				return errDeleted // while it was read: what was yielded is not all there was
			}
		}
		next, err = s.page(ctx, key, page, next, yield)
		if err != nil || next == 0 {
			return err
		}
	}
	return nil
}

// page yields the entries of one page and returns the seq that follows, 0 when
// the consumer has stopped. Large values are fetched a few ahead of the consumer.
func (s *Store) page(ctx context.Context, key session.Key, items []attributes, next int64, yield func(journal.Entry, error) bool) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	ahead := s.fetchAhead(ctx, items, bucket.Prefix(key))
	defer ahead.Wait()
	defer cancel()
	for i, item := range items {
		if at := entryAddress(key, next); textOf(item, attrSK) != at.sk {
			return 0, fmt.Errorf("%w: entry %d is missing, %s follows", store.ErrCorrupt, next, textOf(item, attrSK))
		}
		payload, err := ahead.value(i)
		if err != nil {
			return 0, fmt.Errorf("entry %d: %w", next, err)
		}
		e, err := store.DecodeEntry(payload, next)
		if err != nil {
			return 0, err
		}
		if !yield(e, nil) {
			return 0, nil
		}
		next++
	}
	return next, nil
}

// ahead holds the values of a page, of which the large ones are on their way.
type ahead struct {
	sync.WaitGroup
	values []chan fetched
	start  func()
}

type fetched struct {
	value []byte
	err   error
}

func (s *Store) fetchAhead(ctx context.Context, items []attributes, prefix string) *ahead {
	a := &ahead{values: make([]chan fetched, len(items))}
	var blobs []int
	for i, item := range items {
		a.values[i] = make(chan fetched, 1)
		if textOf(item, attrBlob) != "" {
			blobs = append(blobs, i)
			continue
		}
		value, err := s.value(ctx, item, attrPayload, prefix)
		a.values[i] <- fetched{value, err}
	}
	a.start = func() {
		if len(blobs) == 0 {
			return
		}
		i := blobs[0]
		blobs = blobs[1:]
		a.Go(func() {
			value, err := s.value(ctx, items[i], attrPayload, prefix)
			a.values[i] <- fetched{value, err}
		})
	}
	for range bucket.AtOnce {
		a.start()
	}
	return a
}

// value waits for the value of item i. Each is asked for once, in order.
func (a *ahead) value(i int) ([]byte, error) {
	f := <-a.values[i]
	a.start()
	return f.value, f.err
}

// entry decodes the item of an entry, wherever its stored form lies.
func (s *Store) entry(ctx context.Context, key session.Key, item attributes, seq int64) (journal.Entry, error) {
	payload, err := s.value(ctx, item, attrPayload, bucket.Prefix(key))
	if err != nil {
		return journal.Entry{}, fmt.Errorf("entry %d: %w", seq, err)
	}
	return store.DecodeEntry(payload, seq)
}

// decode turns an item of a table into one of the port, with Rev 0 if there is none.
func (s *Store) decode(ctx context.Context, key session.Key, kind store.ItemKind, id string, item attributes) (store.Item, error) {
	if len(item) == 0 {
		return store.Item{Kind: kind, ID: id}, nil
	}
	body, err := s.value(ctx, item, attrBody, bucket.Prefix(kind.Scope(key)))
	if err != nil {
		return store.Item{}, fmt.Errorf("%s %s: %w", kind, id, err)
	}
	decoded, err := store.NewItem(kind, id, numberOf(item, attrRev), body)
	if err == nil && decoded.Head != nil {
		decoded.Head.Lease = leaseOf(item)
	}
	return decoded, err
}

// Items yields a session's items of one kind; see [store.Store]. Idempotency
// records are found by their key only: each lies in a partition of its own.
func (s *Store) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		if err := s.items(ctx, key, kind, id, yield); err != nil {
			yield(store.Item{}, fail("read items of", key, err))
		}
	}
}

func (s *Store) items(ctx context.Context, key session.Key, kind store.ItemKind, id string, yield func(store.Item, error) bool) error {
	if err := kind.ValidateKey(key); err != nil {
		return err
	}
	prefix, known := prefixes[kind]
	begins, many := strings.CutSuffix(id, "*")
	switch {
	case !known:
		return fmt.Errorf("unknown kind of item %q", kind)
	case kind == store.KindIdempotency && (many || id == ""):
		return fmt.Errorf("idempotency records are read by their key")
	case id != "" && !many, kind == store.KindHead:
		found, err := s.get(ctx, itemAddress(key, kind, id))
		if err != nil || found == nil || isFence(kind, found) {
			return err
		}
		item, err := s.decode(ctx, key, kind, id, found)
		if err == nil {
			yield(item, nil)
		}
		return err
	}
	// No id has a character above ~, which is the one before \x7f.
	first := itemAddress(key, kind, begins)
	for page, err := range s.collection(ctx, &dynamodb.QueryInput{}, first.pk, first.sk, first.sk+"\x7f") {
		if err != nil {
			return err
		}
		for _, found := range page {
			if isFence(kind, found) {
				continue
			}
			item, err := s.decode(ctx, key, kind, strings.TrimPrefix(textOf(found, attrSK), prefix), found)
			if err != nil {
				return err
			}
			if !yield(item, nil) {
				return nil
			}
		}
	}
	return nil
}
