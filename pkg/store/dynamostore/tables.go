package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/adjourn/adjourn/pkg/store"
)

// Tables names the two tables; Live may be empty, then it is not made.
type Tables struct{ State, Live string }

// TablesAPI is what [CreateTables] needs of DynamoDB; [dynamodb.Client] has it.
type TablesAPI interface {
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

var _ TablesAPI = (*dynamodb.Client)(nil)

// creationPause is how long to wait before a table that is being made is looked at again.
const creationPause = 200 * time.Millisecond

// CreateTables makes the tables that are not there and returns when all can be
// used, or ctx ends. It may be called any number of times, by several at once. A
// table of that name with another layout is [store.ErrNotOurs]. It is for local
// use and tests: in an account the template makes the tables, with backups.
func CreateTables(ctx context.Context, api TablesAPI, t Tables) error {
	if t.State == "" {
		return errors.New("create tables: the state table has no name")
	}
	for _, table := range []struct {
		name   string
		schema Schema
	}{{t.State, StateSchema()}, {t.Live, LiveSchema()}} {
		if table.name == "" {
			continue
		}
		if err := createTable(ctx, api, table.name, table.schema); err != nil {
			return fmt.Errorf("create table %q: %w", table.name, err)
		}
	}
	return nil
}

func createTable(ctx context.Context, api TablesAPI, name string, schema Schema) error {
	_, err := api.CreateTable(ctx, creation(name, schema))
	if inUse := (*types.ResourceInUseException)(nil); err != nil && !errors.As(err, &inUse) {
		return err
	}
	if err := waitActive(ctx, api, name, schema); err != nil {
		return err
	}
	return enableTTL(ctx, api, name, schema.TTL)
}

func creation(name string, schema Schema) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema(schema.Partition, schema.Sort),
	}
	keys := []string{schema.Partition, schema.Sort}
	for _, index := range schema.Indexes {
		keys = append(keys, index.Partition, index.Sort)
		projection := &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
		if len(index.Include) > 0 {
			projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.Include}
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.Name), KeySchema: keySchema(index.Partition, index.Sort), Projection: projection,
		})
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) { // indexes may share one
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(key), AttributeType: types.ScalarAttributeTypeS,
		})
	}
	return in
}

func keySchema(partition, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(partition), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

// waitActive returns when the table and its indexes can be used.
func waitActive(ctx context.Context, api TablesAPI, name string, schema Schema) error {
	for {
		out, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return err
		}
		if err := sameLayout(out.Table, schema); err != nil {
			return err
		}
		ready := out.Table.TableStatus == types.TableStatusActive
		for _, index := range out.Table.GlobalSecondaryIndexes {
			ready = ready && index.IndexStatus == types.IndexStatusActive
		}
		if ready {
			return nil
		}
		timer := time.NewTimer(creationPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// sameLayout refuses a table that another program made, or that was made for another version.
func sameLayout(table *types.TableDescription, schema Schema) error {
	if !sameKeys(table.KeySchema, schema.Partition, schema.Sort) {
		return fmt.Errorf("%w: it exists with another key: choose another name", store.ErrNotOurs)
	}
	for _, want := range schema.Indexes {
		found := false
		for _, index := range table.GlobalSecondaryIndexes {
			found = found || aws.ToString(index.IndexName) == want.Name && sameKeys(index.KeySchema, want.Partition, want.Sort)
		}
		if !found {
			return fmt.Errorf("%w: it exists without the index %q on %s and %s: choose another name", store.ErrNotOurs, want.Name, want.Partition, want.Sort)
		}
	}
	return nil
}

func sameKeys(keys []types.KeySchemaElement, partition, sort string) bool {
	return len(keys) == 2 && aws.ToString(keys[0].AttributeName) == partition && aws.ToString(keys[1].AttributeName) == sort
}

func enableTTL(ctx context.Context, api TablesAPI, name, attr string) error {
	enabled := func() bool {
		out, err := api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
		if err != nil || out.TimeToLiveDescription == nil {
			return false
		}
		status := out.TimeToLiveDescription.TimeToLiveStatus
		return status == types.TimeToLiveStatusEnabled || status == types.TimeToLiveStatusEnabling
	}
	if enabled() {
		return nil
	}
	_, err := api.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attr, Enabled: aws.Bool(true)},
	})
	if err != nil && !enabled() { // another may just have done it
		return fmt.Errorf("time to live: %w", err)
	}
	return nil
}
