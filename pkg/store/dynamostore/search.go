package dynamostore

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/shards"
)

// search is what the parameters of a search ask of an index.
type search struct {
	index, partition, sort string
	// names are the shards to ask, spread over how many of them rows are expected to
	// lie evenly.
	names  []string
	spread int
	// descending says that the last position comes first.
	descending bool
	// from and to bound the positions, both included, where to is not empty.
	from, to string
	filter   func(e *expression) string
}

// newSearch chooses the index. Of the inbox there is one for each tool, agent and
// kind, which holds few where the whole inbox holds many; of several that would do,
// the one that is likely to hold the fewest. All else is filtered row by row.
func newSearch(p *store.FindParams) *search {
	q := &search{spread: shards.PerTenant, names: shards.Tenant(p.Tenant)}
	without := *p // what the index itself does not keep
	inboxOf := func(index, partition, value string) {
		q.index, q.partition, q.sort, q.names = index, partition, attrInboxAt, shards.Value(p.Tenant, value)
	}
	switch {
	case isDue(p.Kind):
		q.due(p)
	case p.Kind == store.FindSessions:
		q.index, q.partition, q.sort, q.descending = indexSessions, attrList, attrListAt, true
	case p.Kind == store.FindNotices:
		q.index, q.partition, q.sort, q.descending, q.names = indexSessions, attrList, attrListAt, true, shards.Notices(p.Tenant)
	case p.Tool != "":
		inboxOf(indexByTool, attrByTool, p.Tool)
		without.Tool = ""
	case p.Agent != "":
		inboxOf(indexByAgent, attrByAgent, p.Agent)
		without.Agent = ""
	case p.WaitKind != "":
		inboxOf(indexByKind, attrByKind, string(p.WaitKind))
		without.WaitKind = ""
	default:
		q.index, q.partition, q.sort = indexInbox, attrInbox, attrInboxAt
	}
	q.filter = func(e *expression) string { return keeping(&without, e) }
	return q
}

func (q *search) due(p *store.FindParams) {
	q.index, q.partition, q.sort, q.spread = indexDue, attrDue, attrDueAt, shards.ForDue
	// "!" is the first character a position may have, "$" follows "#", which follows a time.
	q.from, q.to, q.names = "!", sortable(p.Before)+"$", slices.Concat(shards.AllDue(shards.Soon), shards.AllDue(shards.Deadline))
	if p.Kind == store.FindAhead {
		q.from, q.to, q.names = sortable(p.After)+"$", forever, shards.AllDue(shards.Soon)
	}
}

// filters reports whether rows are read that are not among what is kept.
func (q *search) filters() bool { return q.filter(&expression{}) != "" }

// condition is what a row of a shard after a position meets; empty when none can.
func (q *search) condition(e *expression, name, after string) string {
	condition := e.compare(q.partition, "=", text(name))
	switch {
	case q.to != "":
		from := q.from
		if after != "" {
			from = after + "!" // below whatever a position may go on with
		}
		if from > q.to {
			return ""
		}
		condition += " AND " + e.name(q.sort) + " BETWEEN " + e.value(text(from)) + " AND " + e.value(text(q.to))
	case after != "" && q.descending:
		condition += " AND " + e.compare(q.sort, "<", text(after))
	case after != "":
		condition += " AND " + e.compare(q.sort, ">", text(after))
	}
	return condition
}

// row is one item with the attributes that an index has.
type row = shards.Row[address]

// merge reads the shards of a search from a position on; want is how many rows a page holds.
func (s *Store) merge(q *search, after string, want int) *shards.Merge[address] {
	return shards.NewMerge(shards.List[address]{
		Names: q.names, Spread: q.spread, Descending: q.descending,
		Ask: func(ctx context.Context, name, after string, limit int32) ([]row, string, error) {
			return s.ask(ctx, q, name, after, limit)
		},
	}, after, want)
}

// ask reads a shard after a position, once, and returns the position it was read up
// to; empty when it has no more.
func (s *Store) ask(ctx context.Context, q *search, name, after string, limit int32) (rows []row, next string, err error) {
	var e expression
	condition := q.condition(&e, name, after)
	if condition == "" {
		return nil, "", nil
	}
	in := &dynamodb.QueryInput{
		TableName: &s.cfg.Table, IndexName: &q.index, KeyConditionExpression: &condition,
		Limit: &limit, ScanIndexForward: aws.Bool(!q.descending),
	}
	if filter := q.filter(&e); filter != "" {
		in.FilterExpression = &filter
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.Query, in)
	if err != nil {
		return nil, "", err
	}
	for _, item := range out.Items {
		rows = append(rows, row{At: addressOf(item), Position: textOf(item, q.sort)})
	}
	return rows, textOf(out.LastEvaluatedKey, q.sort), nil
}

// keeping is the condition of [store.FindParams.Keeps] on what the indexes hold;
// empty when everything is kept.
func keeping(p *store.FindParams, e *expression) string {
	var all []string
	for _, is := range []struct{ attr, want string }{
		{attrStatus, string(p.Status)}, {attrAgent, p.Agent}, {attrRoot, p.Root}, {attrKind, string(p.WaitKind)}, {attrTool, p.Tool},
	} {
		if is.want != "" {
			all = append(all, e.compare(is.attr, "=", text(is.want)))
		}
	}
	if p.Tag != "" {
		all = append(all, e.contains(attrTags, p.Tag))
	}
	switch {
	case p.User == "":
	case p.Kind == store.FindSessions:
		all = append(all, e.compare(attrUser, "=", text(p.User)))
	default: // a wait that names no user may be answered by every user
		all = append(all, "("+e.absent(attrWho)+" OR "+e.contains(attrWho, p.User)+")")
	}
	return strings.Join(all, " AND ")
}

func isDue(kind store.FindKind) bool { return kind == store.FindDue || kind == store.FindAhead }
