package sqsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueuesAPI is what [CreateQueues] calls of [sqs.Client].
type QueuesAPI interface {
	CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, options ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, options ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, options ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	SetQueueAttributes(ctx context.Context, in *sqs.SetQueueAttributesInput, options ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
}

// What the queues of a bundle are like, in template.yaml as well.
const (
	// MaxReceives is how often a message is received before it goes to the dead letters.
	// Deliveries that were kept count too, so it is larger than the number of claims after which
	// a task fails.
	MaxReceives = 10
	// Retention of messages: the sweep sends anew what is lost after that.
	Retention = 7 * 24 * time.Hour
	// DeadRetention of dead letters, the longest SQS has. They bring the age they had
	// in their queue, so it is more than Retention.
	DeadRetention = 14 * 24 * time.Hour
)

// Queues says which queues to create. Name and DeadLetters are required.
type Queues struct {
	Name, DeadLetters string
	// Visibility a receipt has that asks for none, as Lambda's do (360 s): the
	// step function's timeout and 60 s.
	Visibility time.Duration
	// MaxReceives of a message; 0 means [MaxReceives].
	MaxReceives int
}

// Created are the addresses of the queues.
type Created struct{ URL, DeadLettersURL string }

// CreateQueues creates a standard queue with its dead letters, both encrypted by SQS, or changes
// existing queues of that name accordingly. On AWS the template does it; this is for tests and
// for a local AWS.
func CreateQueues(ctx context.Context, api QueuesAPI, q Queues) (Created, error) {
	if q.Name == "" || q.DeadLetters == "" || q.Name == q.DeadLetters {
		return Created{}, fmt.Errorf("create queues %q and %q: two names are required", q.Name, q.DeadLetters)
	}
	if q.Visibility == 0 {
		q.Visibility = 360 * time.Second
	}
	if q.MaxReceives == 0 {
		q.MaxReceives = MaxReceives
	}
	attributes := func(retention time.Duration, more map[string]string) map[string]string {
		all := map[string]string{
			string(types.QueueAttributeNameMessageRetentionPeriod): strconv.FormatInt(int64(retention/time.Second), 10),
			string(types.QueueAttributeNameSqsManagedSseEnabled):   "true",
		}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	var made Created
	var err error
	if made.DeadLettersURL, err = createQueue(ctx, api, q.DeadLetters, attributes(DeadRetention, nil)); err != nil {
		return Created{}, err
	}
	dead, err := api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &made.DeadLettersURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return Created{}, fmt.Errorf("create queue %s: %w", q.DeadLetters, err)
	}
	redrive, err := json.Marshal(map[string]any{
		"deadLetterTargetArn": dead.Attributes[string(types.QueueAttributeNameQueueArn)], "maxReceiveCount": q.MaxReceives,
	})
	if err != nil {
		return Created{}, err
	}
	made.URL, err = createQueue(ctx, api, q.Name, attributes(Retention, map[string]string{
		string(types.QueueAttributeNameVisibilityTimeout): strconv.Itoa(int(seconds(q.Visibility))),
		string(types.QueueAttributeNameRedrivePolicy):     string(redrive),
	}))
	return made, err
}

// createQueue returns the address of the queue of that name. SQS refuses to create
// one that is there with other attributes, so those are set then.
func createQueue(ctx context.Context, api QueuesAPI, name string, attributes map[string]string) (string, error) {
	made, err := api.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err == nil {
		return aws.ToString(made.QueueUrl), nil
	}
	var exists *types.QueueNameExists
	if !errors.As(err, &exists) {
		return "", fmt.Errorf("create queue %s: %w", name, err)
	}
	there, err := api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return "", fmt.Errorf("create queue %s: it exists: %w", name, err)
	}
	if _, err := api.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: there.QueueUrl, Attributes: attributes}); err != nil {
		return "", fmt.Errorf("create queue %s: it exists with other attributes: %w", name, err)
	}
	return aws.ToString(there.QueueUrl), nil
}
