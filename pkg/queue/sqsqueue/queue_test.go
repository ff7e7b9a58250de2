package sqsqueue_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// fake is an SQS that remembers what it was asked and answers what a test says.
type fake struct {
	mu       sync.Mutex
	sent     []*sqs.SendMessageInput
	received []*sqs.ReceiveMessageInput
	deleted  []string
	changed  []*sqs.ChangeMessageVisibilityInput

	// sendFails, deleteFails and changeFails are the errors of those calls.
	sendFails, deleteFails, changeFails error
	// receive answers the n-th poll, from 0; without it there is never a message.
	receive func(n int, in *sqs.ReceiveMessageInput) ([]types.Message, error)
}

func (f *fake) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, in)
	return &sqs.SendMessageOutput{}, f.sendFails
}

func (f *fake) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	f.mu.Lock()
	f.received = append(f.received, in)
	n := len(f.received) - 1
	f.mu.Unlock()
	if f.receive == nil {
		time.Sleep(time.Duration(in.WaitTimeSeconds) * time.Second) // in synctest's time
		return &sqs.ReceiveMessageOutput{}, nil
	}
	messages, err := f.receive(n, in)
	return &sqs.ReceiveMessageOutput{Messages: messages}, err
}

func (f *fake) DeleteMessage(_ context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted = append(f.deleted, aws.ToString(in.ReceiptHandle))
	return &sqs.DeleteMessageOutput{}, f.deleteFails
}

func (f *fake) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = append(f.changed, in)
	return &sqs.ChangeMessageVisibilityOutput{}, f.changeFails
}

var (
	errThrottled = &types.RequestThrottled{Message: aws.String("slow down")}
	errAsked     = errors.New("the test wants it so")
)

const url = "https://sqs.eu-west-1.amazonaws.com/123456789012/adjourn-steps"

func newQueue(t *testing.T, api sqsqueue.API) *sqsqueue.Queue {
	t.Helper()
	q, err := sqsqueue.New(sqsqueue.Config{SQS: api, URL: url})
	require.NoError(t, err)
	return q
}

func wake(seq int64) journal.Wake {
	return journal.NewWake(session.Key{Tenant: "acme", ID: "s-1"}, seq, journal.WakeStep)
}

func message(t *testing.T, receipt string, w journal.Wake, attributes map[string]string) types.Message {
	t.Helper()
	body, err := json.Marshal(w)
	require.NoError(t, err)
	return types.Message{MessageId: aws.String("m-" + receipt), ReceiptHandle: &receipt, Body: aws.String(string(body)), Attributes: attributes}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]sqsqueue.Config{
		"no client":        {URL: url},
		"no address":       {SQS: &fake{}},
		"negative timeout": {SQS: &fake{}, URL: url, AttemptTimeout: -1},
	} {
		_, err := sqsqueue.New(cfg)
		require.Error(t, err, name)
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	f := &fake{}
	q := newQueue(t, f)
	delays := map[time.Duration]int32{
		0: 0, -time.Second: 0, time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, 15*time.Minute - 1: 900, 15 * time.Minute: 900,
	}
	for delay, seconds := range delays {
		f.sent = nil
		w := wake(7)
		w.Delay = delay
		require.NoError(t, q.Send(t.Context(), w))
		require.Len(t, f.sent, 1)
		require.Equal(t, seconds, f.sent[0].DelaySeconds, delay)
		require.Equal(t, url, *f.sent[0].QueueUrl)
		require.Equal(t, "acme", *f.sent[0].MessageGroupId, "fair queues share out by tenant")
		require.JSONEq(t, `{"v":1,"tenant":"acme","session":"s-1","seq":7,"kind":"step"}`, *f.sent[0].MessageBody)
		require.Nil(t, f.sent[0].MessageDeduplicationId)
	}
}

func TestSend_leaves_delays_over_15_minutes_to_the_sweep(t *testing.T) {
	t.Parallel()
	f := &fake{}
	long := wake(1)
	long.Delay = 15*time.Minute + 1
	require.NoError(t, newQueue(t, f).Send(t.Context(), long, wake(2)))
	require.Len(t, f.sent, 1)
	require.Contains(t, *f.sent[0].MessageBody, `"seq":2`)
}

func TestSend_stops_at_the_first_that_cannot_be_sent(t *testing.T) {
	t.Parallel()
	f := &fake{sendFails: errThrottled}
	err := newQueue(t, f).Send(t.Context(), wake(3), wake(4))
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorIs(t, err, errThrottled)
	require.ErrorContains(t, err, "send wake for entry 3 of session acme/s-1: queue unavailable: adjourn-steps: ")
	require.Len(t, f.sent, 1)
}

func TestSend_refuses_what_points_nowhere(t *testing.T) {
	t.Parallel()
	f := &fake{}
	require.Error(t, newQueue(t, f).Send(t.Context(), journal.NewWake(session.Key{Tenant: "a b", ID: "s"}, 1, journal.WakeStep)))
	require.Empty(t, f.sent)
}

func TestSend_tells_why_its_context_ended(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errAsked)
	err := newQueue(t, &fake{sendFails: context.Canceled}).Send(ctx, wake(1))
	require.ErrorIs(t, err, errAsked)
	require.NotErrorIs(t, err, queue.ErrUnavailable)
}

func TestPostpone(t *testing.T) {
	t.Parallel()
	f := &fake{}
	q := newQueue(t, f)
	for delay, seconds := range map[time.Duration]int32{
		0: 0, -time.Minute: 0, time.Nanosecond: 1, time.Second: 1, 20*time.Second + 1: 21,
		// SQS counts its 12 hours from the receipt.
		12 * time.Hour: 42000, 1000 * time.Hour: 42000,
	} {
		f.changed = nil
		require.NoError(t, q.Postpone(t.Context(), queue.Delivery{Receipt: "r"}, delay))
		require.Len(t, f.changed, 1)
		require.Equal(t, seconds, f.changed[0].VisibilityTimeout, delay)
		require.Equal(t, "r", *f.changed[0].ReceiptHandle)
	}
}

func TestReceipts_that_are_over_are_no_error(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"not in flight": &types.MessageNotInflight{},
		"invalid":       &types.ReceiptHandleIsInvalid{},
		"gone":          &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Value AQ for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."},
	} {
		q := newQueue(t, &fake{changeFails: err, deleteFails: err})
		require.NoError(t, q.Postpone(t.Context(), queue.Delivery{}, 0), name)
		require.NoError(t, q.Acknowledge(t.Context(), queue.Delivery{}), name)
		f := &fake{deleteFails: err}
		require.NoError(t, newQueue(t, f).Acknowledge(t.Context(), queue.Delivery{Receipt: "r1"}, queue.Delivery{Receipt: "r2"}), name)
		require.Equal(t, []string{"r1", "r2"}, f.deleted, "one that is over keeps no other")
	}
	other := &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"}
	q := newQueue(t, &fake{changeFails: other, deleteFails: errThrottled})
	err := q.Postpone(t.Context(), queue.Delivery{Wake: wake(5)}, 0)
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "postpone wake for entry 5 of session acme/s-1")
	err = q.Acknowledge(t.Context(), queue.Delivery{Wake: wake(6)})
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "acknowledge wake for entry 6 of session acme/s-1")
}

func TestReceive(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 6, 0, 0, 125e6, time.UTC)
	f := &fake{receive: func(int, *sqs.ReceiveMessageInput) ([]types.Message, error) {
		return []types.Message{
			message(t, "r1", wake(1), map[string]string{
				"ApproximateReceiveCount": "4", "SentTimestamp": strconv.FormatInt(at.UnixMilli(), 10),
			}),
			message(t, "r2", wake(2), nil),
		}, nil
	}}
	got, err := newQueue(t, f).Receive(t.Context(), queue.ReceiveParams{Max: 64, Wait: 1500 * time.Millisecond, Visibility: 61*time.Second - 1})
	require.NoError(t, err)
	require.Equal(t, []queue.Delivery{
		{Wake: wake(1), Message: "m-r1", Receipt: "r1", Receives: 4, SentAt: at},
		{Wake: wake(2), Message: "m-r2", Receipt: "r2", Receives: 1},
	}, got)
	require.Len(t, f.received, 1)
	in := f.received[0]
	require.EqualValues(t, 10, in.MaxNumberOfMessages)
	require.EqualValues(t, 2, in.WaitTimeSeconds)
	require.EqualValues(t, 61, in.VisibilityTimeout)
}

func TestReceive_asks_for_no_more_than_it_may_return(t *testing.T) {
	t.Parallel()
	for most, asked := range map[int]int32{0: 1, 1: 1, 5: 5, 10: 10, 11: 10, 64: 10} {
		f := &fake{}
		_, err := newQueue(t, f).Receive(t.Context(), queue.ReceiveParams{Max: most, Visibility: 20 * time.Hour})
		require.NoError(t, err)
		require.Len(t, f.received, 1, "it may not wait")
		require.Equal(t, asked, f.received[0].MaxNumberOfMessages, most)
		require.EqualValues(t, 42000, f.received[0].VisibilityTimeout, "SQS hides nothing for longer than 12 hours")
	}
}

func TestReceive_polls_for_as_long_as_it_may_wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		got, err := newQueue(t, f).Receive(t.Context(), queue.ReceiveParams{Wait: 50 * time.Second, Visibility: time.Hour})
		require.NoError(t, err)
		require.Empty(t, got)
		var waits []int32
		for _, in := range f.received {
			waits = append(waits, in.WaitTimeSeconds)
		}
		require.Equal(t, []int32{20, 20, 10}, waits)
	})
}

func TestReceive_removes_what_is_no_wake_and_says_so(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := &fake{}
	f.receive = func(n int, _ *sqs.ReceiveMessageInput) ([]types.Message, error) {
		if n == 0 {
			return []types.Message{
				{MessageId: aws.String("odd"), ReceiptHandle: aws.String("r1"), Body: aws.String(`{"hello":"world"}`)},
				{MessageId: aws.String("big"), ReceiptHandle: aws.String("r2"), Body: aws.String(strings.Repeat("z", 5000))},
			}, nil
		}
		return []types.Message{message(t, "r3", wake(1), nil)}, nil
	}
	q, err := sqsqueue.New(sqsqueue.Config{SQS: f, URL: url, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	got, err := q.Receive(t.Context(), queue.ReceiveParams{Max: 5, Wait: time.Minute, Visibility: time.Minute})
	require.NoError(t, err)
	require.Len(t, got, 1, "it looks on for the rest of its wait")
	require.Equal(t, "r3", got[0].Receipt)
	require.Equal(t, []string{"r1", "r2"}, f.deleted)
	require.Contains(t, log.String(), `{\"hello\":\"world\"}`)
	require.Contains(t, log.String(), "message=odd")
	require.NotContains(t, log.String(), strings.Repeat("z", 1025))
}

func TestReceive_keeps_a_wake_of_a_newer_version(t *testing.T) {
	t.Parallel()
	f := &fake{receive: func(int, *sqs.ReceiveMessageInput) ([]types.Message, error) {
		return []types.Message{{ReceiptHandle: aws.String("r"), Body: aws.String(`{"v":2,"tenant":"acme","session":"s1","kind":"later"}`)}}, nil
	}}
	got, err := newQueue(t, f).Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 2, got[0].Wake.V)
	require.Empty(t, f.deleted)
}

func TestReceive_that_is_abandoned_hands_back_what_comes_later(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{receive: func(int, *sqs.ReceiveMessageInput) ([]types.Message, error) {
			time.Sleep(10 * time.Second)
			return []types.Message{message(t, "late", wake(1), nil)}, nil
		}}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errAsked) })
		start := time.Now()
		_, err := newQueue(t, f).Receive(ctx, queue.ReceiveParams{Wait: 20 * time.Second, Visibility: time.Hour})
		require.ErrorIs(t, err, errAsked)
		require.Equal(t, time.Second, time.Since(start))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, f.changed, 1)
		require.Equal(t, "late", *f.changed[0].ReceiptHandle)
		require.Zero(t, f.changed[0].VisibilityTimeout)
	})
}

func TestReceive_does_not_ask_once_its_context_has_ended(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errAsked)
	f := &fake{}
	_, err := newQueue(t, f).Receive(ctx, queue.ReceiveParams{Visibility: time.Hour})
	require.ErrorIs(t, err, errAsked)
	require.Empty(t, f.received)
}

func TestReceive_says_when_the_queue_is_unavailable(t *testing.T) {
	t.Parallel()
	f := &fake{receive: func(int, *sqs.ReceiveMessageInput) ([]types.Message, error) { return nil, errThrottled }}
	_, err := newQueue(t, f).Receive(t.Context(), queue.ReceiveParams{Visibility: time.Hour})
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "receive: queue unavailable: adjourn-steps: RequestThrottled: slow down")
}
