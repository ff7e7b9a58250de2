package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// tableConfig says what DynamoDB is like.
type tableConfig struct {
	// partitionWrites is how many units a partition takes in a second, listShards over
	// how many partitions a tenant is spread in the indexes of sessions and waits.
	partitionWrites float64
	listShards      uint32
	// lag is how long an index does not show what was written.
	lag time.Duration
	// latency of a request; fault is what becomes of it.
	latency func(op string, key session.Key) time.Duration
	fault   func(ctx context.Context, op string, key session.Key) error
	// committed is told each entry as it is committed.
	committed func(key session.Key, e *journal.Entry)
	// stamped is told what the sweep writes on HEAD before it sends, and may spoil it.
	stamped func(*journal.Head)
}

// table is a store with the limits of DynamoDB: rates of partitions and of indexes,
// whose back-pressure refuses the write of the table; indexes that lag; requests
// that take their time and fail.
type table struct {
	store.Store
	cfg tableConfig

	mu         sync.Mutex
	partitions map[string]*bucket
	moved      map[string]time.Time // items whose index has perhaps not heard of them
	movedList  []string
	counts     map[string]int
	due        int            // items that sweeps found
	throttled  map[string]int // by kind of partition
	refused    int
}

func newTable(under store.Store, cfg tableConfig) *table {
	return &table{Store: under, cfg: cfg, partitions: map[string]*bucket{}, moved: map[string]time.Time{}, counts: map[string]int{}, throttled: map[string]int{}}
}

// bucket is the rate of a partition: as much as in a second may come at once.
type bucket struct {
	left float64
	at   time.Time
}

func (b *bucket) take(n, rate float64, now time.Time) bool {
	b.left = min(rate, b.left+rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left < n && b.left < rate {
		return false
	}
	b.left -= n
	return true
}

// errThrottled is what the SDK says when all its attempts were throttled.
var errThrottled = fmt.Errorf("%w: throttled", store.ErrUnavailable)

// attempts of a request that is throttled, with the pauses between them: the retries
// of dynamostore.
const attempts = 5

// charge is what one request takes of a partition.
type charge struct {
	kind, partition string
	writes          float64
}

// request takes the time of a request, waits while it is throttled, and fails as it does.
func (t *table) request(ctx context.Context, op string, key session.Key, charges ...charge) error {
	time.Sleep(t.cfg.latency(op, key))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	t.counts[op]++
	t.mu.Unlock()
	for pause := 25 * time.Millisecond; !t.admit(charges); pause *= 2 {
		if pause > 25*time.Millisecond<<(attempts-2) {
			t.mu.Lock()
			t.refused++
			t.mu.Unlock()
			return errThrottled
		}
		time.Sleep(pause + t.cfg.latency(op, key))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return t.cfg.fault(ctx, op, key)
}

// admit takes what a request needs of every partition it touches, or nothing.
func (t *table) admit(charges []charge) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i, c := range charges {
		b := t.partitions[c.partition]
		if b == nil {
			b = &bucket{left: t.cfg.partitionWrites, at: now}
			t.partitions[c.partition] = b
		}
		if !b.take(c.writes, t.cfg.partitionWrites, now) {
			t.throttled[c.kind]++
			for _, undo := range charges[:i] {
				t.partitions[undo.partition].left += undo.writes
			}
			return false
		}
	}
	return true
}

func (t *table) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	err := t.request(ctx, "claim", p.Key, charge{"session", p.Key.String(), 1})
	if lost := (afterError{}); errors.As(err, &lost) {
		_, _ = t.Store.Claim(ctx, p)
	}
	if err != nil {
		return store.Item{}, err
	}
	return t.Store.Claim(ctx, p)
}

func (t *table) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	if err := p.Validate(1 << 31); err != nil {
		return store.Committed{}, err
	}
	p.Wakes, p.Claim = nil, nil // DynamoDB has no queue, and the caller claims
	err := t.request(ctx, "commit", p.Key, t.charges(p.Key, &p.Entry, p.Items)...)
	lost := afterError{}
	if err != nil && !errors.As(err, &lost) {
		return store.Committed{}, err
	}
	out, failed := t.Store.Commit(ctx, p)
	if failed == nil {
		t.moves(p.Key, p.Items)
		t.cfg.committed(p.Key, &p.Entry)
	}
	out.Enqueued = false
	if err != nil {
		return store.Committed{}, err
	}
	return out, failed
}

func (t *table) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	err := t.request(ctx, "update", key, t.charges(key, nil, items)...)
	lost := afterError{}
	if err != nil && !errors.As(err, &lost) {
		return nil, err
	}
	if t.cfg.stamped != nil {
		for i := range items {
			if head := items[i].Head; head != nil && head.Resent > 0 {
				t.cfg.stamped(head)
			}
		}
	}
	out, failed := t.Store.Update(ctx, key, items...)
	if failed == nil {
		t.moves(key, items)
	}
	if err != nil {
		return nil, err
	}
	return out, failed
}

// entryUnits is what an entry of the simulation takes: its tools answer little.
const entryUnits = 1

// charges are the units of a write, by partition: one for each item, twice that in a
// transaction; and in each index two for an item that moves. The four indexes of the
// inbox take the same, so one of them stands for all.
func (t *table) charges(key session.Key, e *journal.Entry, items []store.Item) []charge {
	own := charge{"session", key.String(), float64(len(items))}
	if e != nil {
		own.writes += entryUnits
	}
	if own.writes > 1 {
		own.writes *= 2
	}
	all := []charge{own}
	for i := range items {
		shard := fmt.Sprintf("#%d", hash(key.ID+items[i].ID)%dueShards)
		switch {
		case items[i].Head != nil:
			list := fmt.Sprintf("#%d", hash(key.ID)%t.cfg.listShards)
			all = append(all, charge{"sessions index", "list#" + key.Tenant + list, 2}, charge{"due index", "due" + shard, 2})
		case items[i].Wait != nil:
			list := fmt.Sprintf("#%d", hash(key.ID+items[i].ID)%t.cfg.listShards)
			all = append(all, charge{"inbox index", "inbox#" + key.Tenant + list, 1}, charge{"due index", "due" + shard, 1})
		}
	}
	return all
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

// found is how many items sweeps have found.
func (t *table) found() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.due
}

// moves notes what the indexes have not heard of yet.
func (t *table) moves(key session.Key, items []store.Item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for len(t.movedList) > 0 && now.Sub(t.moved[t.movedList[0]]) > t.cfg.lag {
		delete(t.moved, t.movedList[0])
		t.movedList = t.movedList[1:]
	}
	for i := range items {
		if items[i].Head == nil && items[i].Wait == nil {
			continue
		}
		name := addressOf(key, &items[i])
		if _, there := t.moved[name]; !there {
			t.movedList = append(t.movedList, name)
		}
		t.moved[name] = now
	}
}

func addressOf(key session.Key, item *store.Item) string {
	return key.String() + "/" + string(item.Kind) + item.ID
}

func (t *table) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		if err := t.request(ctx, "entries", key); err != nil {
			yield(journal.Entry{}, err)
			return
		}
		for e, err := range t.Store.Entries(ctx, key, after) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func (t *table) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		if err := t.request(ctx, "items", key); err != nil {
			yield(store.Item{}, err)
			return
		}
		for item, err := range t.Store.Items(ctx, key, kind, id) {
			if !yield(item, err) {
				return
			}
		}
	}
}

// Find leaves out what an index has not heard of yet.
func (t *table) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	if err := t.request(ctx, "find", session.Key{Tenant: string(p.Kind), ID: strconv.Itoa(p.Limit)}); err != nil {
		return store.Page{}, err
	}
	page, err := t.Store.Find(ctx, p)
	if err != nil {
		return page, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	heard := page.Found[:0]
	for _, found := range page.Found {
		if at, there := t.moved[addressOf(found.Key, &found.Item)]; !there || now.Sub(at) > t.cfg.lag {
			heard = append(heard, found)
		}
	}
	page.Found = heard
	if p.Kind == store.FindDue {
		t.due += len(heard)
	}
	return page, nil
}
