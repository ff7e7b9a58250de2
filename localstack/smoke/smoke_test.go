package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/agents"
	"github.com/adjourn/adjourn/internal/awscall"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// serve puts the API in front of the embedded engine and returns where it is,
// with keys of two tenants.
func serve(t *testing.T, open bool) (at, key, other string) {
	t.Helper()
	return serveWith(t, open, true)
}

// serveWith says too whether anybody works on sessions: where the chain is off
// nobody does.
func serveWith(t *testing.T, open, chain bool) (at, key, other string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	keys := filepath.Join(t.TempDir(), "keys")
	a, err := embedded.Open(ctx, embedded.Config{Registry: agents.Registry, Data: filepath.Join(t.TempDir(), "a.db"), Env: func(string) string { return "" }})
	require.NoError(t, err)
	key, err = httpapi.NewAPIKey(keys, "ann", "")
	require.NoError(t, err)
	other, err = httpapi.NewAPIKey(keys, "bob", "elsewhere")
	require.NoError(t, err)
	cfg := httpapi.Config{Runtime: a.Runtime, AllowUnauthenticated: open}
	if !open {
		cfg.Authenticate, err = httpapi.APIKeys(keys)
		require.NoError(t, err)
	}
	handler, err := httpapi.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if !chain {
			return
		}
		_ = a.Runtime.Work(ctx, a.Queue(), runtime.WorkParams{}) // it ends with ctx
	}()
	t.Cleanup(func() {
		server.Close()
		cancel()
		<-worked
		require.NoError(t, a.Close())
	})
	return server.URL, key, other
}

func env(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

func TestStory(t *testing.T) {
	t.Parallel()
	at, key, other := serve(t, false)
	var out strings.Builder
	err := run(t.Context(), []string{"-url", at, "-rest", "10ms"}, env(map[string]string{"ADJOURN_TOKEN": key, "ADJOURN_OTHER_TOKEN": other}), &out)
	require.NoError(t, err, out.String())
	for _, told := range []string{
		"without a token       GET /sessions is 401", "with a forged token   GET /sessions is 401", "from another tenant   GET /sessions/{id} is 404",
		"completed: 25 steps", "its journal has 26 entries", "answered with 1000000 bytes", "may deploy run with", "a forged approval is 4", "approved by ann",
		"asks: which region?", `resumed with "eu-west-1"`, "completed: there", "All of it was as it should be.",
	} {
		require.Contains(t, out.String(), told)
	}
}

func TestStoryOfAnOpenAPI(t *testing.T) {
	t.Parallel()
	at, key, _ := serve(t, true)
	err := run(t.Context(), []string{"-url", at}, env(map[string]string{"ADJOURN_TOKEN": key}), &strings.Builder{})
	require.ErrorContains(t, err, "is the API open?")
}

func TestStoryNeeds(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-url", "http://127.0.0.1:1"}, env(nil), &strings.Builder{})
	require.ErrorContains(t, err, "a caller's token is missing: make smoke … TOKEN=…")
	err = run(t.Context(), nil, env(map[string]string{"ADJOURN_TOKEN": "x"}), &strings.Builder{})
	require.ErrorContains(t, err, "make smoke URL=… or STACK=…")
}

// TestStoryOfAChainThatIsOff: it says so soon, and does not wait for ever.
func TestStoryOfAChainThatIsOff(t *testing.T) {
	t.Parallel()
	at, key, _ := serveWith(t, false, false)
	caller, err := client.New(client.Config{URL: at, Token: key})
	require.NoError(t, err)
	for chain, why := range map[string]string{"on": "is the chain off (Chain=off, or", "off": "the stack was deployed with Chain=off"} {
		var out strings.Builder
		clock := time.Unix(1, 0)
		s := &story{out: &out, caller: caller, quiet: 10 * time.Millisecond, still: 50 * time.Millisecond, below: &beneath{parameters: map[string]string{"Chain": chain}}}
		s.now = func() time.Time { clock = clock.Add(4 * time.Millisecond); return clock }
		started, err := s.start(t.Context(), "[{say: never}]")
		require.NoError(t, err)
		_, err = s.rested(t.Context(), started.SessionID, session.OutcomeCompleted)
		require.ErrorContains(t, err, "is still at entry 1, and nothing was written to it for 50ms: "+why)
		require.Equal(t, 1, strings.Count(out.String(), "no step has run for 10ms: "+why), out.String())
	}
}

// TestNext: between two looks no mark is slept over.
func TestNext(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	for stood, want := range map[time.Duration]time.Duration{
		0: 20 * time.Second, 15200 * time.Millisecond: 4 * time.Second, 20 * time.Second: 40 * time.Second, 59900 * time.Millisecond: 0, 2 * time.Minute: 0,
	} {
		s := &story{quiet: quiet, still: still, now: func() time.Time { return began.Add(stood) }}
		require.Equal(t, want, s.next(began), stood)
	}
}

func TestForge(t *testing.T) {
	t.Parallel()
	require.Equal(t, "xkey", forge("key"))
	// {"sub":"you"} with its signature gets other claims under the same signature.
	forged := strings.Split(forge("head.eyJzdWIiOiJ5b3UifQ.signature"), ".")
	require.Len(t, forged, 3)
	require.Equal(t, "head", forged[0])
	require.NotEqual(t, "eyJzdWIiOiJ5b3UifQ", forged[1])
	require.Equal(t, "signature", forged[2])
}

// fakeAWS answers the five requests with what a test wants to be said.
func fakeAWS(t *testing.T, answers map[string]string) *beneath {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := r.Header.Get("X-Amz-Target")
		if what == "" {
			what = r.URL.Path
		}
		answer, ok := answers[what]
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") || !ok {
			http.Error(w, "no answer to "+what, http.StatusForbidden)
			return
		}
		if strings.HasPrefix(answer, "refused ") {
			w.WriteHeader(http.StatusBadRequest)
		}
		if strings.HasPrefix(answer, "failed ") {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return &beneath{
		Caller: awscall.Caller{Now: time.Now, Most: 16 << 20, Config: aws.Config{
			Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		}},
		stack: "s", outputs: map[string]string{"StepsUrl": "q", "StartFunction": "f"}, parameters: map[string]string{}, since: time.Unix(1, 0),
	}
}

func TestBeneath(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	t.Run("stack", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"/": `<R><DescribeStacksResult><Stacks><member>
			<Outputs><member><OutputKey>ApiUrl</OutputKey><OutputValue>u</OutputValue></member></Outputs>
			<Parameters><member><ParameterKey>EventBus</ParameterKey><ParameterValue>bus</ParameterValue></member></Parameters>
		</member></Stacks></DescribeStacksResult></R>`})
		require.NoError(t, b.describe(ctx))
		require.Equal(t, "u", b.outputs["ApiUrl"])
		require.Equal(t, "bus", b.parameters["EventBus"])
	})
	t.Run("no AWS", func(t *testing.T) {
		t.Parallel()
		b, nowhere := fakeAWS(t, nil), "http://127.0.0.1:1"
		b.Config.BaseEndpoint = &nowhere
		require.ErrorContains(t, b.describe(ctx), "nothing answers at http://127.0.0.1:1: if that is the local AWS, make up deploy-local")
	})
	t.Run("no such stack", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"/": "refused Stack with id s does not exist"})
		require.EqualError(t, b.describe(ctx), "the stack s is not there: make deploy-local")
		require.Error(t, fakeAWS(t, nil).describe(ctx))
		require.ErrorContains(t, fakeAWS(t, map[string]string{"/": "<R></R>"}).describe(ctx), "0 found")
	})
	t.Run("invocations in both forms of log", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"Logs_20140328.FilterLogEvents": `{"events": [
			{"message": "START RequestId: 1 Version: $LATEST"}, {"message": "{\"level\":\"WARN\",\"msg\":\"START RequestId: \"}"},
			{"message": "END RequestId: 1"}, {"message": "{\"time\":\"t\",\"type\":\"platform.start\",\"record\":{}}"}
		]}`})
		counts, err := b.starts(ctx, "Step", "Query")
		require.NoError(t, err)
		require.Equal(t, []int{2, 2}, counts)
		complaints, err := b.complaints(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, []string{`sweep: {"level":"WARN","msg":"START RequestId: "}`}, complaints)
	})
	t.Run("empty queue", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"AmazonSQS.GetQueueAttributes": `{"Attributes": {
			"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0"}}`})
		require.NoError(t, b.emptyQueue(ctx))
	})
	t.Run("a queue that does not get empty", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"AmazonSQS.GetQueueAttributes": `{"Attributes": {
			"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "1", "ApproximateNumberOfMessagesDelayed": "0"}}`})
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, b.emptyQueue(short), context.DeadlineExceeded)
	})
	t.Run("a function that fails", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"/2015-03-31/functions/f/invocations": `failed {"errorMessage": "no"}`})
		require.ErrorContains(t, b.invoke(ctx, "Start", struct{}{}, &startedEvent{}), "Unhandled")
	})
	t.Run("a bus that refuses", func(t *testing.T) {
		t.Parallel()
		b := fakeAWS(t, map[string]string{"AWSEvents.PutEvents": `{"FailedEntryCount": 1}`})
		require.ErrorContains(t, b.putEvent(ctx, source, nil), "refused")
	})
}
