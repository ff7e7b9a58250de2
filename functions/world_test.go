//go:build aws && linux

package functions_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/lambdatest"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/queue/sqsqueue"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

const (
	// lease is the shortest the functions take, so that a trial takes little time.
	lease = time.Second
	// visibility is how long a message that was not acknowledged stays away. On AWS
	// it is more than the function's timeout; here less, so that a message also
	// comes back while somebody works on it.
	visibility = 2 * time.Second
	// timeout of a function: only a hang uses it up.
	timeout = time.Minute
	// attempt is how long the adapters wait for an answer before they ask again.
	attempt = 3 * time.Second
	// sweepEvery is how often the schedule invokes the sweep.
	sweepEvery = 400 * time.Millisecond
)

// settings of a world; the zero value is the usual one.
type settings struct {
	// binaries are the programs of the functions, where they are not the real ones.
	binary      string
	env         map[string]string
	concurrency int
	visibility  time.Duration
	lease       time.Duration
	// timeout of the step function and the queue's receives, where not the usual ones.
	timeout     time.Duration
	maxReceives int
	// noSweep leaves the schedule to the test.
	noSweep bool
	// limitMemory kills what takes more than its function has.
	limitMemory bool
}

// world is a deployment of its own.
type world struct {
	functions     map[string]*lambdatest.Function
	steps, dead   *lambdatest.Mapping
	db            *dynamodb.Client
	queues        *sqs.Client
	blobs         *s3.Client
	store         *dynamostore.Store
	table, bucket string
	urls          sqsqueue.Created
	server        *httptest.Server
	ends          []func()
	env           map[string]string
	lease         time.Duration

	// deliveries decides how messages are delivered; nil is once and at once.
	deliveries atomic.Pointer[func(types.Message) []time.Duration]

	mu  sync.Mutex
	log func(format string, args ...any)
}

func address(t testing.TB, name string) *string {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		t.Fatal(name + " is not set: run make test-aws")
	}
	return &text
}

// seats are how many worlds there may be at once, whatever runs side by side: with
// more of them the emulators take longer to answer than a lease lasts.
var seats = make(chan struct{}, min(2*max(goruntime.GOMAXPROCS(0), 2), 8))

// deploy makes a world that lives as long as the test.
func deploy(t testing.TB, s settings) *world {
	t.Helper()
	seats <- struct{}{}
	t.Cleanup(func() { <-seats })
	w, end := open(t, s)
	t.Cleanup(end)
	return w
}

// open makes a world, and returns what ends it. It needs a seat.
func open(t testing.TB, s settings) (*world, func()) {
	t.Helper()
	ctx, local := context.WithoutCancel(t.Context()), address(t, "ADJOURN_TEST_AWS")
	keys := credentials.NewStaticCredentialsProvider("test", "test", "")
	w := &world{
		functions: map[string]*lambdatest.Function{},
		db:        dynamodb.New(dynamodb.Options{Region: lambdatest.Region, Credentials: keys, BaseEndpoint: address(t, "ADJOURN_TEST_DYNAMODB")}),
		queues:    sqs.New(sqs.Options{Region: lambdatest.Region, Credentials: keys, BaseEndpoint: local}),
	}
	w.blobs = s3.New(s3.Options{Region: lambdatest.Region, Credentials: keys, BaseEndpoint: local, UsePathStyle: true})
	name := "fn-" + strings.ToLower(rand.Text())
	w.table, w.bucket = name, name
	require.NoError(t, dynamostore.CreateTables(ctx, w.db, dynamostore.Tables{State: w.table, Live: name + "-live"}))
	_, err := w.blobs.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &w.bucket})
	require.NoError(t, err)
	if s.visibility == 0 {
		s.visibility = visibility
	}
	if w.lease = s.lease; w.lease == 0 {
		w.lease = lease
	}
	w.urls, err = sqsqueue.CreateQueues(ctx, w.queues, sqsqueue.Queues{Name: name, DeadLetters: name + "-dead", Visibility: s.visibility, MaxReceives: s.maxReceives})
	require.NoError(t, err)
	w.store, err = dynamostore.New(dynamostore.Config{
		DynamoDB: w.db, Table: w.table, Blobs: w.blobs, Bucket: w.bucket, Now: time.Now, NewID: app.NewID,
	})
	require.NoError(t, err)
	w.start(t, s)
	w.mapQueues(t, name, s)
	w.serve()
	if !s.noSweep {
		w.schedule()
	}
	return w, func() {
		w.checkRoles(t)
		for _, end := range slices.Backward(w.ends) {
			end()
		}
	}
}

func (w *world) start(t testing.TB, s settings) {
	t.Helper()
	w.env = map[string]string{
		"ADJOURN_TABLE": w.table, "ADJOURN_BUCKET": w.bucket, "ADJOURN_QUEUE_URL": w.urls.URL, "ADJOURN_API_ID": lambdatest.APIID,
		"ADJOURN_LEASE": w.lease.String(), "ADJOURN_LOG": "info",
		"ADJOURN_LAB": "true", "ADJOURN_LAB_FOLDER": os.TempDir(), // below which each trial has its folder
	}
	maps.Copy(w.env, s.env)
	for _, name := range names {
		program := s.binary
		if program == "" {
			program = name
		}
		limit := timeout
		if name == "step" && s.timeout > 0 {
			limit = s.timeout
		}
		f, err := lambdatest.NewFunction(lambdatest.FunctionConfig{
			Name: name, Binary: binary(t, program), Env: w.environment(name), Timeout: limit, LimitMemory: s.limitMemory, Log: w.note,
			Upstream: lambdatest.Upstream{DynamoDB: *address(t, "ADJOURN_TEST_DYNAMODB"), AWS: *address(t, "ADJOURN_TEST_AWS")},
		})
		require.NoError(t, err)
		w.ends = append(w.ends, func() { _ = f.Close() })
		w.functions[name] = f
	}
}

// environment of a function: the dead letters are the sweep's alone.
func (w *world) environment(name string) map[string]string {
	env := maps.Clone(w.env)
	if name == "sweep" {
		env["ADJOURN_DEAD_LETTERS_URL"] = w.urls.DeadLettersURL
	}
	return env
}

func (w *world) mapQueues(t testing.TB, name string, s settings) {
	t.Helper()
	arn := "arn:aws:sqs:" + lambdatest.Region + ":" + lambdatest.Account + ":" + name
	ctx := context.WithoutCancel(t.Context())
	w.steps = lambdatest.Map(ctx, lambdatest.MappingConfig{
		Queue: w.queues, URL: w.urls.URL, ARN: arn, Function: w.functions["step"], Log: w.note, MaximumConcurrency: s.concurrency,
		Deliveries: func(m types.Message) []time.Duration {
			if decide := w.deliveries.Load(); decide != nil && *decide != nil {
				return (*decide)(m)
			}
			return []time.Duration{0}
		},
	})
	w.dead = lambdatest.Map(ctx, lambdatest.MappingConfig{
		Queue: w.queues, URL: w.urls.DeadLettersURL, ARN: arn + "-dead", Function: w.functions["sweep"], Log: w.note, MaximumConcurrency: 2,
	})
	w.ends = append(w.ends, w.steps.Close, w.dead.Close)
}

// serve opens the HTTP API. A token is the name of its tenant.
func (w *world) serve() {
	gateway := &lambdatest.Gateway{Authorize: func(r *http.Request) (map[string]string, bool) {
		tenant, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return map[string]string{"tenant": tenant, "sub": "tester"}, ok
	}}
	for _, r := range httpapi.Routes() {
		gateway.Routes = append(gateway.Routes, lambdatest.Route{Method: r.Method, Path: r.Path, Function: w.functions[string(r.Function)]})
	}
	w.server = httptest.NewServer(gateway)
	w.ends = append(w.ends, w.server.Close)
}

// schedule invokes the sweep again and again, one invocation after the other.
func (w *world) schedule() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.ends = append(w.ends, func() { stop(); <-done })
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(sweepEvery):
				_ = w.sweep(ctx) // a sweep that fails is followed by another
			case <-ctx.Done():
				return
			}
		}
	}()
}

// sweep invokes the sweep once, as the schedule does.
func (w *world) sweep(ctx context.Context) error {
	event := fmt.Sprintf(`{"version":"0","id":%q,"detail-type":"Scheduled Event","source":"aws.scheduler","account":%q,"time":%q,"region":%q,"resources":[],"detail":"{}"}`,
		rand.Text(), lambdatest.Account, time.Now().UTC().Format(time.RFC3339), lambdatest.Region)
	_, err := w.functions["sweep"].Invoke(ctx, []byte(event))
	return err
}

// client returns a client of a tenant.
func (w *world) client(t require.TestingT, tenant string) *client.Client {
	c, err := client.New(client.Config{URL: w.server.URL, Token: tenant, Tries: 1})
	require.NoError(t, err)
	return c
}

// note tells whoever uses the world now.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log != nil {
		w.log(format, args...)
	}
}

// report makes the world tell what happens in it.
func (w *world) report(log func(format string, args ...any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = log
}

// setFaults sets the faults of every function.
func (w *world) setFaults(faults lambdatest.Faults) {
	for _, f := range w.functions {
		f.SetFaults(faults)
	}
}

func (w *world) setDeliveries(decide func(types.Message) []time.Duration) {
	w.deliveries.Store(&decide)
}

// queued counts the messages of the queue and its dead letters, hidden and delayed ones too.
func (w *world) queued() (int, error) {
	total := 0
	for _, url := range []string{w.urls.URL, w.urls.DeadLettersURL} {
		got, err := w.queues.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
			QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
		})
		if err != nil {
			return 0, err
		}
		for _, name := range []string{"", "NotVisible", "Delayed"} {
			n, err := strconv.Atoi(got.Attributes["ApproximateNumberOfMessages"+name])
			if err != nil {
				return 0, fmt.Errorf("messages %s: %w", name, err)
			}
			total += n
		}
	}
	return total, nil
}

// invocations counts the invocations of functions.
func (w *world) invocations(names ...string) int {
	n := 0
	for _, name := range names {
		n += len(w.functions[name].Invocations())
	}
	return n
}

// output is what the functions printed last.
func (w *world) output() string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(w.functions[name].Output())
	}
	return b.String()
}
