//go:build aws

package dynamostore_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// meter notes what passes through to DynamoDB, while it is on. It looks at items
// before and after each write, by requests of its own that do not count.
type meter struct {
	dynamostore.API
	t     testing.TB
	table string

	mu   sync.Mutex
	on   bool
	used usage
}

// measure returns what do uses.
func (m *meter) measure(do func()) usage {
	m.mu.Lock()
	m.on, m.used = true, usage{requests: map[string]int{}}
	m.mu.Unlock()
	do()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = false
	return m.used
}

// note adds a request to the bill.
func (m *meter) note(op string, add func(u *usage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on {
		m.used.requests[op]++
		add(&m.used)
	}
}

// current is an item as it is.
func (m *meter) current(of item) item {
	m.mu.Lock()
	on := m.on
	m.mu.Unlock()
	if !on {
		return nil
	}
	out, err := m.API.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: &m.table, Key: item{"pk": of["pk"], "sk": of["sk"]}, ConsistentRead: aws.Bool(true),
	})
	require.NoError(m.t, err)
	return out.Item
}

// written adds one write to a bill.
func (u *usage) written(before, after item, times, bytes int) {
	u.writes += times * writeUnits(before, after)
	u.indexWrites += indexUnits(dynamostore.StateSchema(), before, after)
	u.bytes += bytes
}

func (m *meter) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	before := m.current(in.Item)
	out, err := m.API.PutItem(ctx, in, opts...)
	after := m.current(in.Item)
	m.note("PutItem", func(u *usage) { u.written(before, after, 1, dynamostore.ItemSize(in.Item)) })
	return out, err
}

func (m *meter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	before := m.current(in.Key)
	out, err := m.API.UpdateItem(ctx, in, opts...)
	after := m.current(in.Key)
	m.note("UpdateItem", func(u *usage) {
		u.written(before, after, 1, changed(in.ExpressionAttributeNames, in.ExpressionAttributeValues))
	})
	return out, err
}

// changed is about how many bytes an update carries.
func changed(names map[string]string, values item) int {
	size := dynamostore.ItemSize(values)
	for _, name := range names {
		size += len(name)
	}
	return size
}

func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	key := func(w types.TransactWriteItem) (item, int) {
		if w.Put != nil {
			return w.Put.Item, dynamostore.ItemSize(w.Put.Item)
		}
		return w.Update.Key, changed(w.Update.ExpressionAttributeNames, w.Update.ExpressionAttributeValues)
	}
	var before []item
	for _, w := range in.TransactItems {
		k, _ := key(w)
		before = append(before, m.current(k))
	}
	out, err := m.API.TransactWriteItems(ctx, in, opts...)
	var after []item
	for _, w := range in.TransactItems {
		k, _ := key(w)
		after = append(after, m.current(k))
	}
	m.note("TransactWriteItems", func(u *usage) {
		for i, w := range in.TransactItems {
			_, bytes := key(w)
			u.written(before[i], after[i], 2, bytes)
		}
	})
	return out, err
}

// everywhere is the partition of what belongs to no tenant: the halts, which a process reads at
// most once a second, whatever it does. That is no part of what a move costs.
const everywhere = "T#" + store.Everywhere

func (m *meter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := m.API.GetItem(ctx, in, opts...)
	if pk, ok := in.Key["pk"].(*types.AttributeValueMemberS); ok && pk.Value == everywhere {
		return out, err
	}
	if err == nil {
		m.note("GetItem", func(u *usage) { u.reads += readUnits(dynamostore.ItemSize(out.Item), true) })
	}
	return out, err
}

func (m *meter) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := m.API.Query(ctx, in, opts...)
	if err == nil {
		size := 0
		for _, read := range m.scanned(ctx, in, out) {
			size += dynamostore.ItemSize(read)
		}
		m.note("Query", func(u *usage) { u.reads += readUnits(size, aws.ToBool(in.ConsistentRead)) })
	}
	return out, err
}

// scanned is what a query read, of which a filter may have kept some only.
func (m *meter) scanned(ctx context.Context, in *dynamodb.QueryInput, out *dynamodb.QueryOutput) []item {
	if in.FilterExpression == nil {
		return out.Items
	}
	whole := *in
	whole.FilterExpression, whole.ExpressionAttributeNames, whole.ExpressionAttributeValues = nil, map[string]string{}, item{}
	condition := *in.KeyConditionExpression + " "
	for name, attr := range in.ExpressionAttributeNames {
		if strings.Contains(condition, name+" ") {
			whole.ExpressionAttributeNames[name] = attr
		}
	}
	for name, value := range in.ExpressionAttributeValues {
		if strings.Contains(condition, name+" ") {
			whole.ExpressionAttributeValues[name] = value
		}
	}
	all, err := m.API.Query(ctx, &whole)
	require.NoError(m.t, err)
	return all.Items
}

func (m *meter) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	out, err := m.API.BatchGetItem(ctx, in, opts...)
	if err == nil {
		m.note("BatchGetItem", func(u *usage) {
			for _, found := range out.Responses[m.table] {
				u.reads += readUnits(dynamostore.ItemSize(found), true)
			}
		})
	}
	return out, err
}

// wire counts what the SDK really sends, by operation.
type wire struct {
	mu       sync.Mutex
	requests map[string]int
	bytes    int64
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if op != "GetItem" || !bytes.Contains(body, []byte(strconv.Quote(everywhere))) {
		w.mu.Lock()
		w.requests[op]++
		w.bytes += r.ContentLength
		w.mu.Unlock()
	}
	return http.DefaultClient.Do(r)
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.bytes = map[string]int{}, 0
}

// metered is a chain on DynamoDB with a meter before the table.
func metered(t testing.TB) (*chain, *meter) {
	t.Helper()
	m := &meter{t: t}
	f := newFixture(t, func(cfg *dynamostore.Config) {
		m.API, m.table = cfg.DynamoDB, cfg.Table
		cfg.DynamoDB = m
	})
	return newChain(t, f.store), m
}
