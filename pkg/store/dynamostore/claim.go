package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// Claim takes, renews, moves or releases a lease; see [store.Store]. It is one
// update when the lease is as the mode expects it, which it is in a plain step.
func (s *Store) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	head, err := s.claim(ctx, &p)
	if held := (*store.LeaseError)(nil); errors.As(err, &held) {
		return store.Item{}, held
	}
	return head, fail("claim", p.Key, err)
}

func (s *Store) claim(ctx context.Context, p *store.ClaimParams) (store.Item, error) {
	if err := p.Validate(); err != nil {
		return store.Item{}, err
	}
	write := s.newWrite()
	var e expression
	is, condition := expected(p, &e)
	for {
		now, err := s.writeLease(ctx, p, is, condition, &e, write)
		var refused *types.ConditionalCheckFailedException
		if !errors.As(err, &refused) {
			if err != nil {
				return store.Item{}, err
			}
			return s.decode(ctx, p.Key, store.KindHead, "", now)
		}
		there := refused.Item
		if len(there) == 0 || isDeleted(there) {
			return store.Item{}, store.ErrNotFound
		}
		head, err := s.decode(ctx, p.Key, store.KindHead, "", there)
		if err != nil {
			return store.Item{}, err
		}
		if textOf(there, attrLeaseWrite) == write {
			return head, nil // an earlier try of this very call, whose answer was lost
		}
		var granted bool
		if is, granted = p.Grant(head.Head.Lease, neverDead); !granted {
			return store.Item{}, &store.LeaseError{Head: head}
		}
		// Granted for the lease as it was seen, and for no other.
		e = expression{}
		condition = e.compare(attrLeaseWrite, "=", text(textOf(there, attrLeaseWrite))) + " AND " + e.absent(attrDeleted)
	}
}

// expected returns the lease as the mode makes it when nothing is out of the
// ordinary, with the condition that nothing is.
func expected(p *store.ClaimParams, e *expression) (journal.Lease, string) {
	is := p.First()
	seq := number(p.Seq)
	condition := e.present(attrPK) + " AND " + e.absent(attrDeleted) + " AND "
	switch p.Mode {
	case store.ClaimTake:
		condition += "(" + e.absent(attrLeaseSeq) + " OR " + e.compare(attrLeaseSeq, "<", seq) + ")"
	case store.ClaimMove:
		condition += e.compare(attrOwner, "=", text(p.Owner)) + " AND " + e.compare(attrLeaseSeq, "<", seq)
	case store.ClaimRenew, store.ClaimRelease:
		condition += e.compare(attrOwner, "=", text(p.Owner)) + " AND " + e.compare(attrLeaseSeq, "=", seq)
		is.N = keepN
	}
	if p.Mode == store.ClaimRenew { // what would end it sooner is for Grant to judge
		condition += " AND " + e.compare(attrLeaseUntil, "<=", number(nanos(is.Until)))
	}
	if p.Mode == store.ClaimRelease {
		is.Owner, is.Until, is.For = "", timeOf(0), 0
	}
	return is, condition
}

// neverDead says that no owner is dead: here a lease lapses by time only.
func neverDead(string) bool { return false }

// keepN says that the count of claims stays what it is.
const keepN = -1

// writeLease makes one conditional update of the lease and returns HEAD afterwards.
func (s *Store) writeLease(ctx context.Context, p *store.ClaimParams, is journal.Lease, condition string, e *expression, write string) (attributes, error) {
	set := attributes{attrLeaseSeq: number(is.Seq), attrLeaseWrite: text(write)}
	if is.N != keepN {
		set[attrLeaseN], set[attrLeaseDied] = number(is.N), number(is.Died)
	}
	if is.Owner != "" {
		set[attrOwner], set[attrLeaseUntil], set[attrLeaseFor] = text(is.Owner), number(nanos(is.Until)), number(int64(is.For))
	}
	change := e.change(set, []string{attrOwner, attrLeaseUntil, attrLeaseFor}) // only what is not set
	out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.UpdateItem, &dynamodb.UpdateItemInput{
		TableName: &s.cfg.Table, Key: itemAddress(p.Key, store.KindHead, "").key(), ConditionExpression: &condition, UpdateExpression: &change,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValues: types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
