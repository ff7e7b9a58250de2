//go:build aws

package dynamostore_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

func TestCreateTables(t *testing.T) {
	t.Parallel()
	client := dynamoClient(t)
	names := dynamostore.Tables{State: "state-" + rand.Text(), Live: "live-" + rand.Text()}
	var all sync.WaitGroup
	for range 4 { // at once
		all.Go(func() { require.NoError(t, dynamostore.CreateTables(t.Context(), client, names)) })
	}
	all.Wait()
	require.NoError(t, dynamostore.CreateTables(t.Context(), client, names), "and again")
	for name, schema := range map[string]dynamostore.Schema{names.State: dynamostore.StateSchema(), names.Live: dynamostore.LiveSchema()} {
		t.Cleanup(func() {
			_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
			require.NoError(t, err)
		})
		out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		require.NoError(t, err)
		require.Equal(t, types.TableStatusActive, out.Table.TableStatus)
		require.Len(t, out.Table.GlobalSecondaryIndexes, len(schema.Indexes))
		require.Equal(t, types.BillingModePayPerRequest, out.Table.BillingModeSummary.BillingMode)
		ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		require.NoError(t, err)
		require.Equal(t, schema.TTL, *ttl.TimeToLiveDescription.AttributeName)
		require.Equal(t, types.TimeToLiveStatusEnabled, ttl.TimeToLiveDescription.TimeToLiveStatus)
	}
	err := dynamostore.CreateTables(t.Context(), client, dynamostore.Tables{State: names.Live})
	require.ErrorIs(t, err, store.ErrNotOurs)
	require.ErrorContains(t, err, names.Live)
	require.Error(t, dynamostore.CreateTables(t.Context(), client, dynamostore.Tables{}))
}

func TestMissingTable(t *testing.T) {
	t.Parallel()
	s := newFixture(t).open(t, func(cfg *dynamostore.Config) { cfg.Table = "nowhere" })
	err := plainCommit(t.Context(), s)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, `table "nowhere"`)
}
