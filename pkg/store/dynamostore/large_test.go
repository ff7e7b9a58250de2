//go:build aws

package dynamostore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// A tool result of 10 MB goes through the ledger and then the entry.
func TestLargeToolResult(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	started := store.ToolItem(journal.ToolRecord{Call: "c1-0", State: journal.ToolStarted, Attempt: "a", At: epoch}, 0)
	stored, err := f.store.Update(t.Context(), key, started)
	require.NoError(t, err)
	item := stored[0]
	result := llm.ToolResult{CallID: "c1-0", Name: "fetch", Status: llm.ResultSuccess, Output: json.RawMessage(`"` + noise(1, 10<<20) + `"`)}
	item.Tool.State, item.Tool.Result = journal.ToolFinished, &result
	_, err = f.store.Update(t.Context(), key, item)
	require.NoError(t, err)
	e := entry(1)
	e.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{{Kind: llm.PartToolResult, ToolResult: &result}}}}
	_, err = f.store.Commit(t.Context(), store.CommitParams{Key: key, Entry: e, Items: []store.Item{
		store.HeadItem(head(), 0), store.WaitItem(journal.WaitRecord{Wait: session.Wait{ID: "w1-0", Arguments: result.Output}, State: session.WaitOpen}, 0),
	}})
	require.NoError(t, err)
	for got, err := range f.store.Items(t.Context(), key, store.KindTool, "c1-0") {
		require.NoError(t, err)
		require.Equal(t, result, *got.Tool.Result)
		require.EqualValues(t, 2, got.Rev)
	}
	for got, err := range f.store.Entries(t.Context(), key, 0) {
		require.NoError(t, err)
		require.Equal(t, e.Messages, got.Messages)
	}
	page, err := f.store.Find(t.Context(), store.FindParams{Kind: store.FindWaits, Tenant: key.Tenant})
	require.NoError(t, err)
	require.ErrorContains(t, page.Found[0].Unread, "too many for a list")
	for got, err := range f.store.Items(t.Context(), key, store.KindWait, "w1-0") {
		require.NoError(t, err)
		require.Equal(t, result.Output, got.Wait.Wait.Arguments)
	}
	require.Len(t, f.objects(t), 3)
	for _, size := range f.itemSizes(t) {
		require.Less(t, size, 2<<10, "the table holds no more than references")
	}
}

// A session of 1,000 steps, every fourth of which took a picture in.
func TestLongSessionWithPictures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const steps = 1000
	picture := noise(1, 400<<10)
	made := func(seq int64) journal.Entry {
		e := entry(seq)
		text := fmt.Sprintf("step %d", seq)
		if seq%4 == 0 {
			text += picture
		}
		e.Messages = []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{{Kind: llm.PartText, Text: text}}}}
		return e
	}
	for seq := int64(1); seq <= steps; seq++ {
		_, err := f.store.Commit(t.Context(), store.CommitParams{Key: key, Entry: made(seq)})
		require.NoError(t, err)
	}
	next := int64(1)
	for e, err := range f.store.Entries(t.Context(), key, 0) {
		require.NoError(t, err)
		require.Equal(t, made(next).Messages, e.Messages)
		next++
	}
	require.EqualValues(t, steps+1, next)
	require.Len(t, f.objects(t), steps/4)
	for _, size := range f.itemSizes(t) {
		require.Less(t, size, 400<<10)
	}
}

// Deleting leaves the tombstone and the fences in the table and nothing of the
// session in the bucket; a delete that was cut short is finished by the next one.
func TestDeleteLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	neighbour := session.Key{Tenant: key.Tenant, ID: key.ID + "0"}
	for _, k := range []session.Key{key, neighbour} {
		h := head()
		h.Key = k
		_, err := f.store.Commit(t.Context(), store.CommitParams{Key: k, Entry: bigEntry(1, 400<<10), Items: []store.Item{
			store.HeadItem(h, 0), memo("c1-0", 300<<10), memo("c1-1", 10),
		}})
		require.NoError(t, err)
		for seq := int64(2); seq <= 60; seq++ { // more than two batches
			_, err := f.store.Commit(t.Context(), store.CommitParams{Key: k, Entry: entry(seq)})
			require.NoError(t, err)
		}
	}
	requests := 0
	dying := f.open(t, func(cfg *dynamostore.Config) {
		cfg.DynamoDB = &faulty{API: cfg.DynamoDB, after: fine, before: func(any) error {
			if requests++; requests > 6 { // in the middle of it
				return forbidden
			}
			return nil
		}}
	})
	require.ErrorIs(t, dying.Delete(t.Context(), key), store.ErrUnavailable)
	due := func() []store.Found {
		page, err := f.store.Find(t.Context(), store.FindParams{Kind: store.FindDue, Before: time.Now().Add(2 * time.Minute)})
		require.NoError(t, err)
		return page.Found
	}
	require.Len(t, due(), 1, "the sweep finds what was cut short")
	require.Equal(t, key, due()[0].Key)
	require.True(t, due()[0].Item.Head.Deleted)
	for range 2 {
		require.NoError(t, f.store.Delete(t.Context(), key))
		require.Empty(t, due())
	}
	kinds := map[string]int{}
	for sk := range f.itemSizes(t) {
		if strings.HasPrefix(sk, "S#acme#s-1 ") {
			kinds[strings.SplitN(strings.Fields(sk)[1], "#", 2)[0]]++
		}
	}
	require.Equal(t, map[string]int{"HEAD": 1, "E": 61, "TOOL": 2}, kinds, "a tombstone and fences")
	require.Len(t, f.objects(t), 2, "those of the neighbour")
	for _, err := range f.store.Entries(t.Context(), neighbour, 0) {
		require.NoError(t, err)
	}
}

// objects lists what lies in the bucket.
func (f *fixture) objects(t *testing.T) []string {
	t.Helper()
	var all []string
	pages := s3.NewListObjectsV2Paginator(f.blobs, &s3.ListObjectsV2Input{Bucket: &f.bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, object := range page.Contents {
			all = append(all, aws.ToString(object.Key))
		}
	}
	return all
}

// itemSizes lists what lies in the table: "pk sk" and its size.
func (f *fixture) itemSizes(t *testing.T) map[string]int {
	t.Helper()
	sizes := map[string]int{}
	pages := dynamodb.NewScanPaginator(f.dynamo, &dynamodb.ScanInput{TableName: &f.table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			sizes[item["pk"].(*types.AttributeValueMemberS).Value+" "+item["sk"].(*types.AttributeValueMemberS).Value] = dynamostore.ItemSize(item)
		}
	}
	return sizes
}
