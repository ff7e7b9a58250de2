package dynamostore_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// table is the state table in memory, as far as searches read it: its indexes,
// with the limits and the last keys of DynamoDB, and its items. It counts.
type table struct {
	dynamostore.API
	t testing.TB

	mu    sync.Mutex
	items map[string]item // by pk and sk
	// rows of each partition of each index, in order; nil after a change.
	rows map[string][]item
	// before and after, if any, are called before and after each query is answered.
	before, after func(in *dynamodb.QueryInput)

	used    usage
	scanned map[string]int // rows looked at, by partition of an index
}

// listStore is a store on a table in memory.
func listStore(t testing.TB) (*dynamostore.Store, *table) {
	t.Helper()
	tab := &table{t: t, items: map[string]item{}}
	tab.reset()
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: tab, Table: "adjourn", Blobs: &bucket{}, Bucket: "blobs",
		Now: func() time.Time { return epoch }, NewID: func() string { return "id" },
	})
	require.NoError(t, err)
	return s, tab
}

// reset begins a new bill.
func (tab *table) reset() {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.used, tab.scanned = usage{requests: map[string]int{}}, map[string]int{}
}

func rowKey(of item) string { return textIn(of, "pk") + "|" + textIn(of, "sk") }

func textIn(of item, attr string) string {
	v, _ := of[attr].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// put keeps an item of a session as the store writes it; change may alter it.
func (tab *table) put(key session.Key, of store.Item, change ...func(it item)) {
	it, err := dynamostore.Stored(key, of)
	require.NoError(tab.t, err)
	for _, c := range change {
		c(it)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.items[rowKey(it)], tab.rows = it, nil
}

// index sorts all items into the partitions of the indexes.
func (tab *table) index() {
	tab.rows = map[string][]item{}
	schema := dynamostore.StateSchema()
	for _, index := range schema.Indexes {
		touched := map[string]bool{}
		for _, it := range tab.items {
			if row := indexRow(schema, index, it); row != nil {
				partition := index.Name + "|" + textIn(row, index.Partition)
				tab.rows[partition] = append(tab.rows[partition], row)
				touched[partition] = true
			}
		}
		for partition := range touched {
			slices.SortFunc(tab.rows[partition], func(a, b item) int {
				return strings.Compare(textIn(a, index.Sort), textIn(b, index.Sort)) // it is the item's own
			})
		}
	}
}

var (
	keyCondition = regexp.MustCompile(`^(#\w+) = (:v\d+)(?: AND (#\w+) (?:([<>]) (:v\d+)|BETWEEN (:v\d+) AND (:v\d+)))?$`)
	equals       = regexp.MustCompile(`^(#\w+) = (:v\d+)$`)
	contained    = regexp.MustCompile(`^(?:\(attribute_not_exists\((#\w+)\) OR )?contains\((#\w+), (:v\d+)\)\)?$`)
)

func (tab *table) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if tab.before != nil {
		tab.before(in)
	}
	if tab.after != nil {
		defer tab.after(in)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if tab.rows == nil {
		tab.index()
	}
	value := func(name string) string { return textIn(in.ExpressionAttributeValues, name) }
	parts := keyCondition.FindStringSubmatch(*in.KeyConditionExpression)
	if parts == nil {
		return nil, fmt.Errorf("a condition that this table does not know: %s", *in.KeyConditionExpression)
	}
	sort := in.ExpressionAttributeNames[parts[3]]
	partition := *in.IndexName + "|" + value(parts[2])
	rows := slices.Clone(tab.rows[partition])
	if !aws.ToBool(in.ScanIndexForward) {
		slices.Reverse(rows)
	}
	rows = slices.DeleteFunc(rows, func(row item) bool {
		at := textIn(row, sort)
		switch {
		case parts[4] == "<":
			return at >= value(parts[5])
		case parts[4] == ">":
			return at <= value(parts[5])
		case parts[6] != "":
			return at < value(parts[6]) || at > value(parts[7])
		}
		return false
	})
	out := &dynamodb.QueryOutput{}
	if n := int(*in.Limit); len(rows) >= n { // DynamoDB does not look whether there is another
		rows = rows[:n]
		out.LastEvaluatedKey = rows[n-1]
	}
	size := 0
	for _, row := range rows {
		size += dynamostore.ItemSize(row)
		if tab.keeps(in, row) {
			out.Items = append(out.Items, row)
		}
	}
	tab.used.requests["Query"]++
	tab.used.reads += readUnits(size, false)
	tab.scanned[partition] += len(rows)
	return out, nil
}

// keeps is the filter of a query.
func (tab *table) keeps(in *dynamodb.QueryInput, row item) bool {
	for _, one := range strings.Split(aws.ToString(in.FilterExpression), " AND ") {
		if one == "" {
			return true
		}
		has := func(name string) types.AttributeValue { return row[in.ExpressionAttributeNames[name]] }
		if parts := equals.FindStringSubmatch(one); parts != nil {
			if textIn(item{"": has(parts[1])}, "") != textIn(in.ExpressionAttributeValues, parts[2]) {
				return false
			}
			continue
		}
		parts := contained.FindStringSubmatch(one)
		require.NotNil(tab.t, parts, "a filter that this table does not know: %s", one)
		set, _ := has(parts[2]).(*types.AttributeValueMemberSS)
		if set == nil && parts[1] != "" {
			continue
		}
		if set == nil || !slices.Contains(set.Value, textIn(in.ExpressionAttributeValues, parts[3])) {
			return false
		}
	}
	return true
}

func (tab *table) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.used.requests["BatchGetItem"]++
	var found []item
	for _, key := range in.RequestItems["adjourn"].Keys {
		if it := tab.items[rowKey(key)]; it != nil {
			found = append(found, maps.Clone(it))
			tab.used.reads += readUnits(dynamostore.ItemSize(it), true)
		}
	}
	return &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": found}}, nil
}
