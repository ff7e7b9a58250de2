//go:build aws

package sqsqueue_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// ledger is a queue that counts, for each wake, the deliveries of other wakes
// between its sending and its first receipt.
type ledger struct {
	*sqsqueue.Queue
	mu         sync.Mutex
	deliveries int
	sentAt     map[wakeID]int
	waited     map[string][]int // by tenant
	first      map[string][]int // by tenant: the number of each delivery
}

type wakeID struct {
	key session.Key
	seq int64
}

func (l *ledger) Send(ctx context.Context, wakes ...journal.Wake) error {
	l.mu.Lock()
	for _, w := range wakes {
		l.sentAt[wakeID{w.Key(), w.Seq}] = l.deliveries
	}
	l.mu.Unlock()
	return l.Queue.Send(ctx, wakes...)
}

func (l *ledger) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	got, err := l.Queue.Receive(ctx, p)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range got {
		if at, sent := l.sentAt[wakeID{d.Wake.Key(), d.Wake.Seq}]; sent && d.Receives == 1 {
			l.waited[d.Wake.Tenant] = append(l.waited[d.Wake.Tenant], l.deliveries-at)
			l.first[d.Wake.Tenant] = append(l.first[d.Wake.Tenant], l.deliveries)
		}
		l.deliveries++
	}
	return got, err
}

// dynamo makes a store of a test's own on DynamoDB Local.
func dynamo(t *testing.T) *dynamostore.Store {
	t.Helper()
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	tables := os.Getenv("ADJOURN_TEST_DYNAMODB")
	require.NotEmpty(t, tables, "ADJOURN_TEST_DYNAMODB: run make test-aws")
	api := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &tables })
	blobs := s3.NewFromConfig(cfg, func(o *s3.Options) { // nothing here is large enough for it
		o.BaseEndpoint, o.UsePathStyle = aws.String(os.Getenv("ADJOURN_TEST_AWS")), true
	})
	name := "t-" + rand.Text()
	require.NoError(t, dynamostore.CreateTables(t.Context(), api, dynamostore.Tables{State: name}))
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: api, Table: name, Blobs: blobs, Bucket: "none", Now: time.Now, NewID: rand.Text, Timeout: time.Minute,
	})
	require.NoError(t, err)
	return s
}

// TestFairness races 64 sessions of nine tenants through one queue with ten steps at
// a time; one tenant has 40 of them, and had them first. What is shown is what this
// house guarantees of itself: a session has one message in the queue at most, so a
// step waits behind one step of each other session and not behind all that another
// tenant still has to do. A tenant's share of the deliveries is therefore that of its
// sessions, and none waits for more than one round.
//
// MiniStack hands messages out in the order of their sending, whoever's they are. AWS
// adds fair queues: with the tenant as MessageGroupId it serves the others first once
// one tenant has more than a tenth of what is in flight (and 30 messages of it), so
// that there a quiet tenant waits for less than a round.
func TestFairness(t *testing.T) {
	t.Parallel()
	const noisy, quiet, each, steps, concurrency = 40, 8, 3, 5, 10
	const sessions = noisy + quiet*each
	api := client(t)
	_, made := create(t, api, 10)
	l := &ledger{
		Queue: open(t, api, made.URL), sentAt: map[wakeID]int{}, waited: map[string][]int{}, first: map[string][]int{},
	}
	registry, err := agents.Registry()
	require.NoError(t, err)
	working, stop := context.WithCancel(t.Context())
	defer stop()
	var ended atomic.Int64
	r, err := runtime.New(runtime.Config{
		Registry: registry, Store: dynamo(t), Queue: l, Owner: rand.Text(), Now: time.Now, NewID: func() string { return rand.Text()[:16] },
		// What is slow here is the machine: nobody else would do it faster.
		Lease: time.Minute, CommitTimeout: time.Minute,
		OnEntry: func(_ session.Key, p runtime.Progress) {
			if p.Status.Ended() && ended.Add(1) == sessions {
				stop()
			}
		},
	})
	require.NoError(t, err)

	var keys []session.Key
	for n := range sessions {
		key := session.Key{Tenant: "noisy", ID: fmt.Sprintf("s-%d", n)}
		if n >= noisy {
			key.Tenant = fmt.Sprintf("quiet-%d", n%quiet)
		}
		keys = append(keys, key)
		_, err := r.Start(t.Context(), runtime.StartParams{
			Key: key, Agent: "lab", Caller: runtime.Caller{Who: "test"},
			Input: llm.TextParts(strings.Repeat("- {call: echo, with: {text: hello}}\n", steps) + "- {say: done}"),
		})
		require.NoError(t, err)
	}
	began := time.Now()
	require.NoError(t, r.Work(working, l, runtime.WorkParams{Concurrency: concurrency}))
	t.Logf("%d deliveries in %s", l.deliveries, time.Since(began).Round(time.Millisecond))
	for _, key := range keys {
		s, err := r.Session(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, session.StatusCompleted, s.Status, key)
	}

	// A round: one message of each other session, and what was already on its way to
	// the workers when this one was sent: one receipt waiting and one being worked on.
	const round = sessions + 2*concurrency
	sum := map[string]int{}
	for tenant, waited := range l.waited {
		for _, n := range waited {
			require.LessOrEqual(t, n, round, "a step of %s waited for that many others", tenant)
			sum[tenant] += n
		}
	}
	average := func(tenant string) float64 { return float64(sum[tenant]) / float64(len(l.waited[tenant])) }
	t.Logf("average wait in deliveries: noisy %.1f", average("noisy"))
	for n := range quiet {
		tenant := fmt.Sprintf("quiet-%d", n)
		t.Logf("average wait in deliveries: %s %.1f", tenant, average(tenant))
		require.LessOrEqual(t, average(tenant), average("noisy")+concurrency, tenant)
		// Each had its turn in every round: so many sessions, so many deliveries.
		for i, at := range l.first[tenant] {
			require.LessOrEqual(t, at, (i/each+1)*round, "delivery %d of %s", i+1, tenant)
		}
	}
}
