package dynamostore_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// TestMain makes the codec's encoder and decoder before any bubble of synctest
// does: their channels would belong to that bubble.
func TestMain(m *testing.M) {
	e := bigEntry(1, 4096)
	raw, err := journal.Encode(&e)
	if err == nil {
		_, err = journal.Decode(raw)
	}
	if err != nil {
		panic(err)
	}
	m.Run()
}

var (
	key   = session.Key{Tenant: "acme", ID: "s-1"}
	epoch = time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.UTC)
)

// fake is DynamoDB with its answers written down: one for each request, in
// order. It keeps what it was asked. A tenant's sessions and waits all lie in the
// first shard, unless every shard is to be spoken of: the others have nothing.
type fake struct {
	t          testing.TB
	mu         sync.Mutex
	answers    []answer
	asked      []any
	everyShard bool
}

// shards of a tenant.
const shards = 8

var otherShard = regexp.MustCompile(`^[^#]+#[1-7](#|$)`)

// elsewhere reports whether a request asks a shard of a tenant that is not the first.
func elsewhere(in any) bool {
	q, ok := in.(*dynamodb.QueryInput)
	if !ok || q.IndexName == nil {
		return false
	}
	partition, _ := q.ExpressionAttributeValues[":v0"].(*types.AttributeValueMemberS)
	return partition != nil && otherShard.MatchString(partition.Value)
}

// answer makes an output or an error of a request.
type answer func(ctx context.Context, in any) (any, error)

func is(out any) answer { return func(context.Context, any) (any, error) { return out, nil } }

// done answers a request with nothing to say.
func done() answer {
	return func(_ context.Context, in any) (any, error) {
		switch in.(type) {
		case *dynamodb.PutItemInput:
			return &dynamodb.PutItemOutput{}, nil
		case *dynamodb.TransactWriteItemsInput:
			return &dynamodb.TransactWriteItemsOutput{}, nil
		case *dynamodb.GetItemInput:
			return &dynamodb.GetItemOutput{}, nil
		case *dynamodb.QueryInput:
			return &dynamodb.QueryOutput{}, nil
		}
		return nil, fmt.Errorf("done does not answer %T", in)
	}
}

func fails(err error) answer { return func(context.Context, any) (any, error) { return nil, err } }

// silent never answers.
func silent() answer {
	return func(ctx context.Context, _ any) (any, error) {
		<-ctx.Done()
		return nil, &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Any", Err: ctx.Err()}
	}
}

// refusedWith is a failed condition with the item as it is.
func refusedWith(item map[string]types.AttributeValue) answer {
	return fails(&types.ConditionalCheckFailedException{Item: item})
}

// refusedByOwn is the failed condition of a put whose earlier try has succeeded.
func refusedByOwn() answer {
	return func(_ context.Context, in any) (any, error) {
		return nil, &types.ConditionalCheckFailedException{Item: in.(*dynamodb.PutItemInput).Item}
	}
}

func reasons(all ...types.CancellationReason) *types.TransactionCanceledException {
	return &types.TransactionCanceledException{CancellationReasons: all}
}

func reason(code string, item map[string]types.AttributeValue) types.CancellationReason {
	return types.CancellationReason{Code: &code, Item: item}
}

var none = reason("None", nil)

// throttled, lost and the like are what a client says of them.
var (
	throttled     = &types.ProvisionedThroughputExceededException{}
	lost          = &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Any", Err: &timeoutError{}}
	broken        = &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Any", Err: &types.InternalServerError{}}
	invalid       = &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Any", Err: &smithy.GenericAPIError{Code: "ValidationException", Message: "no"}}
	forbidden     = &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Any", Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}}
	errNoTable    = &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Any", Err: &types.ResourceNotFoundException{}}
	errInProgress = &types.TransactionInProgressException{}
	conflicted    = &types.TransactionConflictException{}
)

// timeoutError is a connection whose answer did not come.
type timeoutError struct{}

func (*timeoutError) Error() string   { return "read: i/o timeout" }
func (*timeoutError) Timeout() bool   { return true }
func (*timeoutError) Temporary() bool { return true }

func (f *fake) answer(ctx context.Context, in any) (any, error) {
	if !consistent(in) {
		f.t.Errorf("a %T that is not consistent: emulators read nothing else, DynamoDB does", in)
	}
	if !f.everyShard && elsewhere(in) {
		return &dynamodb.QueryOutput{}, nil
	}
	f.mu.Lock()
	f.asked = append(f.asked, in)
	if len(f.answers) == 0 {
		f.mu.Unlock()
		f.t.Errorf("nobody expected a %T", in)
		return nil, errors.New("no answer is left")
	}
	next := f.answers[0]
	f.answers = f.answers[1:]
	f.mu.Unlock()
	return next(ctx, in)
}

// consistent reports whether a request reads what was last written. An index cannot.
func consistent(in any) bool {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return aws.ToBool(in.ConsistentRead)
	case *dynamodb.QueryInput:
		return in.IndexName != nil || aws.ToBool(in.ConsistentRead)
	case *dynamodb.BatchGetItemInput:
		for _, keys := range in.RequestItems {
			return aws.ToBool(keys.ConsistentRead)
		}
	}
	return true
}

// ask answers a request, which the SDK must not repeat by itself.
func ask[O any](ctx context.Context, f *fake, in any, opts []func(*dynamodb.Options)) (*O, error) {
	var options dynamodb.Options
	for _, set := range opts {
		set(&options)
	}
	if options.Retryer != (aws.NopRetryer{}) {
		f.t.Errorf("a %T that the SDK would repeat, below the store's own attempts", in)
	}
	out, err := f.answer(ctx, in)
	o, _ := out.(*O)
	return o, err
}

func (f *fake) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return ask[dynamodb.GetItemOutput](ctx, f, in, opts)
}

func (f *fake) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return ask[dynamodb.QueryOutput](ctx, f, in, opts)
}

func (f *fake) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return ask[dynamodb.BatchGetItemOutput](ctx, f, in, opts)
}

func (f *fake) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return ask[dynamodb.PutItemOutput](ctx, f, in, opts)
}

func (f *fake) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return ask[dynamodb.UpdateItemOutput](ctx, f, in, opts)
}

func (f *fake) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	snapshot := *in // its token changes from try to try
	return ask[dynamodb.TransactWriteItemsOutput](ctx, f, &snapshot, opts)
}

func (f *fake) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return ask[dynamodb.BatchWriteItemOutput](ctx, f, in, opts)
}

// bucket is S3 in memory. fault, if any, comes before everything else.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	order   []string
	fault   func(op, key string) error
	// cut is how many answers break off in the middle.
	cut int
}

func (b *bucket) faulty(opts []func(*s3.Options), op, key string) error {
	var o s3.Options
	for _, set := range opts {
		set(&o)
	}
	if o.Retryer != (aws.NopRetryer{}) {
		return fmt.Errorf("%s of %s: the SDK would repeat it, below the store's own attempts", op, key)
	}
	if b.fault == nil {
		return nil
	}
	return b.fault(op, key)
}

func (b *bucket) PutObject(_ context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.faulty(opts, "put", *in.Key); err != nil {
		return nil, err
	}
	value, err := io.ReadAll(in.Body)
	b.objects[*in.Key] = value
	b.order = append(b.order, *in.Key)
	return &s3.PutObjectOutput{}, err
}

func (b *bucket) GetObject(_ context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.faulty(opts, "get", *in.Key); err != nil {
		return nil, err
	}
	value, ok := b.objects[*in.Key]
	if !ok {
		return nil, &smithy.OperationError{ServiceID: "S3", OperationName: "GetObject", Err: &s3types.NoSuchKey{}}
	}
	body := io.Reader(strings.NewReader(string(value)))
	if b.cut > 0 {
		b.cut--
		body = io.MultiReader(strings.NewReader(string(value[:len(value)/2])), iotest.ErrReader(&timeoutError{}))
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(body)}, nil
}

func (b *bucket) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.faulty(opts, "list", *in.Prefix); err != nil {
		return nil, err
	}
	out := &s3.ListObjectsV2Output{}
	for name := range b.objects {
		if strings.HasPrefix(name, *in.Prefix) {
			out.Contents = append(out.Contents, s3types.Object{Key: &name})
		}
	}
	return out, nil
}

func (b *bucket) DeleteObjects(_ context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.faulty(opts, "delete", ""); err != nil {
		return nil, err
	}
	for _, object := range in.Delete.Objects {
		delete(b.objects, *object.Key)
	}
	return &s3.DeleteObjectsOutput{}, nil
}

// scripted is a store on a fake that answers so.
func scripted(t testing.TB, answers ...answer) (*dynamostore.Store, *fake, *bucket) {
	t.Helper()
	f := &fake{t: t, answers: answers}
	b := &bucket{objects: map[string][]byte{}}
	var mu sync.Mutex
	ids := 0
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: f, Table: "adjourn", Blobs: b, Bucket: "blobs", Now: func() time.Time { return epoch },
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("id-%d", ids)
		},
	})
	require.NoError(t, err)
	return s, f, b
}

func entry(seq int64) journal.Entry {
	return journal.Entry{
		V: journal.Format, Seq: seq, Kind: session.KindStepped, At: epoch, Attempt: session.Attempt{ID: "attempt", N: 1, For: seq},
		Token: "token", Task: 1, Run: 1, Step: seq, RulesAt: 1, Status: session.StatusRunning,
	}
}

func head() journal.Head {
	return journal.Head{Key: key, Status: session.StatusRunning, Agent: "lab", Task: 1, StatusSeq: 1, CreatedAt: epoch, UpdatedAt: epoch}
}

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
}

// storedEntry is an entry as it lies in the table, written by somebody else.
func storedEntry(t testing.TB, e journal.Entry) map[string]types.AttributeValue {
	t.Helper()
	payload, err := journal.Encode(&e)
	require.NoError(t, err)
	return map[string]types.AttributeValue{
		"pk": str("S#acme#s-1"), "sk": str(fmt.Sprintf("E#%010d", e.Seq)), "w": str("somebody"),
		"payload": &types.AttributeValueMemberB{Value: payload},
	}
}

const storedHeadBody = `{"key":{"tenant":"acme","session":"s-1"},"status":"running","agent":"lab","task":1,"version":1,"createdAt":"2026-02-03T04:05:06.123456789Z","updatedAt":"2026-02-03T04:05:06.123456789Z"}`

// storedHead is HEAD as it lies in the table at revision 1, with other attributes.
func storedHead(other map[string]types.AttributeValue) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{
		"pk": str("S#acme#s-1"), "sk": str("HEAD"), "w1": str("somebody"), "rev": num(1), "body": str(storedHeadBody),
	}
	for name, v := range other {
		item[name] = v
	}
	return item
}

func leased(owner string, seq, n int64, until time.Time, write string) map[string]types.AttributeValue {
	return storedHead(map[string]types.AttributeValue{
		"leaseOwner": str(owner), "leaseSeq": num(seq), "leaseN": num(n), "leaseUntil": num(until.UnixNano()), "leaseW": str(write),
	})
}

func hashOf(value []byte) string {
	sum := sha256.Sum256(value)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

var _ store.Store = (*dynamostore.Store)(nil)
