package dynamostore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// The store of a stack: a table, and a bucket for what is too large for it.
func Example() {
	ctx := context.Background()
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	var s store.Store
	s, err = dynamostore.New(dynamostore.Config{
		DynamoDB: dynamodb.NewFromConfig(aws), Table: "adjourn-state",
		Blobs: s3.NewFromConfig(aws), Bucket: "adjourn-blobs",
		Now: time.Now, NewID: app.NewID,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := session.Key{Tenant: session.DefaultTenant, ID: "s1"}
	for entry, err := range s.Entries(ctx, key, 0) {
		fmt.Println(entry.Seq, entry.Kind, err)
	}
}
