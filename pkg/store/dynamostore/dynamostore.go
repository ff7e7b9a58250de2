// Package dynamostore stores sessions in a DynamoDB table with an S3 bucket for large values.
//
// A session is one item collection: its entries, HEAD and what else belongs to it
// (docs/design/README.md; schema.go has the attributes). A plain step is one put of
// its entry, conditioned on its absence; a transaction is used only where several
// items move together. Values over 256 KB lie in the bucket, named by their
// content, and were there before the item that refers to them.
//
// Requests are retried here and nowhere else, whatever the client is set to:
// conflicts of transactions, throttling and lost answers, with growing jittered
// pauses, for as long as the caller's context lasts. Every write carries an id of
// its call, so that a refusal that shows this id is known for what it is: the
// success of an earlier try whose answer was lost.
package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/bucket"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

// API is what the store needs of DynamoDB; [dynamodb.Client] has it. The role
// needs the actions of the same names, and for TransactWriteItems no more than
// PutItem and UpdateItem.
type API interface {
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	// BatchWriteItem is used by Delete alone.
	BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
}

// BlobAPI is what the store needs of S3; [s3.Client] has it.
type BlobAPI interface {
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	// ListObjectsV2 and DeleteObjects are used by Delete alone.
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
}

var (
	_ API     = (*dynamodb.Client)(nil)
	_ BlobAPI = (*s3.Client)(nil)
)

// Config wires a store. All fields but the last two are required.
type Config struct {
	DynamoDB API
	// Table is the name of the state table (see [StateSchema]).
	Table string
	Blobs BlobAPI
	// Bucket takes values over 256 KB.
	Bucket string
	Now    func() time.Time
	// NewID returns at least 64 random bits as text.
	NewID func() string

	// Timeout bounds one attempt of a request (3 s); one that moves a large value
	// has a second more for each megabyte.
	Timeout time.Duration
	// Attempts is how often a request is made before the store counts as unavailable (8).
	Attempts int
}

// Store is the store in DynamoDB and S3.
type Store struct {
	cfg    Config
	sender *retry.Sender
	blobs  *bucket.Bucket
}

var _ store.Store = (*Store)(nil)

// New checks the configuration and fills in the defaults. It sends no request: a missing table is
// reported by the first request.
func New(cfg Config) (*Store, error) {
	var missing []error
	need := func(ok bool, name string) {
		if !ok {
			missing = append(missing, fmt.Errorf("dynamostore: %s is required", name))
		}
	}
	need(cfg.DynamoDB != nil, "DynamoDB")
	need(cfg.Table != "", "Table")
	need(cfg.Blobs != nil, "Blobs")
	need(cfg.Bucket != "", "Bucket")
	need(cfg.Now != nil, "Now")
	need(cfg.NewID != nil, "NewID")
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 3 * time.Second
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 8
	}
	sender := retry.New(retry.Config{Table: cfg.Table, Timeout: cfg.Timeout, Attempts: cfg.Attempts, NewID: cfg.NewID})
	return &Store{cfg: cfg, sender: sender, blobs: &bucket.Bucket{API: cfg.Blobs, Name: cfg.Bucket, Sender: sender}}, nil
}

// fail puts operation and key before an error on its way out of the adapter.
func fail(op string, key session.Key, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, key, err)
}

var errDeleted = fmt.Errorf("%w: it was deleted", store.ErrNotFound)
