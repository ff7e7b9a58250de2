package dynamostore

import (
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
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

const (
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
	errElsewhere    = errors.New("its value is in the bucket, which was not read")
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
	q := newSearch(p)
	m := s.merge(q, position, p.Limit)
	for len(page.Found) < p.Limit {
		rows, next, enough, err := m.Gather(ctx, position, p.Limit-len(page.Found))
		if err != nil {
			return store.Page{}, err
		}
		// An index is no snapshot: what moves while it is read can be in it twice.
		rows = slices.DeleteFunc(rows, func(r row) bool {
			twice := seen[r.At]
			seen[r.At] = true
			return twice
		})
		found, taken, err := s.hydrate(ctx, fetching, p, rows, &room)
		if err != nil {
			return store.Page{}, err
		}
		page.Found = append(page.Found, found...)
		if taken < len(rows) { // the page has no room for more
			if taken > 0 {
				position = rows[taken-1].Position
			}
			page.Cursor = cursor(p, position)
			return page, nil
		}
		if position = next; position == "" {
			return page, nil
		}
		if enough {
			page.Cursor = cursor(p, position)
			return page, nil
		}
	}
	// A full page has a cursor if anything follows. Where not everything is kept that
	// is not looked for: it may be far away.
	another := true
	if !q.filters() {
		if another, err = m.Another(ctx); err != nil {
			return store.Page{}, err
		}
	}
	if another {
		page.Cursor = cursor(p, position)
	}
	return page, nil
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
		err := retry.Each(n, bucket.AtOnce, func(i int) (err error) {
			found[i], err = s.look(fetching, p, batch[i], items[batch[i].At])
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
		body, _ := bytesOf(items[r.At], attrBody)
		size := int64(len(body))
		if there := numberOf(items[r.At], attrBlobBytes); !isDue(kind) && there <= maxPage {
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
		// A read from the bucket may be slow and is not worth it here: a caller that acts on
		// the item reads it.
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
		case errors.Is(err, journal.ErrNeeds):
			indexed = wanted(p, found.Key, &decoded)
		case p.Filtered() && errors.Is(err, store.ErrCorrupt):
			return nil, nil //nolint:nilnil // it is not known whether it matches the search
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
	store.FindSessions: attrList, store.FindWaits: attrInbox, store.FindNotices: attrList, store.FindDue: attrDue, store.FindAhead: attrDue,
}

// getAll adds the items of at most batchGet rows to a map.
func (s *Store) getAll(ctx context.Context, rows []row, items map[address]attributes) error {
	var keys []map[string]types.AttributeValue
	for _, row := range rows {
		keys = append(keys, row.At.key())
	}
	for attempt := 1; len(keys) > 0; attempt++ {
		asked := map[string]types.KeysAndAttributes{s.cfg.Table: {Keys: keys, ConsistentRead: aws.Bool(true)}}
		out, err := retry.DynamoDB(ctx, s.sender, s.cfg.DynamoDB.BatchGetItem, &dynamodb.BatchGetItemInput{RequestItems: asked})
		if err != nil {
			return err
		}
		got := out.Responses[s.cfg.Table]
		for _, item := range got {
			items[addressOf(item)] = item
		}
		if keys = out.UnprocessedKeys[s.cfg.Table].Keys; len(keys) == 0 {
			break
		}
		// An answer may hold 16 MB: what did not fit is no sign of being throttled.
		if len(got) > 0 {
			attempt = 0
			continue
		}
		if err := s.sender.Again(ctx, attempt); err != nil {
			return err
		}
	}
	return nil
}

// unread is what a row points to, without its record.
func unread(kind store.FindKind, r row, item attributes) (*store.Found, error) {
	key, ok := keyOf(r.At)
	of, id, known := kindOf(r.At.sk)
	if !ok || !known {
		return nil, fmt.Errorf("session %s: %w: item %q %q in an index", key, store.ErrCorrupt, r.At.pk, r.At.sk)
	}
	found := &store.Found{Key: key, Item: store.Item{Kind: of, ID: id}}
	switch kind {
	case store.FindSessions:
		found.Item.Head = &journal.Head{Key: key, Status: session.Status(textOf(item, attrStatus)), UpdatedAt: timeAt(r.Position, 0)}
	case store.FindWaits:
		found.Item.Wait = &journal.WaitRecord{Wait: session.Wait{ID: id, OpenedAt: timeAt(r.Position, 1)}, State: session.WaitOpen}
	case store.FindNotices:
		found.Item.Notice = &journal.Notice{ID: id, At: timeAt(r.Position, 0)}
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
	case store.FindNotices:
		return item.Notice != nil
	case store.FindDue:
		due := dueOf(item)
		return due != nil && !due.After(p.Before)
	case store.FindAhead:
		due := dueOf(item)
		return due != nil && due.After(p.After) && item.Notice == nil && (item.Wait == nil || item.Wait.State != session.WaitOpen) && (item.Head == nil || !item.Head.Status.Ended())
	}
	return false
}
