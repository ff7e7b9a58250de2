//go:build aws

package sqsqueue_test

import (
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue/queuetest"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
)

// plainBodies keeps net/http from closing a connection under an answer, as serverless
// does for the functions: the SDK would send that message twice, and tests count.
type plainBodies struct{ *http.Client }

func (c plainBodies) Do(r *http.Request) (*http.Response, error) {
	r.Body = struct{ io.ReadCloser }{r.Body}
	return c.Client.Do(r)
}

// client speaks to MiniStack.
func client(t testing.TB) *sqs.Client {
	t.Helper()
	address := os.Getenv("ADJOURN_TEST_AWS")
	if address == "" {
		t.Fatal("ADJOURN_TEST_AWS is not set: run make test-aws, or localstack/emulators go test -tags aws …")
	}
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(address),
		HTTPClient:  plainBodies{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

// create makes queues of a test's own.
func create(t testing.TB, api *sqs.Client, maxReceives int) (sqsqueue.Queues, sqsqueue.Created) {
	t.Helper()
	name := "t-" + rand.Text()
	queues := sqsqueue.Queues{Name: name, DeadLetters: name + "-dead", MaxReceives: maxReceives}
	made, err := sqsqueue.CreateQueues(t.Context(), api, queues)
	require.NoError(t, err)
	return queues, made
}

// open returns a queue that is patient: a message whose answer is late on a busy
// machine would be sent twice, and tests count.
func open(t testing.TB, api sqsqueue.API, url string) *sqsqueue.Queue {
	t.Helper()
	q, err := sqsqueue.New(sqsqueue.Config{SQS: api, URL: url, AttemptTimeout: time.Minute})
	require.NoError(t, err)
	return q
}

func TestQueue(t *testing.T) {
	t.Parallel()
	api := client(t)
	queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
		_, made := create(t, api, 3)
		return queuetest.Fixture{
			Queue: open(t, api, made.URL), DeadLetters: open(t, api, made.DeadLettersURL), MaxReceives: 3,
			Second: time.Second, // SQS knows no shorter one
		}
	})
}
