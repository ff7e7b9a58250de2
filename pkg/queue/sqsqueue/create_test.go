//go:build aws

package sqsqueue_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
)

func attributes(t *testing.T, api *sqs.Client, url string) map[string]string {
	t.Helper()
	out, err := api.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	require.NoError(t, err)
	return out.Attributes
}

func TestCreateQueues(t *testing.T) {
	t.Parallel()
	api := client(t)
	queues, made := create(t, api, 0)
	dead := attributes(t, api, made.DeadLettersURL)
	main := attributes(t, api, made.URL)
	require.Equal(t, "360", main["VisibilityTimeout"])
	require.Equal(t, "true", main["SqsManagedSseEnabled"])
	require.Equal(t, "true", dead["SqsManagedSseEnabled"])
	require.Equal(t, "604800", main["MessageRetentionPeriod"])
	require.Equal(t, "1209600", dead["MessageRetentionPeriod"])
	require.JSONEq(t, `{"deadLetterTargetArn":"`+dead["QueueArn"]+`","maxReceiveCount":10}`, main["RedrivePolicy"])
	require.Empty(t, dead["RedrivePolicy"])

	again, err := sqsqueue.CreateQueues(t.Context(), api, queues)
	require.NoError(t, err)
	require.Equal(t, made, again)

	queues.Visibility, queues.MaxReceives = 90*time.Second, 4
	again, err = sqsqueue.CreateQueues(t.Context(), api, queues)
	require.NoError(t, err)
	require.Equal(t, made, again)
	main = attributes(t, api, made.URL)
	require.Equal(t, "90", main["VisibilityTimeout"])
	require.JSONEq(t, `{"deadLetterTargetArn":"`+dead["QueueArn"]+`","maxReceiveCount":4}`, main["RedrivePolicy"])
}

func TestCreateQueues_needs_two_names(t *testing.T) {
	t.Parallel()
	for _, q := range []sqsqueue.Queues{{}, {Name: "a"}, {DeadLetters: "a"}, {Name: "a", DeadLetters: "a"}} {
		_, err := sqsqueue.CreateQueues(t.Context(), client(t), q)
		require.Error(t, err)
	}
}

func TestReceive_removes_what_is_no_wake_for_good(t *testing.T) {
	t.Parallel()
	api := client(t)
	_, made := create(t, api, 3)
	var log bytes.Buffer
	q, err := sqsqueue.New(sqsqueue.Config{SQS: api, URL: made.URL, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	_, err = api.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &made.URL, MessageBody: aws.String("not ours")})
	require.NoError(t, err)
	got, err := q.Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute})
	require.NoError(t, err)
	require.Empty(t, got)
	require.Contains(t, log.String(), "not ours")
	counts := attributes(t, api, made.URL)
	require.Equal(t, "0", counts["ApproximateNumberOfMessages"])
	require.Equal(t, "0", counts["ApproximateNumberOfMessagesNotVisible"])
}
