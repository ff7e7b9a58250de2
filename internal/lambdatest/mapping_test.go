//go:build linux

package lambdatest_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/lambdatest"
)

// memory is a queue whose messages come back after a time.
type memory struct {
	// hidden is how long a message that was received is not received again.
	hidden time.Duration

	mu       sync.Mutex
	messages []*message
	n        int
}

type message struct {
	id, body string
	receives int
	visible  time.Time
}

// How long messages are hidden: a moment, where one has to come back; where none
// may, longer than the slowest machine takes.
const (
	moment = 400 * time.Millisecond
	ages   = time.Minute
)

func (q *memory) send(bodies ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, body := range bodies {
		q.n++
		q.messages = append(q.messages, &message{id: fmt.Sprint("m", q.n), body: body})
	}
}

func (q *memory) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages)
}

func (q *memory) receives(id string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		if m.id == id {
			return m.receives
		}
	}
	return 0
}

func (q *memory) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	for deadline := time.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		q.mu.Lock()
		for _, m := range q.messages {
			if time.Now().Before(m.visible) {
				continue
			}
			m.receives++
			m.visible = time.Now().Add(q.hidden)
			got := types.Message{
				MessageId: &m.id, Body: &m.body, ReceiptHandle: &m.id,
				Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)},
			}
			q.mu.Unlock()
			return &sqs.ReceiveMessageOutput{Messages: []types.Message{got}}, nil
		}
		q.mu.Unlock()
	}
	return &sqs.ReceiveMessageOutput{}, nil
}

func (q *memory) DeleteMessage(_ context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, m := range q.messages {
		if m.id == *in.ReceiptHandle {
			q.messages = append(q.messages[:i], q.messages[i+1:]...)
			break
		}
	}
	return &sqs.DeleteMessageOutput{}, nil
}

func mapped(t *testing.T, hidden time.Duration, cfg lambdatest.MappingConfig) (*memory, *lambdatest.Mapping) {
	t.Helper()
	q := &memory{hidden: hidden}
	cfg.Queue, cfg.URL, cfg.ARN, cfg.Log = q, "http://queue", "arn:aws:sqs:us-east-1:000000000000:queue", t.Logf
	m := lambdatest.Map(t.Context(), cfg)
	t.Cleanup(m.Close)
	return q, m
}

func TestMapping(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{})
	q, m := mapped(t, ages, lambdatest.MappingConfig{Function: f, MaximumConcurrency: 2})
	for range 6 {
		q.send(command{Do: "sleep", For: 50 * time.Millisecond}.String())
	}
	require.Eventually(t, func() bool { return q.len() == 0 }, 30*time.Second, time.Millisecond)
	require.LessOrEqual(t, len(f.Workers()), 2, "no more at once than allowed")
	require.Equal(t, 6, m.Received())
	require.Eventually(t, func() bool { return m.Deleted() == 6 && m.Busy() <= 1 }, 30*time.Second, time.Millisecond)
}

// A function's answer acknowledges a message or gives it back, as AWS documents it.
func TestPartialFailures(t *testing.T) {
	t.Parallel()
	for answer, deleted := range map[string]bool{
		`null`:                       true,
		`{}`:                         true,
		`""`:                         true,
		`{"batchItemFailures":null}`: true,
		`{"batchItemFailures":[]}`:   true,
		`{"batchItemFailures":[{"itemIdentifier":null}]}`: false,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:   false,
		`{"batchItemFailures":[{"itemidentifie":"m1"}]}`:  false,
		`{"batchItemFailures":[{"itemIdentifier":"m1"}]}`: false,
		`{"batchItemFailures":[{"itemIdentifier":"m7"}]}`: false,
		`{"batchItemFailures":7}`:                         false,
		`[]`:                                              false,
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			f := start(t, lambdatest.FunctionConfig{})
			hidden := moment
			if deleted {
				hidden = ages
			}
			q, _ := mapped(t, hidden, lambdatest.MappingConfig{Function: f})
			q.send(command{Do: "answer", Text: answer}.String())
			if deleted {
				require.Eventually(t, func() bool { return q.len() == 0 }, 30*time.Second, time.Millisecond)
				require.Len(t, f.Invocations(), 1)
				return
			}
			require.Eventually(t, func() bool { return q.receives("m1") >= 2 }, 30*time.Second, time.Millisecond)
		})
	}
}

func TestFailingDelivery(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{})
	q, m := mapped(t, moment, lambdatest.MappingConfig{Function: f})
	q.send(command{Do: "exit"}.String(), command{Do: "keep"}.String(), command{Do: "fail"}.String(), command{Do: "echo"}.String())
	require.Eventually(t, func() bool {
		return q.receives("m1") >= 2 && q.receives("m2") >= 2 && q.receives("m3") >= 2 && q.len() == 3
	}, 30*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, m.Deleted(), 1)
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{})
	var mu sync.Mutex
	lost := false
	q, _ := mapped(t, moment, lambdatest.MappingConfig{Function: f, Deliveries: func(types.Message) []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if !lost {
			lost = true
			return nil
		}
		return []time.Duration{0, 30 * time.Millisecond}
	}})
	q.send(command{Do: "echo"}.String())
	require.Eventually(t, func() bool { return q.len() == 0 && len(f.Invocations()) >= 2 }, 30*time.Second, time.Millisecond, "lost once, then delivered twice")
}
