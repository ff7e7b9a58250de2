package dynamostore

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// maxSeq is the largest number ten digits can say.
const maxSeq = 9_999_999_999

// commit is one call of Commit.
type commit struct {
	key     session.Key
	entry   journal.Entry
	payload []byte
	blob    *bucket.Ref
	records []*record
	write   string
}

// Commit writes an entry with its items: a plain step in one put, others in one
// transaction. Wakes and the claim are left to the caller; see [store.Store].
func (s *Store) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	c, err := s.newCommit(&p)
	if err == nil {
		err = s.blobs.Spill(ctx, c.large())
	}
	if err == nil && len(c.records) == 0 {
		err = s.putEntry(ctx, c)
	} else if err == nil {
		err = s.transact(ctx, c)
	}
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) {
		return store.Committed{}, conflict
	}
	if err != nil {
		return store.Committed{}, fail("commit", p.Key, err)
	}
	return store.Committed{Hash: c.entry.Hash, Bytes: len(c.payload)}, nil
}

func (s *Store) newCommit(p *store.CommitParams) (*commit, error) {
	if err := p.Validate(maxSeq); err != nil {
		return nil, err
	}
	c := &commit{key: p.Key, entry: p.Entry, write: s.newWrite()}
	var err error
	if c.payload, err = journal.Encode(&c.entry); err != nil {
		return nil, err
	}
	for i := range p.Items {
		r, err := encodeItem(p.Key, &p.Items[i])
		if err != nil {
			return nil, err
		}
		if r.kind == store.KindHead && r.key == p.Key {
			r.owner = p.LeaseOwner
		}
		c.records = append(c.records, r)
	}
	return c, nil
}

func (c *commit) large() []bucket.Value {
	values := []bucket.Value{{Prefix: bucket.Prefix(c.key), Bytes: c.payload, Ref: &c.blob}}
	for _, r := range c.records {
		values = append(values, r.large())
	}
	return values
}

func (r *record) large() bucket.Value {
	return bucket.Value{Prefix: bucket.Prefix(r.key), Bytes: r.body, Beside: itemSize(r.beside), Ref: &r.blob}
}

// item is the entry as it lies in the table.
func (c *commit) item() attributes {
	e := &c.entry
	item := attributes{
		attrKind: text(string(e.Kind)), attrRun: number(e.Run), attrStep: number(e.Step), attrStatus: text(string(e.Status)),
		attrAt: text(e.At.UTC().Format("2006-01-02T15:04:05.000Z")), attrWrite: text(c.write),
	}
	maps.Copy(item, entryAddress(c.key, e.Seq).key())
	putValue(item, attrPayload, c.payload, c.blob)
	return item
}

// putEntry is a plain step: one put of an entry that must not be there.
func (s *Store) putEntry(ctx context.Context, c *commit) error {
	_, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.PutItem, &dynamodb.PutItemInput{
		TableName: &s.cfg.Table, Item: c.item(), ConditionExpression: aws.String("attribute_not_exists(" + attrPK + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return err
	}
	_, err = s.taken(ctx, c, refused.Item)
	return err
}

// taken decides about an entry that was refused because something is at its
// place. fenced says that it is a fence: the session was deleted.
func (s *Store) taken(ctx context.Context, c *commit, there attributes) (fenced bool, err error) {
	switch {
	case isDeleted(there):
		return true, errDeleted
	case textOf(there, attrWrite) == c.write:
		return false, nil // an earlier try of this very call, whose answer was lost
	}
	entry, err := s.entry(ctx, c.key, there, c.entry.Seq)
	if err != nil {
		return false, err
	}
	return false, &store.ConflictError{Key: c.key, Entry: &entry}
}

// transact writes entry and items, all or nothing.
func (s *Store) transact(ctx context.Context, c *commit) error {
	var e expression
	free := e.absent(attrPK)
	writes := []types.TransactWriteItem{{Put: s.put(c.item(), free, e)}}
	for _, r := range c.records {
		writes = append(writes, s.write(r, c.write))
	}
	reasons, err := s.transaction(ctx, c.write, writes)
	if err != nil || reasons == nil {
		return err
	}
	return s.cancelled(ctx, c, reasons)
}

// cancelled finds out why a transaction was refused. A seq that is taken is reported before any
// other cause.
func (s *Store) cancelled(ctx context.Context, c *commit, reasons []types.CancellationReason) error {
	there := reasons[0].Item
	if len(there) == 0 {
		// The entry may have been looked at too late to be among the reasons; and
		// if it is our own, the items moved because we moved them.
		var getErr error
		if there, getErr = s.get(ctx, entryAddress(c.key, c.entry.Seq)); getErr != nil {
			return getErr
		}
	}
	if len(there) > 0 {
		if fenced, err := s.taken(ctx, c, there); !fenced {
			return err
		}
	}
	return s.refused(ctx, c, reasons, len(there) > 0)
}

// refused reports which item caused the refusal. For a deleted session it reports only that,
// unless the caller meant to create the session.
func (s *Store) refused(ctx context.Context, c *commit, reasons []types.CancellationReason, fenced bool) error {
	makes, first := false, -1
	for i, r := range c.records {
		if first < 0 && retry.ConditionFailed(reasons[i+1]) {
			first = i
		}
		if r.key != c.key {
			continue // of another session, or of the tenant
		}
		if r.kind == store.KindHead {
			makes = r.rev == 0
		}
		fenced = fenced || isDeleted(reasons[i+1].Item)
	}
	if first < 0 || fenced && !makes {
		return errDeleted
	}
	return s.itemConflict(ctx, c.key, c.records[first], reasons[first+1].Item)
}
