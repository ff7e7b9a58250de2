//go:build aws

package runtime_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
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

// overEmulator says that each call of a store takes milliseconds.
const overEmulator = true

// watchEvery is how often a worker looks for signals, as the functions have it.
const watchEvery = 500 * time.Millisecond

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
	cfg := openTable(t)
	s, err := dynamostore.New(cfg)
	require.NoError(t, err)
	return besideEmbedded{s, db.Store(), cfg}
}

// openTable makes a table of its own, beside a bucket of its own, until the test ends.
func openTable(t testing.TB) dynamostore.Config {
	t.Helper()
	api, blobs := emulators(t)
	table, bucket := "r-"+rand.Text(), "adjourn-"+strings.ToLower(rand.Text())
	require.NoError(t, dynamostore.CreateTables(context.Background(), api, dynamostore.Tables{State: table}))
	_, err := blobs.CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &bucket})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := api.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
		require.NoError(t, err)
	})
	return dynamostore.Config{
		DynamoDB: api, Table: table, Blobs: blobs, Bucket: bucket, Now: time.Now, NewID: rand.Text, Timeout: 20 * time.Second,
	}
}

// overLine is the same store through clients whose requests and bodies are counted.
func overLine(t testing.TB, s store.Store, seen *traffic) store.Store {
	t.Helper()
	beside, ok := s.(besideEmbedded)
	require.True(t, ok, "the store of a world that is in no bubble")
	client := &http.Client{Transport: countingTransport{seen}}
	cfg := beside.cfg
	api, blobs := emulators(t)
	cfg.DynamoDB = dynamodb.New(api.Options(), func(o *dynamodb.Options) { o.HTTPClient = client })
	cfg.Blobs = s3.New(blobs.Options(), func(o *s3.Options) { o.HTTPClient = client })
	counted, err := dynamostore.New(cfg)
	require.NoError(t, err)
	return counted
}

type countingTransport struct{ seen *traffic }

func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.seen.requests.Add(1)
	c.seen.bytes.Add(max(r.ContentLength, 0))
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		res.Body = countingBody{res.Body, c.seen}
	}
	return res, err
}

type countingBody struct {
	io.ReadCloser
	seen *traffic
}

func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.seen.bytes.Add(int64(n))
	return n, err
}

// besideEmbedded lets a world flush its queue, which lies in the embedded engine.
type besideEmbedded struct {
	store.Store
	embedded store.Store
	cfg      dynamostore.Config
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
