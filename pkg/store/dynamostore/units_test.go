package dynamostore_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// What requests cost is computed from the sizes of items: emulators count it wrong.

// Prices in dollars per million, us-east-1, on demand (reference/aws.md 1.2, 4.5).
const (
	priceWrite = 0.625
	priceRead  = 0.125
	// priceMessage is one message's way through a fair standard queue: send,
	// receive, delete.
	priceMessage = 1.3
)

type item = map[string]types.AttributeValue

// writeUnits is what one write of an item costs: a unit for each KB of the larger
// of what was there and what is there then. An absent item is nil.
func writeUnits(before, after item) int {
	return max(1, (max(dynamostore.ItemSize(before), dynamostore.ItemSize(after))+1023)/1024)
}

// indexUnits is what the write costs in the table's indexes: nothing where the
// row stays as it is, one write where it changes, comes or goes, two where its key moves.
func indexUnits(schema dynamostore.Schema, before, after item) int {
	units := 0
	for _, index := range schema.Indexes {
		was, is := indexRow(schema, index, before), indexRow(schema, index, after)
		switch {
		case reflect.DeepEqual(was, is):
		case was != nil && is != nil && reflect.DeepEqual([]any{was[index.Partition], was[index.Sort]}, []any{is[index.Partition], is[index.Sort]}):
			units += writeUnits(was, is)
		default:
			if was != nil {
				units += writeUnits(was, nil)
			}
			if is != nil {
				units += writeUnits(nil, is)
			}
		}
	}
	return units
}

// indexRow is what an index holds of an item, nil if nothing.
func indexRow(schema dynamostore.Schema, index dynamostore.Index, of item) item {
	if of[index.Partition] == nil || of[index.Sort] == nil {
		return nil
	}
	row := item{}
	for _, attr := range append([]string{schema.Partition, schema.Sort, index.Partition, index.Sort}, index.Include...) {
		if v := of[attr]; v != nil {
			row[attr] = v
		}
	}
	return row
}

// readUnits is what one read of so many bytes costs: a unit for each 4 KB, half
// if it need not be consistent, and never nothing.
func readUnits(bytes int, consistent bool) float64 {
	units := float64(max(1, (bytes+4095)/4096))
	if !consistent {
		units /= 2
	}
	return units
}

// usage is what requests cost.
type usage struct {
	requests map[string]int
	// writes in the table, indexWrites in its indexes, reads of both, in units.
	writes, indexWrites int
	reads               float64
	// bytes of the items and attributes that were written.
	bytes int
}

func (u *usage) all() int {
	n := 0
	for _, of := range u.requests {
		n += of
	}
	return n
}

func TestUnits(t *testing.T) {
	t.Parallel()
	of := func(size int) item { return item{"a": str(strings.Repeat("x", size-1))} }
	require.Equal(t, 1, writeUnits(nil, of(10)))
	require.Equal(t, 1, writeUnits(nil, of(1024)))
	require.Equal(t, 2, writeUnits(nil, of(1025)))
	require.Equal(t, 3, writeUnits(of(2049), of(10)), "the larger counts")
	require.Equal(t, 1, writeUnits(nil, nil))
	require.InDelta(t, 1, readUnits(0, true), 0)
	require.InDelta(t, 2, readUnits(4097, true), 0)
	require.InDelta(t, 0.5, readUnits(0, false), 0)
	require.Equal(t, 1+3+2+1+2+3, dynamostore.ItemSize(item{
		"a": num(123), "bc": &types.AttributeValueMemberBOOL{Value: true}, "de": &types.AttributeValueMemberB{Value: []byte("xyz")},
	}), "names, and numbers packed")

	schema := dynamostore.StateSchema()
	row := item{"pk": str("p"), "sk": str("s"), "list": str("acme"), "listAt": str("1"), "status": str("running"), "body": str("b")}
	change := func(attr, value string) item {
		changed := maps.Clone(row)
		changed[attr] = str(value)
		return changed
	}
	require.Equal(t, 1, indexUnits(schema, nil, row))
	require.Equal(t, 0, indexUnits(schema, row, change("body", "c")), "not projected")
	require.Equal(t, 0, indexUnits(schema, row, change("leaseOwner", "w")), "nor is the lease")
	require.Equal(t, 1, indexUnits(schema, row, change("status", "failed")))
	require.Equal(t, 2, indexUnits(schema, row, change("listAt", "2")))
	require.Equal(t, 1, indexUnits(schema, row, item{"pk": str("p")}))
}
