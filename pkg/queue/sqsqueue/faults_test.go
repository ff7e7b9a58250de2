package sqsqueue_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
func overWire(t *testing.T, answer func(n int64, w http.ResponseWriter, r *http.Request)) (*sqsqueue.Queue, *atomic.Int64) {
	t.Helper()
	var attempts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else it does not notice that the client is gone
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer(attempts.Add(1), w, r)
	}))
	t.Cleanup(server.Close)
	return through(t, server.URL, http.DefaultClient), &attempts
}

// through returns a queue whose real SDK client sends its requests through another one.
func through(t *testing.T, address string, by sqs.HTTPClient) *sqsqueue.Queue {
	t.Helper()
	api := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(address), HTTPClient: by,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		Retryer:     retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, time.Millisecond }),
		// The body of no message is looked at here.
		DisableMessageChecksumValidation: true,
	})
	q, err := sqsqueue.New(sqsqueue.Config{SQS: api, URL: address + "/000000000000/steps", AttemptTimeout: attempt})
	require.NoError(t, err)
	return q
}

// attempt is how long one may take. No test waits for it: those in which it passes
// have a clock of their own.
const attempt = time.Minute

// slow answers each attempt with a body when its time has come; 0 is never. It is
// used in synctest's time, where no wire can be.
type slow struct {
	body  string
	after []time.Duration
	asked int
}

func (s *slow) Do(r *http.Request) (*http.Response, error) {
	after := s.after[s.asked]
	s.asked++
	var answered <-chan time.Time
	if after > 0 {
		answered = time.After(after)
	}
	select {
	case <-answered:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

const accepted = `{"MessageId":"m","MD5OfMessageBody":""}`

func accept(w http.ResponseWriter) { _, _ = io.WriteString(w, accepted) }

func throttle(w http.ResponseWriter) {
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}`)
}

func TestSend_repeats_a_throttled_attempt(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
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
	q, attempts := overWire(t, func(_ int64, w http.ResponseWriter, _ *http.Request) { throttle(w) })
	err := q.Send(t.Context(), wake(1))
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "RequestThrottled")
	require.EqualValues(t, 3, attempts.Load())
}

func TestSend_repeats_an_attempt_that_nobody_answers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire := &slow{body: accepted, after: []time.Duration{0, time.Millisecond}} // a connection that died while the sandbox was frozen
		began := time.Now()
		require.NoError(t, through(t, url, wire).Send(t.Context(), wake(1)))
		require.Equal(t, 2, wire.asked)
		require.InDelta(t, attempt.Seconds(), time.Since(began).Seconds(), 1)
	})
}

func TestSend_does_not_wait_for_ever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wire := &slow{after: []time.Duration{0, 0, 0}}
		err := through(t, url, wire).Send(t.Context(), wake(1))
		require.ErrorIs(t, err, queue.ErrUnavailable)
		require.ErrorContains(t, err, "no answer within 1m0s")
		require.Equal(t, 3, wire.asked)
	})
}

func TestSend_sends_again_when_the_answer_was_lost(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
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
	synctest.Test(t, func(t *testing.T) {
		// A long poll that lasts longer than an attempt of anything else may.
		wire := &slow{after: []time.Duration{attempt + 9*time.Second}, body: `{"Messages":[{"MessageId":"m","ReceiptHandle":"r","Body":` +
			`"{\"v\":1,\"tenant\":\"acme\",\"session\":\"s-1\",\"seq\":1,\"kind\":\"step\"}"}]}`}
		got, err := through(t, url, wire).Receive(t.Context(), queue.ReceiveParams{Wait: 10 * time.Second, Visibility: time.Minute})
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, 1, wire.asked)
	})
}

func TestAcknowledge_of_an_unknown_queue(t *testing.T) {
	t.Parallel()
	q, attempts := overWire(t, func(_ int64, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`)
	})
	err := q.Acknowledge(t.Context(), queue.Delivery{Wake: wake(1), Receipt: "r"})
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.True(t, strings.Contains(err.Error(), "steps") && strings.Contains(err.Error(), "does not exist"), err)
	require.EqualValues(t, 1, attempts.Load(), "it will not begin to exist")
}
