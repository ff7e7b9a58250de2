package dynamostore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	findDefault = 100
	findMax     = 1000
	// filteredPage is how many rows a search by status looks at in one query, and
	// queriesPerPage how many queries one page may take: then a short page, even an
	// empty one, goes back with a cursor.
	filteredPage   = 1000
	queriesPerPage = 10
	// batchGet is how many items DynamoDB reads in one request.
	batchGet = 100
)

// Find looks across sessions; see [store.Store]. An index says where to look, in
// which order, and what is found there is read consistently: what has moved on
// is left out, what was written a moment ago may be missing. A page by status may
// be short, or empty, though another follows.
func (s *Store) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	page, err := s.find(ctx, &p)
	if err != nil {
		return store.Page{}, fmt.Errorf("find %s: %w", p.Kind, err)
	}
	return page, nil
}

func (s *Store) find(ctx context.Context, p *store.FindParams) (store.Page, error) {
	if p.Limit == 0 {
		p.Limit = findDefault
	}
	if p.Limit < 1 || p.Limit > findMax {
		return store.Page{}, fmt.Errorf("limit %d: use 1 to %d", p.Limit, findMax)
	}
	switch p.Kind {
	case store.FindSessions, store.FindWaits:
		if err := validateKey(session.Key{Tenant: p.Tenant}, store.KindIdempotency); err != nil {
			return store.Page{}, err
		}
	case store.FindDue:
	default:
		return store.Page{}, fmt.Errorf("unknown kind of search %q", p.Kind)
	}
	position, err := parseCursor(p)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	seen := map[address]bool{}
	for range queriesPerPage {
		rows, next, err := s.rows(ctx, p, position, p.Limit-len(page.Found))
		if err != nil {
			return store.Page{}, err
		}
		// An index is no snapshot: what moves while it is read can be in it twice.
		rows = slices.DeleteFunc(rows, func(r row) bool {
			twice := seen[r.at]
			seen[r.at] = true
			return twice
		})
		found, err := s.hydrate(ctx, p, rows)
		if err != nil {
			return store.Page{}, err
		}
		page.Found = append(page.Found, found...)
		if position = next; position == "" {
			return page, nil
		}
		if len(page.Found) == p.Limit {
			break
		}
	}
	page.Cursor = cursor(p, position)
	return page, nil
}

// row is one item as an index knows it.
type row struct {
	at       address
	position string
}

// rows returns at most want rows after a position, and the position the next
// ones are after; empty when there are none.
func (s *Store) rows(ctx context.Context, p *store.FindParams, after string, want int) ([]row, string, error) {
	if p.Kind == store.FindDue {
		return s.dueRows(ctx, p, after, want)
	}
	var e expression
	in := &dynamodb.QueryInput{TableName: &s.cfg.Table, Limit: aws.Int32(int32(want) + 1)} //nolint:gosec // at most findMax
	condition, sort, op := "", "", ""
	if p.Kind == store.FindSessions {
		in.IndexName, sort, op = aws.String(indexSessions), attrListAt, "<"
		condition = e.compare(attrList, "=", text(p.Tenant))
		in.ScanIndexForward = aws.Bool(false)
	} else {
		in.IndexName, sort, op = aws.String(indexInbox), attrInboxAt, ">"
		condition = e.compare(attrInbox, "=", text(p.Tenant))
	}
	if after != "" {
		condition += " AND " + e.compare(sort, op, text(after))
	}
	if p.Kind == store.FindSessions && p.Status != "" {
		in.FilterExpression = aws.String(e.compare(attrStatus, "=", text(string(p.Status))))
		in.Limit = aws.Int32(filteredPage)
	}
	in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = &condition, e.names, e.values
	return s.query(ctx, in, sort, want)
}

// query asks an index once.
func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput, sort string, want int) (rows []row, next string, err error) {
	out, err := request(ctx, s, s.cfg.DynamoDB.Query, in)
	if err != nil {
		return nil, "", err
	}
	for _, item := range out.Items {
		rows = append(rows, row{addressOf(item), textOf(item, sort)})
	}
	if len(rows) > want {
		rows = rows[:want]
		return rows, rows[want-1].position, nil
	}
	return rows, textOf(out.LastEvaluatedKey, sort), nil
}

// dueRows merges the shards, the earliest first.
func (s *Store) dueRows(ctx context.Context, p *store.FindParams, after string, want int) ([]row, string, error) {
	// Between: from the first position after the last one ("!" is below whatever an
	// id may go on with) to the last one of that time ("$" is above "#").
	from, to := after+"!", sortable(p.Before)+"$"
	if after == "" {
		from = "!"
	}
	if from > to {
		return nil, "", nil
	}
	shards := make([]shard, dueShards)
	err := each(dueShards, func(i int) (err error) {
		var e expression
		condition := e.compare(attrDue, "=", text(shardName(i))) + " AND " +
			e.name(attrDueAt) + " BETWEEN " + e.value(text(from)) + " AND " + e.value(text(to))
		shards[i].rows, shards[i].next, err = s.query(ctx, &dynamodb.QueryInput{
			TableName: &s.cfg.Table, IndexName: aws.String(indexDue), KeyConditionExpression: &condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, Limit: aws.Int32(int32(want) + 1), //nolint:gosec // at most findMax
		}, attrDueAt, want)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	rows, next := mergeShards(shards, want)
	return rows, next, nil
}

// shard is what one shard of what is due answered.
type shard struct {
	rows []row
	next string
}

// mergeShards returns the first rows of all shards by position, and the position
// to go on after. Nothing may be taken from behind the place where a shard that
// has more broke off.
func mergeShards(shards []shard, want int) ([]row, string) {
	var rows []row
	end := "" // the earliest place where a shard broke off
	for _, s := range shards {
		rows = append(rows, s.rows...)
		if s.next != "" && (end == "" || s.next < end) {
			end = s.next
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.position, b.position) })
	n := len(rows)
	if end != "" {
		n, _ = slices.BinarySearchFunc(rows, end, func(r row, end string) int {
			if r.position <= end {
				return -1
			}
			return 1
		})
	}
	if n > want {
		return rows[:want], rows[want-1].position
	}
	if n < len(rows) || end != "" {
		return rows[:n], end
	}
	return rows, ""
}

// hydrate reads what the rows point to, consistently, and leaves out what is no
// longer what was looked for.
func (s *Store) hydrate(ctx context.Context, p *store.FindParams, rows []row) ([]store.Found, error) {
	items := map[address]attributes{}
	for batch := range slices.Chunk(rows, batchGet) {
		if err := s.getAll(ctx, batch, items); err != nil {
			return nil, err
		}
	}
	var all []store.Found
	for _, row := range rows {
		if p.Kind == store.FindDue && textOf(items[row.at], attrBlob) != "" {
			// Not worth a look into the bucket, which may be slow: who acts on it reads it.
			if found, ok := unread(row.at); ok && items[row.at][attrDue] != nil {
				all = append(all, found)
			}
			continue
		}
		found, err := s.found(ctx, row.at, items[row.at])
		if due, ok := unread(row.at); err != nil && p.Kind == store.FindDue && ok && ctx.Err() == nil {
			// It is handed out unread: it must not hide what else is due.
			all = append(all, due)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", found.Key, err)
		}
		if wanted(p, &found.Item) {
			all = append(all, found)
		}
	}
	return all, nil
}

// getAll adds the items of at most batchGet rows to a map.
func (s *Store) getAll(ctx context.Context, rows []row, items map[address]attributes) error {
	keys := &types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, row := range rows {
		keys.Keys = append(keys.Keys, row.at.key())
	}
	asked := map[string]types.KeysAndAttributes{s.cfg.Table: *keys}
	for attempt := 1; len(asked) > 0; attempt++ {
		out, err := request(ctx, s, s.cfg.DynamoDB.BatchGetItem, &dynamodb.BatchGetItemInput{RequestItems: asked})
		if err != nil {
			return err
		}
		got := out.Responses[s.cfg.Table]
		for _, item := range got {
			items[addressOf(item)] = item
		}
		asked = out.UnprocessedKeys
		for table, rest := range asked {
			rest.ConsistentRead = aws.Bool(true) // whatever the answer says
			asked[table] = rest
		}
		if len(asked) == 0 {
			break
		}
		// An answer may hold 16 MB: what did not fit is no sign of being throttled.
		if len(got) > 0 {
			attempt = 0
			continue
		}
		if err := s.again(ctx, attempt); err != nil {
			return err
		}
	}
	return nil
}

// again pauses before what a batch left undone is asked for once more.
func (s *Store) again(ctx context.Context, attempt int) error {
	if attempt >= s.cfg.Attempts {
		return fmt.Errorf("%w: throttled %d times", store.ErrUnavailable, attempt)
	}
	return s.pause(ctx, attempt)
}

// found decodes what a row points to; its item is empty when it is gone.
func (s *Store) found(ctx context.Context, at address, item attributes) (store.Found, error) {
	key, ok := keyOf(at)
	kind, id, known := kindOf(at.sk)
	if !ok || !known {
		return store.Found{Key: key}, fmt.Errorf("%w: item %q %q in an index", store.ErrCorrupt, at.pk, at.sk)
	}
	decoded, err := s.decode(ctx, key, kind, id, item)
	return store.Found{Key: key, Item: decoded}, err
}

// unread is what is found at an address, without its record.
func unread(at address) (store.Found, bool) {
	key, ok := keyOf(at)
	kind, id, known := kindOf(at.sk)
	return store.Found{Key: key, Item: store.Item{Kind: kind, ID: id}}, ok && known
}

// wanted reports whether an item, as it is now, is what was looked for.
func wanted(p *store.FindParams, item *store.Item) bool {
	switch p.Kind {
	case store.FindSessions:
		return item.Head != nil && !item.Head.Deleted && (p.Status == "" || item.Head.Status == p.Status)
	case store.FindWaits:
		return item.Wait != nil && item.Wait.State == session.WaitOpen
	case store.FindDue:
		due := dueOf(item)
		return due != nil && !due.After(p.Before)
	}
	return false
}
