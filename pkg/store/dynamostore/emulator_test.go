//go:build aws

package dynamostore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
	"github.com/adjourn/adjourn/pkg/store/storetest"
)

// TestStore runs the contract of the port on DynamoDB Local and MiniStack's S3.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return newFixture(t).store })
}

// fixture is a store on tables and a bucket of its own.
type fixture struct {
	store  saboteur
	dynamo *dynamodb.Client
	blobs  *s3.Client
	table  string
	bucket string
}

// newFixture makes a store; change may alter its configuration first.
func newFixture(t testing.TB, change ...func(*dynamostore.Config)) *fixture {
	t.Helper()
	f := &fixture{dynamo: dynamoClient(t), blobs: blobClient(t), table: "t-" + rand.Text(), bucket: "adjourn-" + strings.ToLower(rand.Text())}
	require.NoError(t, dynamostore.CreateTables(t.Context(), f.dynamo, dynamostore.Tables{State: f.table}))
	_, err := f.blobs.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &f.bucket})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := f.dynamo.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &f.table})
		require.NoError(t, err)
	})
	f.store = saboteur{f.open(t, change...), f}
	return f
}

// open makes another store on the same table and bucket, as another process would.
func (f *fixture) open(t testing.TB, change ...func(*dynamostore.Config)) *dynamostore.Store {
	t.Helper()
	cfg := dynamostore.Config{
		DynamoDB: f.dynamo, Table: f.table, Blobs: f.blobs, Bucket: f.bucket, Now: time.Now, NewID: rand.Text,
		// The emulators share two cores with everything else.
		Timeout: 20 * time.Second,
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := dynamostore.New(cfg)
	require.NoError(t, err)
	return s
}

func endpoint(t testing.TB, variable string) *string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Fatalf("%s is not set: run make test-aws, or localstack/emulators go test -tags aws …", variable)
	}
	return &url
}

func awsConfig() aws.Config {
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
}

func dynamoClient(t testing.TB) *dynamodb.Client {
	t.Helper()
	url := endpoint(t, "ADJOURN_TEST_DYNAMODB")
	return dynamodb.NewFromConfig(awsConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = url })
}

func blobClient(t testing.TB) *s3.Client {
	t.Helper()
	url := endpoint(t, "ADJOURN_TEST_AWS")
	return s3.NewFromConfig(awsConfig(), func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = url, true })
}

// saboteur does to a journal what the port cannot.
type saboteur struct {
	*dynamostore.Store
	f *fixture
}

var _ storetest.Saboteur = saboteur{}

func entryKey(key session.Key, seq int64) map[string]types.AttributeValue {
	sk := fmt.Sprintf("E#%010d", seq)
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "S#" + key.Tenant + "#" + key.ID},
		"sk": &types.AttributeValueMemberS{Value: sk},
	}
}

func (s saboteur) RemoveEntry(ctx context.Context, key session.Key, seq int64) error {
	_, err := s.f.dynamo.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &s.f.table, Key: entryKey(key, seq)})
	return err
}

func (s saboteur) SpoilEntry(ctx context.Context, key session.Key, seq int64) error {
	_, err := s.f.dynamo.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.f.table, Key: entryKey(key, seq), UpdateExpression: aws.String("SET payload = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberB{Value: []byte("{}")}},
	})
	return err
}

func (s saboteur) SpoilItem(ctx context.Context, key session.Key, kind store.ItemKind, id string) error {
	at := entryKey(key, 0)
	at["sk"] = &types.AttributeValueMemberS{Value: "WAIT#" + id}
	if kind == store.KindHead {
		at["sk"] = &types.AttributeValueMemberS{Value: "HEAD"}
	}
	_, err := s.f.dynamo.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.f.table, Key: at, UpdateExpression: aws.String("SET body = :b"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":b": &types.AttributeValueMemberS{Value: "{"}},
	})
	return err
}
