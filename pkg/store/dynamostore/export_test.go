package dynamostore

import (
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/shards"
)

// ItemSize is itemSize, for the meter of the tests.
var ItemSize = itemSize

// ShardOfSession is [shards.OfSession], for tests that look at what is where.
var ShardOfSession = shards.OfSession

// Stored is an item as the store writes it.
func Stored(key session.Key, of store.Item) (attributes, error) {
	r, err := encodeItem(key, &of)
	if err != nil {
		return nil, err
	}
	return r.item("write"), nil
}
