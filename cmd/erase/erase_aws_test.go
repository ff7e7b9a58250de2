//go:build aws

package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

func emulator(t *testing.T, variable string) *string {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Fatalf("%s is not set: run make test-aws", variable)
	}
	return &url
}

// silent answers every deletion in the bucket with an error while it is on.
type silent struct{ on atomic.Bool }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.on.Load() && r.URL.Query().Has("delete") {
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: r,
			Body: io.NopCloser(strings.NewReader("<Error><Code>AccessDenied</Code></Error>")), Header: http.Header{"Content-Type": {"application/xml"}},
		}, nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// What is left of a person in table and bucket are tombstones, also when the
// deletion was cut short between the two.
func TestEraseTable(t *testing.T) {
	t.Parallel()
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	dynamo := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = emulator(t, "ADJOURN_TEST_DYNAMODB") })
	var fault silent
	blobs := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle, o.HTTPClient = emulator(t, "ADJOURN_TEST_AWS"), true, &http.Client{Transport: &fault}
	})
	table, bucket := "t-"+rand.Text(), "adjourn-"+strings.ToLower(rand.Text())
	require.NoError(t, dynamostore.CreateTables(t.Context(), dynamo, dynamostore.Tables{State: table}))
	_, err := blobs.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket})
	require.NoError(t, err)
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: dynamo, Table: table, Blobs: blobs, Bucket: bucket, Now: time.Now, NewID: rand.Text, Timeout: 20 * time.Second, Attempts: 2,
	})
	require.NoError(t, err)

	h := newHouse(t, s)
	const large = "[{call: echo, with: {size: 400000}}, {say: said-by-the-model}]"
	one := h.start("acme", "one", "ana", large, true)
	h.start("acme", "two", "ana", approval, true)
	other := h.start("acme", "other", "bob", large, true)
	kept := h.entries(other)
	require.Len(t, objects(t, blobs, bucket), 2, "a large value of each")
	require.NotEmpty(t, traces(t, dynamo, table, "ana"))

	fault.on.Store(true)
	_, err = h.erase(s, "-yes")
	require.ErrorContains(t, err, "run this again, and it is finished")
	require.Len(t, objects(t, blobs, bucket), 2, "the bucket comes last")
	fault.on.Store(false)
	out, err := h.erase(s, "-yes")
	require.NoError(t, err)
	require.Contains(t, out, "An earlier run was cut short")

	require.Empty(t, h.entries(one))
	require.Equal(t, kept, h.entries(other))
	require.Equal(t, []string{"sessions/acme/other/"}, objects(t, blobs, bucket))
	require.Empty(t, traces(t, dynamo, table, "ana"))
	for _, item := range scan(t, dynamo, table) {
		pk := item["pk"].(*types.AttributeValueMemberS).Value
		if pk == "S#acme#one" || pk == "S#acme#two" {
			require.Contains(t, item, "deleted", "%v", item)
		}
	}
}

func scan(t *testing.T, dynamo *dynamodb.Client, table string) (items []map[string]types.AttributeValue) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(dynamo, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		items = append(items, page.Items...)
	}
	return items
}

// traces are the items of a table in which a name stands.
func traces(t *testing.T, dynamo *dynamodb.Client, table, name string) (found []string) {
	t.Helper()
	for _, item := range scan(t, dynamo, table) {
		for attr, v := range item {
			text := ""
			switch v := v.(type) {
			case *types.AttributeValueMemberS:
				text = v.Value
			case *types.AttributeValueMemberB:
				text = string(v.Value)
			}
			if text == name || strings.Contains(text, fmt.Sprintf("%q", name)) {
				found = append(found, attr)
			}
		}
	}
	return found
}

// objects are the prefixes, of sessions, of what lies in a bucket.
func objects(t *testing.T, blobs *s3.Client, bucket string) (prefixes []string) {
	t.Helper()
	page, err := blobs.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	require.NoError(t, err)
	for _, o := range page.Contents {
		prefixes = append(prefixes, (*o.Key)[:strings.LastIndex(*o.Key, "/")+1])
	}
	return prefixes
}
