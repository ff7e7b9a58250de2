package dynamostore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// filteredPage is how many rows a search that keeps only some looks at in one query, and
	// queriesPerPage how many queries one page may take: then a short page, even an
	// empty one, goes back with a cursor.
	filteredPage   = 1000
	queriesPerPage = 10
	// batchGet is how many items DynamoDB reads in one request.
	batchGet = 100
	// waitsAtOnce is less, for a wait may be as large as an item can be.
	waitsAtOnce = 25
	// maxPage is how many bytes of records one page holds; one that is larger by
	// itself is not fetched.
	maxPage = 8 << 20
	// findTime is how long a page may wait for the bucket: the callers of a list
	// have less patience than those of one session.
	findTime = 8 * time.Second
)

var (
	errBucketSilent = errors.New("the bucket did not answer in time")
	errElsewhere    = errors.New("its value lies in the bucket, where nobody looked")
)

// Find looks across sessions; see [store.Store]. An index says where to look, in
// which order, and what is found there is read consistently: what has moved on
// is left out, what was written a moment ago may be missing. A page that keeps only
// some may be short, or empty, though another follows.
func (s *Store) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	page, err := s.find(ctx, &p)
	if err != nil {
		return store.Page{}, fmt.Errorf("find %s: %w", p.Kind, err)
	}
	return page, nil
}

func (s *Store) find(ctx context.Context, p *store.FindParams) (store.Page, error) {
	if err := p.Prepare(); err != nil {
		return store.Page{}, err
	}
	position, err := parseCursor(p)
	if err != nil {
		return store.Page{}, err
	}
	fetching, cancel := context.WithTimeoutCause(ctx, findTime, errBucketSilent)
	defer cancel()
	var page store.Page
	room := int64(maxPage)
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
		found, taken, err := s.hydrate(ctx, fetching, p, rows, &room)
		if err != nil {
			return store.Page{}, err
		}
		page.Found = append(page.Found, found...)
		if taken < len(rows) {
			if taken > 0 {
				position = rows[taken-1].position
			}
			break
		}
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
	if isDue(p.Kind) {
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
	if filter := keeping(p, &e); filter != "" {
		in.FilterExpression, in.Limit = &filter, aws.Int32(filteredPage)
	}
	in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = &condition, e.names, e.values
	return s.query(ctx, in, sort, want)
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
	default: // a wait that names nobody may be answered by everybody
		all = append(all, "("+e.absent(attrWho)+" OR "+e.contains(attrWho, p.User)+")")
	}
	return strings.Join(all, " AND ")
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
	from, to, names := after+"!", sortable(p.Before)+"$", slices.Concat(shardNames(dueSoon), shardNames(dueDeadline))
	if p.Kind == store.FindAhead {
		to, names = forever, shardNames(dueSoon)
		if after == "" {
			from = sortable(p.After) + "$"
		}
	} else if after == "" {
		from = "!"
	}
	if from > to {
		return nil, "", nil
	}
	shards := make([]shard, len(names))
	err := each(len(names), func(i int) (err error) {
		var e expression
		condition := e.compare(attrDue, "=", text(names[i])) + " AND " +
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

// isDue reports whether a search is one of the sweep's.
func isDue(kind store.FindKind) bool { return kind == store.FindDue || kind == store.FindAhead }

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
// longer what was looked for. It ends where the page has no room for more, and
// returns how many rows were taken. What fetching has no time for is unread.
func (s *Store) hydrate(ctx, fetching context.Context, p *store.FindParams, rows []row, room *int64) (all []store.Found, taken int, err error) {
	size := batchGet
	if p.Kind == store.FindWaits {
		size = waitsAtOnce
	}
	for batch := range slices.Chunk(rows, size) {
		items := map[address]attributes{}
		if err := s.getAll(ctx, batch, items); err != nil {
			return nil, 0, err
		}
		n := fitting(p.Kind, batch, items, room)
		found := make([]*store.Found, n)
		err := each(n, func(i int) (err error) {
			found[i], err = s.look(fetching, p, batch[i], items[batch[i].at])
			return err
		})
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		if err != nil {
			return nil, 0, err
		}
		for _, f := range found {
			if f != nil {
				all = append(all, *f)
			}
		}
		if taken += n; n < len(batch) {
			break
		}
	}
	return all, taken, nil
}

// fitting returns how many rows a page has room for, and takes the room. None needs
// more than an empty page has.
func fitting(kind store.FindKind, rows []row, items map[address]attributes, room *int64) int {
	for i, r := range rows {
		body, _ := bytesOf(items[r.at], attrBody)
		size := int64(len(body))
		if there := numberOf(items[r.at], attrBlobBytes); !isDue(kind) && there <= maxPage {
			size += there
		}
		if size > *room {
			return i
		}
		*room -= size
	}
	return len(rows)
}

// look reads what a row points to; nil when it is no longer what was looked for.
func (s *Store) look(ctx context.Context, p *store.FindParams, r row, item attributes) (*store.Found, error) {
	found, err := unread(p.Kind, r, item)
	if err != nil {
		return nil, err
	}
	indexed := item[indexedBy[p.Kind]] != nil && (p.Status == "" || p.Status == session.Status(textOf(item, attrStatus)))
	switch large := textOf(item, attrBlob) != ""; {
	case large && isDue(p.Kind):
		// Not worth a look into the bucket, which may be slow: who acts on it reads it.
		found.Unread = errElsewhere
	case large && numberOf(item, attrBlobBytes) > maxPage:
		found.Unread = fmt.Errorf("%d bytes are too many for a list", numberOf(item, attrBlobBytes))
	case large && !indexed:
		return nil, nil //nolint:nilnil // the item has moved on
	default:
		decoded, err := s.decode(ctx, found.Key, found.Item.Kind, found.Item.ID, item)
		switch {
		case err == nil:
			found.Item, indexed = decoded, wanted(p, found.Key, &decoded)
		case errors.Is(err, session.ErrNeeds):
			indexed = wanted(p, found.Key, &decoded)
		case p.Filtered() && errors.Is(err, store.ErrCorrupt):
			return nil, nil //nolint:nilnil // nobody knows whether it is among what is kept
		}
		found.Unread = err
	}
	if !indexed {
		return nil, nil //nolint:nilnil // the item has moved on
	}
	return found, nil
}

// indexedBy names the attribute an item has while it is in the index of a search.
var indexedBy = map[store.FindKind]string{
	store.FindSessions: attrList, store.FindWaits: attrInbox, store.FindDue: attrDue, store.FindAhead: attrDue,
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

// unread is what a row points to, without its record.
func unread(kind store.FindKind, r row, item attributes) (*store.Found, error) {
	key, ok := keyOf(r.at)
	of, id, known := kindOf(r.at.sk)
	if !ok || !known {
		return nil, fmt.Errorf("session %s: %w: item %q %q in an index", key, store.ErrCorrupt, r.at.pk, r.at.sk)
	}
	found := &store.Found{Key: key, Item: store.Item{Kind: of, ID: id}}
	switch kind {
	case store.FindSessions:
		found.Item.Head = &session.Head{Key: key, Status: session.Status(textOf(item, attrStatus)), UpdatedAt: timeAt(r.position, 0)}
	case store.FindWaits:
		found.Item.Wait = &session.WaitRecord{Wait: session.Wait{ID: id, OpenedAt: timeAt(r.position, 1)}, State: session.WaitOpen}
	case store.FindDue, store.FindAhead:
	}
	return found, nil
}

// timeAt returns the time that is a part of a position.
func timeAt(position string, part int) time.Time {
	parts := strings.Split(position, "#")
	if part >= len(parts) {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339Nano, parts[part]) // or the zero time
	return at
}

// wanted reports whether an item, as it is now, is what was looked for.
func wanted(p *store.FindParams, key session.Key, item *store.Item) bool {
	switch p.Kind {
	case store.FindSessions:
		return item.Head != nil && !item.Head.Deleted && p.Keeps(key, item)
	case store.FindWaits:
		return item.Wait != nil && item.Wait.State == session.WaitOpen && p.Keeps(key, item)
	case store.FindDue:
		due := dueOf(item)
		return due != nil && !due.After(p.Before)
	case store.FindAhead:
		due := dueOf(item)
		return due != nil && due.After(p.After) && (item.Wait == nil || item.Wait.State != session.WaitOpen)
	}
	return false
}
