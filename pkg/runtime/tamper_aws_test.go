//go:build aws

package runtime_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// stocks are the engines whose records are changed.
func stocks() map[string]func(*testing.T) stock {
	return map[string]func(*testing.T) stock{"data file": newDataFile, "DynamoDB": newTable}
}

// table is a stock in DynamoDB. Its queue is an empty one each time it is worked on.
type table struct{ cfg dynamostore.Config }

func newTable(t *testing.T) stock {
	t.Helper()
	return table{openTable(t)}
}

func (f table) api(t *testing.T) *dynamodb.Client {
	t.Helper()
	api, _ := emulators(t)
	return api
}

func (f table) world(t *testing.T) (*world, func()) {
	t.Helper()
	now := new(clock)
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: ":memory:", Now: now.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s, err := dynamostore.New(f.cfg)
	require.NoError(t, err)
	return onEngine(t, now, db, besideEmbedded{s, db.Store(), f.cfg}), func() { require.NoError(t, db.Close()) }
}

func (f table) copy(t *testing.T) stock {
	t.Helper()
	next := table{openTable(t)}
	for _, item := range f.items(t) {
		next.write(t, item)
	}
	return next
}

type item = map[string]types.AttributeValue

func (f table) items(t *testing.T) []item {
	t.Helper()
	out, err := f.api(t).Scan(t.Context(), &dynamodb.ScanInput{TableName: &f.cfg.Table, ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	require.Empty(t, out.LastEvaluatedKey, "one page")
	return out.Items
}

func (f table) write(t *testing.T, i item) {
	t.Helper()
	_, err := f.api(t).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.cfg.Table, Item: i})
	require.NoError(t, err)
}

func plain(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}

// all are the items of the session; an entry has its text in payload, any other item in body.
func (f table) all(t *testing.T) (all []raw) {
	t.Helper()
	for _, i := range f.items(t) {
		if plain(i["pk"]) != "S#"+session.DefaultTenant+"#s1" {
			continue
		}
		kind, id, _ := strings.Cut(plain(i["sk"]), "#")
		r := raw{kind: strings.ToLower(kind), id: id, text: []byte(plain(i["body"])), at: i}
		if kind == "E" {
			r.kind, r.id, r.text = "entry", strings.TrimLeft(id, "0"), []byte(plain(i["payload"]))
		} else {
			rev, err := strconv.ParseInt(plain(i["rev"]), 10, 64)
			require.NoError(t, err)
			r.rev = rev
		}
		require.NotEmpty(t, r.text)
		all = append(all, r)
	}
	return all
}

func (f table) put(t *testing.T, r raw) {
	t.Helper()
	was, _ := r.at.(item)
	i := maps.Clone(was)
	switch {
	case r.kind == "entry":
		i["payload"] = &types.AttributeValueMemberB{Value: r.text}
		f.write(t, i)
		return
	case utf8.Valid(r.text):
		i["body"] = &types.AttributeValueMemberS{Value: string(r.text)}
	default: // DynamoDB takes no such text
		i["body"] = &types.AttributeValueMemberB{Value: r.text}
	}
	i["rev"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(r.rev, 10)}
	if r.kind != "head" {
		i["sk"] = &types.AttributeValueMemberS{Value: strings.ToUpper(r.kind) + "#" + r.id}
	}
	f.write(t, i)
}

func (f table) drop(t *testing.T, r raw) {
	t.Helper()
	was, _ := r.at.(item)
	_, err := f.api(t).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.cfg.Table, Key: item{"pk": was["pk"], "sk": was["sk"]}})
	require.NoError(t, err)
}
