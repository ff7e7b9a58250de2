package dynamostore

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
)

// putValue makes attr hold a value, or says where in the bucket it lies.
func putValue(item attributes, attr string, value []byte, in *bucket.Ref) {
	switch {
	case in != nil:
		item[attrBlob], item[attrBlobBytes] = text(in.Key), number(in.Bytes)
	case attr == attrBody && utf8.Valid(value): // a person can read it
		item[attr] = text(string(value))
	default:
		item[attr] = binary(value)
	}
}

// value returns what an item holds, wherever it lies. prefix is where it must lie.
func (s *Store) value(ctx context.Context, item attributes, attr, prefix string) ([]byte, error) {
	in := bucket.Ref{Key: textOf(item, attrBlob), Bytes: numberOf(item, attrBlobBytes)}
	if in.Key == "" {
		value, ok := bytesOf(item, attr)
		if !ok {
			return nil, fmt.Errorf("%w: item %s has no %s", store.ErrCorrupt, textOf(item, attrSK), attr)
		}
		return value, nil
	}
	if !strings.HasPrefix(in.Key, prefix) {
		return nil, fmt.Errorf("%w: item %s refers to object %q of another session", store.ErrCorrupt, textOf(item, attrSK), in.Key)
	}
	return s.blobs.Get(ctx, in, prefix)
}

// itemSize is what an item, or a part of one, counts for: the bytes of its names
// and values (binary unencoded, numbers packed by two digits).
func itemSize(item attributes) int {
	size := 0
	for name, v := range item {
		size += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += (len(v.Value)+1)/2 + 1
		case *types.AttributeValueMemberSS:
			for _, text := range v.Value {
				size += len(text)
			}
		default: // a bool or null
			size++
		}
	}
	return size
}
