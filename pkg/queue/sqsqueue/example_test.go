package sqsqueue_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// The queue of a stack, with the credentials and the region of the environment.
func Example() {
	ctx := context.Background()
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	var q queue.Queue
	q, err = sqsqueue.New(sqsqueue.Config{
		SQS: sqs.NewFromConfig(aws), URL: "https://sqs.eu-central-1.amazonaws.com/123456789012/adjourn-steps",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := session.Key{Tenant: session.DefaultTenant, ID: "s1"}
	fmt.Println(q.Send(ctx, journal.NewWake(key, 1, journal.WakeStep)))
}
