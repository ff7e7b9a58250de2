package sqsqueue_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
)

// overWire returns a queue whose real SDK client speaks to a server that gives the
// n-th attempt, from 1, to answer.
func overWire(t *testing.T, timeout time.Duration, answer func(n int64, w http.ResponseWriter, r *http.Request)) (*sqsqueue.Queue, *atomic.Int64) {
	t.Helper()
	var attempts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else it does not notice that the client is gone
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer(attempts.Add(1), w, r)
	}))
	t.Cleanup(server.Close)
	api := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		Retryer:     retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, time.Millisecond }),
		// The body of no message is looked at here.
		DisableMessageChecksumValidation: true,
	})
	q, err := sqsqueue.New(sqsqueue.Config{SQS: api, URL: server.URL + "/000000000000/steps", AttemptTimeout: timeout})
	require.NoError(t, err)
	return q, &attempts
}

func accept(w http.ResponseWriter) {
	_, _ = io.WriteString(w, `{"MessageId":"m","MD5OfMessageBody":""}`)
}

func throttle(w http.ResponseWriter) {
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}`)
}

const patient = time.Minute // no test waits for it

func TestSend_repeats_a_throttled_attempt(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, patient, func(n int64, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			throttle(w)
			return
		}
		accept(w)
	})
	require.NoError(t, q.Send(t.Context(), wake(1)))
	require.EqualValues(t, 3, attempts.Load())
}

func TestSend_gives_up_when_throttled_again_and_again(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, patient, func(_ int64, w http.ResponseWriter, _ *http.Request) { throttle(w) })
	err := q.Send(t.Context(), wake(1))
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "RequestThrottled")
	require.EqualValues(t, 3, attempts.Load())
}

func TestSend_repeats_an_attempt_that_nobody_answers(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, 50*time.Millisecond, func(n int64, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-r.Context().Done() // a connection that died while the sandbox was frozen
			return
		}
		accept(w)
	})
	require.NoError(t, q.Send(t.Context(), wake(1)))
	require.EqualValues(t, 2, attempts.Load())
}

func TestSend_does_not_wait_for_ever(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, 20*time.Millisecond, func(_ int64, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	err := q.Send(t.Context(), wake(1))
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "no answer within 20ms")
	require.EqualValues(t, 3, attempts.Load())
}

func TestSend_sends_again_when_the_answer_was_lost(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, patient, func(n int64, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			panic(http.ErrAbortHandler) // it was taken, and nobody hears of it
		}
		accept(w)
	})
	require.NoError(t, q.Send(t.Context(), wake(1)))
	require.EqualValues(t, 2, attempts.Load())
}

func TestReceive_may_take_as_long_as_it_waits(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, 200*time.Millisecond, func(_ int64, w http.ResponseWriter, r *http.Request) {
		// A long poll that lasts longer than an attempt of anything else may.
		select {
		case <-time.After(400 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, `{"Messages":[{"MessageId":"m","ReceiptHandle":"r","Body":`+
			`"{\"v\":1,\"tenant\":\"acme\",\"session\":\"s-1\",\"seq\":1,\"kind\":\"step\"}"}]}`)
	})
	got, err := q.Receive(t.Context(), queue.ReceiveParams{Wait: time.Second, Visibility: time.Minute})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, attempts.Load())
}

func TestAcknowledge_of_an_unknown_queue(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, patient, func(_ int64, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`)
	})
	err := q.Acknowledge(t.Context(), queue.Delivery{Wake: wake(1), Receipt: "r"})
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.True(t, strings.Contains(err.Error(), "steps") && strings.Contains(err.Error(), "does not exist"), err)
	require.EqualValues(t, 1, attempts.Load(), "it will not begin to exist")
}
