package dynamostore

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
)

// attributes is an item, or a part of one, as DynamoDB has it.
type attributes = map[string]types.AttributeValue

func text(v string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: v} }
func binary(v []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: v} }
func texts(v []string) types.AttributeValue {
	return &types.AttributeValueMemberSS{Value: slices.Compact(slices.Sorted(slices.Values(v)))}
}
func yes() types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: true} }
func number(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

// textOf returns an attribute's text, empty when it has none.
func textOf(item attributes, name string) string {
	if v, ok := item[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// numberOf returns an attribute's number, 0 when it has none.
func numberOf(item attributes, name string) int64 {
	if v, ok := item[name].(*types.AttributeValueMemberN); ok {
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}

// bytesOf returns the bytes of a text or binary attribute.
func bytesOf(item attributes, name string) ([]byte, bool) {
	switch v := item[name].(type) {
	case *types.AttributeValueMemberB:
		return v.Value, true
	case *types.AttributeValueMemberS:
		return []byte(v.Value), true
	}
	return nil, false
}

func isDeleted(item attributes) bool {
	v, ok := item[attrDeleted].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

// isFence reports whether what lies at an item's place only keeps it taken. A
// tombstone is still a HEAD.
func isFence(kind store.ItemKind, item attributes) bool {
	return kind != store.KindHead && isDeleted(item)
}

// address is the primary key of an item.
type address struct{ pk, sk string }

func (a address) key() attributes {
	return attributes{attrPK: text(a.pk), attrSK: text(a.sk)}
}

const (
	headSK      = "HEAD"
	idemSK      = "IDEM"
	entryPrefix = "E#"
	lastEntrySK = entryPrefix + "9999999999"
)

// prefixes of the sort keys by kind of item.
var prefixes = map[store.ItemKind]string{
	store.KindHead: headSK, store.KindWait: "WAIT#", store.KindRun: "RUN#", store.KindTool: "TOOL#",
	store.KindMail: "MAIL#", store.KindAudit: "AUDIT#", store.KindNotice: "NOTE#", store.KindIdempotency: idemSK,
	store.KindTenantRecord: "REC#",
}

func partition(key session.Key) string { return "S#" + key.Tenant + "#" + key.ID }

func entryAddress(key session.Key, seq int64) address {
	return address{partition(key), fmt.Sprintf("%s%010d", entryPrefix, seq)}
}

// longKey is the length from which the key of an idempotency record is replaced
// by its digest: DynamoDB takes 2 KB of partition key.
const longKey = 512

func itemAddress(key session.Key, kind store.ItemKind, id string) address {
	switch {
	case kind == store.KindHead:
		return address{partition(key), headSK}
	case kind == store.KindIdempotency && len(id) >= longKey:
		return address{"I#" + key.Tenant + "#" + bucket.Hash([]byte(id)) + "#long", idemSK}
	case kind == store.KindIdempotency:
		return address{"I#" + key.Tenant + "#" + id, idemSK}
	case kind == store.KindTenantRecord:
		return address{"T#" + key.Tenant, prefixes[kind] + id}
	}
	return address{partition(key), prefixes[kind] + id}
}

// keyOf returns the session an address belongs to.
func keyOf(a address) (session.Key, bool) {
	tenant, id, ok := strings.Cut(strings.TrimPrefix(a.pk, "S#"), "#")
	return session.Key{Tenant: tenant, ID: id}, ok && strings.HasPrefix(a.pk, "S#")
}

func addressOf(item attributes) address { return address{textOf(item, attrPK), textOf(item, attrSK)} }

// sortable is a time as text that sorts as times do, to the nanosecond.
func sortable(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// The first and the last time that fit into nanoseconds since 1970, in 1677 and in 2262.
const earliest, latest = math.MinInt64, math.MaxInt64

// nanos is how a lease's end is kept; 0 is the zero time.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(timeOf(earliest)):
		return earliest
	case t.After(timeOf(latest)):
		return latest
	}
	return t.UnixNano()
}

func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// expression gathers the names and values an expression refers to. Names are
// always written as placeholders, for several of ours are reserved words.
type expression struct {
	names  map[string]string
	values attributes
}

func (e *expression) name(attr string) string {
	if e.names == nil {
		e.names = map[string]string{}
	}
	e.names["#"+attr] = attr
	return "#" + attr
}

func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = attributes{}
	}
	name := ":v" + strconv.Itoa(len(e.values))
	e.values[name] = v
	return name
}

// compare returns "#attr op :value".
func (e *expression) compare(attr, op string, v types.AttributeValue) string {
	return e.name(attr) + " " + op + " " + e.value(v)
}

func (e *expression) absent(attr string) string {
	return "attribute_not_exists(" + e.name(attr) + ")"
}

// contains is that a set of texts has one.
func (e *expression) contains(attr, one string) string {
	return "contains(" + e.name(attr) + ", " + e.value(text(one)) + ")"
}

func (e *expression) present(attr string) string {
	return "attribute_exists(" + e.name(attr) + ")"
}

// change returns an update expression that sets and removes attributes.
func (e *expression) change(set attributes, remove []string) string {
	var sets, removes []string
	for _, attr := range sortedNames(set) {
		sets = append(sets, e.compare(attr, "=", set[attr]))
	}
	for _, attr := range remove {
		if _, ok := set[attr]; !ok {
			removes = append(removes, e.name(attr))
		}
	}
	var parts []string
	if len(sets) > 0 {
		parts = append(parts, "SET "+strings.Join(sets, ", "))
	}
	if len(removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(removes, ", "))
	}
	return strings.Join(parts, " ")
}
