//go:build aws

package runtime_test

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// inBubble says that a world is opened inside a bubble of synctest, where no
// connection to an emulator can be used.
func inBubble() bool { return time.Now().Year() == 2000 }

// openStore is the store of a world: a fresh table of DynamoDB Local. The queue
// stays the embedded one, and so does the store of a world in a bubble.
func openStore(t testing.TB, db *sqlite.DB) store.Store {
	t.Helper()
	if inBubble() {
		return db.Store()
	}
	api, blobs := emulators(t)
	table, bucket := "r-"+rand.Text(), "adjourn-"+strings.ToLower(rand.Text())
	require.NoError(t, dynamostore.CreateTables(context.Background(), api, dynamostore.Tables{State: table}))
	_, err := blobs.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &bucket})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := api.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
		require.NoError(t, err)
	})
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: api, Table: table, Blobs: blobs, Bucket: bucket, Now: time.Now, NewID: rand.Text, Timeout: 20 * time.Second,
	})
	require.NoError(t, err)
	return besideEmbedded{s, db.Store()}
}

// besideEmbedded lets a world flush its queue, which lies in the embedded engine.
type besideEmbedded struct {
	store.Store
	embedded store.Store
}

func (s besideEmbedded) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	if key.Tenant == flushTenant {
		return s.embedded.Update(ctx, key, items...)
	}
	return s.Store.Update(ctx, key, items...)
}

var emulators = func() func(t testing.TB) (*dynamodb.Client, *s3.Client) {
	var once sync.Once
	var api *dynamodb.Client
	var blobs *s3.Client
	return func(t testing.TB) (*dynamodb.Client, *s3.Client) {
		t.Helper()
		dynamo, services := os.Getenv("ADJOURN_TEST_DYNAMODB"), os.Getenv("ADJOURN_TEST_AWS")
		if dynamo == "" || services == "" {
			t.Fatal("ADJOURN_TEST_DYNAMODB or ADJOURN_TEST_AWS is not set: run make test-aws, or localstack/emulators go test -tags aws …")
		}
		once.Do(func() {
			cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
			api = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &dynamo })
			blobs = s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = &services, true })
		})
		return api, blobs
	}
}()
