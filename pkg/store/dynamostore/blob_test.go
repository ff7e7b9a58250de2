package dynamostore_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// noise is text that does not compress.
func noise(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[r.IntN(64)]
	}
	return string(b)
}

func bigEntry(seq int64, size int) journal.Entry {
	e := entry(seq)
	e.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{{Kind: llm.PartText, Text: noise(uint64(seq), size)}}}}
	return e
}

func memo(call string, size int) store.Item {
	return store.ToolItem(journal.ToolRecord{Call: call, State: journal.ToolFinished, Memo: map[string]json.RawMessage{"big": json.RawMessage(`"` + noise(7, size) + `"`)}}, 0)
}

// A large value is in the bucket before the item that refers to it is written.
func TestLargeValuesGoFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, b := scripted(t, fails(forbidden), done())
		b.fault = func(op, _ string) error {
			require.Empty(t, f.asked, "%s before any write", op)
			return nil
		}
		_, err := s.Commit(t.Context(), store.CommitParams{Key: key, Entry: bigEntry(2, 1<<20)})
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.Len(t, b.objects, 1)
		b.fault = nil
		_, err = s.Commit(t.Context(), store.CommitParams{Key: key, Entry: bigEntry(2, 1<<20)})
		require.NoError(t, err)
		require.Len(t, b.objects, 1, "the same value is the same object")
		item := f.asked[1].(*dynamodb.PutItemInput).Item
		require.NotContains(t, item, "payload")
		name := item["blob"].(*types.AttributeValueMemberS).Value
		require.Equal(t, "sessions/acme/s-1/"+hashOf(b.objects[name]), name)
	})
}

func TestWhatDoesNotFitATransactionGoesToTheBucket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, b := scripted(t, done())
		var items []store.Item
		for i := range 60 { // 60 times 100 KB, each small enough by itself
			items = append(items, memo(strings.Repeat("c", i+1), 100<<10))
		}
		items = append(items, memo("small", 100))
		_, err := s.Commit(t.Context(), store.CommitParams{Key: key, Entry: entry(1), Items: items})
		require.NoError(t, err)
		require.NotEmpty(t, b.objects)
		size := 0
		for _, w := range f.asked[0].(*dynamodb.TransactWriteItemsInput).TransactItems {
			for name, v := range w.Put.Item {
				size += len(name)
				if text, ok := v.(*types.AttributeValueMemberS); ok {
					size += len(text.Value)
				}
			}
		}
		require.Less(t, size, 4<<20)
		require.Greater(t, size, 3<<20, "no more than needed")
	})
}

func TestDamagedLargeValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(b *bucket, name string)
		wants  error
		says   string
	}{
		"missing":   {func(b *bucket, name string) { delete(b.objects, name) }, store.ErrCorrupt, "missing in bucket"},
		"changed":   {func(b *bucket, name string) { b.objects[name] = []byte(strings.Repeat("x", len(b.objects[name]))) }, store.ErrCorrupt, "not what was put"},
		"shorter":   {func(b *bucket, name string) { b.objects[name] = b.objects[name][1:] }, store.ErrCorrupt, "not what was put"},
		"longer":    {func(b *bucket, name string) { b.objects[name] = append(b.objects[name], 'x') }, store.ErrCorrupt, "not what was put"},
		"no bucket": {func(b *bucket, _ string) { b.fault = s3Fault(&s3types.NoSuchBucket{}) }, store.ErrUnavailable, `bucket "blobs" does not exist`},
		"no rights": {func(b *bucket, _ string) {
			b.fault = s3Fault(&smithy.GenericAPIError{Code: "AccessDenied", Message: "no"})
		}, store.ErrUnavailable, "PreviousKmsKeyArns) (operation error S3: Any, api error AccessDenied: no)"},
		"no key": {func(b *bucket, _ string) {
			b.fault = s3Fault(&smithy.GenericAPIError{Code: "KMS.DisabledException", Message: "disabled"})
		}, store.ErrUnavailable, "KMS.DisabledException"},
		"not answering": {func(b *bucket, _ string) { b.fault = s3Fault(&timeoutError{}) }, store.ErrUnavailable, "8 attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s, f, b := scripted(t, done())
				_, err := s.Commit(t.Context(), store.CommitParams{Key: key, Entry: bigEntry(1, 1<<20)})
				require.NoError(t, err)
				item := f.asked[0].(*dynamodb.PutItemInput).Item
				object := slices.Collect(maps.Keys(b.objects))[0]
				c.damage(b, object)
				f.answers = []answer{is(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{item}})}
				for _, err := range s.Entries(t.Context(), key, 0) {
					require.ErrorIs(t, err, c.wants)
					require.ErrorContains(t, err, object, "it names the object")
					require.ErrorContains(t, err, c.says)
				}
			})
		})
	}
}

func s3Fault(err error) func(op, name string) error {
	return func(string, string) error {
		return &smithy.OperationError{ServiceID: "S3", OperationName: "Any", Err: err}
	}
}

// An answer that breaks off in the middle is asked for again.
func TestBrokenOffValue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, b := scripted(t, done())
		e := bigEntry(1, 1<<20)
		_, err := s.Commit(t.Context(), store.CommitParams{Key: key, Entry: e})
		require.NoError(t, err)
		f.answers = []answer{is(&dynamodb.QueryOutput{Items: []item{f.asked[0].(*dynamodb.PutItemInput).Item}})}
		b.cut = 2
		for got, err := range s.Entries(t.Context(), key, 0) {
			require.NoError(t, err)
			require.Equal(t, e.Messages, got.Messages)
		}
		require.Zero(t, b.cut)
	})
}

// A reference that leads out of its session is not followed.
func TestForeignReference(t *testing.T) {
	bubble(t, func(t *testing.T) {
		item := storedEntry(t, entry(1))
		delete(item, "payload")
		item["blob"], item["blobBytes"] = str("sessions/acme/s-2/x"), num(1)
		s, _, _ := scripted(t, is(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{item}}))
		for _, err := range s.Entries(t.Context(), key, 0) {
			require.ErrorIs(t, err, store.ErrCorrupt)
		}
	})
}

// patient is a bucket that notes how long it may take, and does not answer.
type patient struct {
	*bucket
	may []time.Duration
}

func (p *patient) GetObject(ctx context.Context, _ *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	until, _ := ctx.Deadline()
	p.may = append(p.may, time.Until(until))
	return nil, &smithy.GenericAPIError{Code: "AccessDenied"}
}

// An attempt that moves a large value has a second more for each megabyte.
func TestLargeValuesHaveMoreTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &patient{}
		for _, size := range []int64{300 << 10, 1 << 20, 10 << 20} {
			item := storedEntry(t, entry(1))
			delete(item, "payload")
			item["blob"], item["blobBytes"] = str("sessions/acme/s-1/x"), num(size)
			s, err := dynamostore.New(dynamostore.Config{
				DynamoDB: &fake{t: t, answers: []answer{is(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{item}})}},
				Table:    "adjourn", Blobs: b, Bucket: "blobs", Now: func() time.Time { return epoch }, NewID: func() string { return "id" },
			})
			require.NoError(t, err)
			for _, err := range s.Entries(t.Context(), key, 0) {
				require.ErrorIs(t, err, store.ErrUnavailable)
			}
		}
		require.Equal(t, []time.Duration{3*time.Second + 300*time.Second/1024, 4 * time.Second, 13 * time.Second}, b.may)
	})
}

// A consumer that stops leaves no request behind, and one that goes on gets the
// values in order though they come from the bucket side by side.
func TestFetchAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, b := scripted(t)
		var items []map[string]types.AttributeValue
		for seq := int64(1); seq <= 20; seq++ {
			f.answers = append(f.answers, done())
			size := 300 << 10
			if seq%3 == 0 {
				size = 100
			}
			_, err := s.Commit(t.Context(), store.CommitParams{Key: key, Entry: bigEntry(seq, size)})
			require.NoError(t, err)
			items = append(items, f.asked[seq-1].(*dynamodb.PutItemInput).Item)
		}
		gets := 0
		b.fault = func(op, _ string) error {
			gets++
			return nil
		}
		f.answers = []answer{is(&dynamodb.QueryOutput{Items: items}), is(&dynamodb.QueryOutput{Items: items})}
		next := int64(1)
		for e, err := range s.Entries(t.Context(), key, 0) {
			require.NoError(t, err)
			require.Equal(t, next, e.Seq)
			next++
		}
		require.EqualValues(t, 21, next)
		require.Equal(t, 14, gets, "each once")
		for _, err := range s.Entries(t.Context(), key, 0) {
			require.NoError(t, err)
			break
		}
		require.LessOrEqual(t, gets, 14+5)
	})
}

// What a batch leaves undone is asked for again.
func TestBatches(t *testing.T) {
	t.Parallel()
	headKey := map[string]types.AttributeValue{"pk": str("S#acme#s-1"), "sk": str("HEAD")}
	row := map[string]types.AttributeValue{"pk": headKey["pk"], "sk": headKey["sk"], "list": str("acme"), "listAt": str("2026#s-1"), "status": str("running")}
	undone := is(&dynamodb.BatchGetItemOutput{UnprocessedKeys: map[string]types.KeysAndAttributes{"adjourn": {Keys: []map[string]types.AttributeValue{headKey}}}})
	index := is(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{row}})
	there := is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": {storedHead(nil)}}})
	gone := is(&dynamodb.BatchGetItemOutput{})
	find := store.FindParams{Kind: store.FindSessions, Tenant: "acme"}
	t.Run("read again", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, _, _ := scripted(t, index, undone, undone, there)
			page, err := s.Find(t.Context(), find)
			require.NoError(t, err)
			require.Len(t, page.Found, 1)
		})
	})
	t.Run("what an index still knows and the table does not is left out", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, _, _ := scripted(t, index, gone)
			page, err := s.Find(t.Context(), find)
			require.NoError(t, err)
			require.Empty(t, page.Found)
		})
	})
	t.Run("throttled for good", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s, _, _ := scripted(t, index, undone, undone, undone, undone, undone, undone, undone, undone)
			_, err := s.Find(t.Context(), find)
			require.ErrorIs(t, err, store.ErrUnavailable)
		})
	})
	t.Run("a search by status gives up looking after some pages and says where it was", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			more := is(&dynamodb.QueryOutput{LastEvaluatedKey: row})
			s, f, _ := scripted(t, slices.Repeat([]answer{more}, asksOfPage)...)
			p := find
			p.Status = session.StatusFailed
			page, err := s.Find(t.Context(), p)
			require.NoError(t, err)
			require.Empty(t, page.Found)
			p.Cursor = page.Cursor
			f.answers = []answer{is(&dynamodb.QueryOutput{})}
			page, err = s.Find(t.Context(), p)
			require.NoError(t, err)
			require.Empty(t, page.Cursor)
			require.Contains(t, f.asked[asksOfPage].(*dynamodb.QueryInput).ExpressionAttributeValues, ":v1")
		})
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	_, err := dynamostore.New(dynamostore.Config{})
	for _, field := range []string{"DynamoDB", "Table", "Blobs", "Bucket", "Now", "NewID"} {
		require.ErrorContains(t, err, field+" is required")
	}
}
