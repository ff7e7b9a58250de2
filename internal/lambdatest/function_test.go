//go:build linux

package lambdatest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/lambdatest"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "adjourn-toy-")
	if err != nil {
		panic(err)
	}
	toy = filepath.Join(dir, "bootstrap")
	build := exec.CommandContext(context.Background(), "go", "build", "-tags", "lambda.norpc", "-o", toy, "./testdata/toy")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as functions are built
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// toy is the path of a function that does what it is told.
var toy string

// plenty is time for whatever should take none: only a hang uses it up.
const plenty = time.Minute

func start(t *testing.T, cfg lambdatest.FunctionConfig) *lambdatest.Function {
	t.Helper()
	cfg.Name, cfg.Binary, cfg.Log = "toy", toy, t.Logf
	if cfg.Timeout == 0 {
		cfg.Timeout = plenty
	}
	f, err := lambdatest.NewFunction(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

type command struct {
	Do   string
	Text string        `json:",omitempty"`
	For  time.Duration `json:",omitempty"`
}

func (c command) String() string {
	text, _ := json.Marshal(c)
	return string(text)
}

func do(t *testing.T, f *lambdatest.Function, c command) string {
	t.Helper()
	answer, err := f.Invoke(t.Context(), []byte(c.String()))
	require.NoError(t, err)
	return string(answer)
}

func doFail(t *testing.T, f *lambdatest.Function, c command) *lambdatest.InvokeError {
	t.Helper()
	_, err := f.Invoke(t.Context(), []byte(c.String()))
	var failure *lambdatest.InvokeError
	require.ErrorAs(t, err, &failure)
	return failure
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{Env: map[string]string{"MINE": "yes"}})
	require.JSONEq(t, `"hello"`, do(t, f, command{Do: "echo", Text: "hello"}))
	require.JSONEq(t, `"yes"`, do(t, f, command{Do: "env", Text: "MINE"}))
	require.JSONEq(t, `""`, do(t, f, command{Do: "env", Text: "HOME"}), "nothing of the test's environment is handed on")
	require.JSONEq(t, `"toy"`, do(t, f, command{Do: "env", Text: "AWS_LAMBDA_FUNCTION_NAME"}))

	var seen struct {
		ID, ARN string
		Left    float64
	}
	require.NoError(t, json.Unmarshal([]byte(do(t, f, command{Do: "context"})), &seen))
	require.Equal(t, "arn:aws:lambda:us-east-1:000000000000:function:toy", seen.ARN)
	require.LessOrEqual(t, seen.Left, plenty.Seconds())
	require.Positive(t, seen.Left)
	all := f.Invocations()
	require.Len(t, all, 5)
	require.Equal(t, all[4].ID, seen.ID)
	require.True(t, all[0].Cold)
	require.False(t, all[4].Cold)
	require.Len(t, f.Workers(), 1, "a warm process is used again")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{})
	require.Equal(t, &lambdatest.InvokeError{Type: "errorString", Message: "no"}, doFail(t, f, command{Do: "fail", Text: "no"}))
	require.JSONEq(t, `"ok"`, do(t, f, command{Do: "echo", Text: "ok"}))
	require.Len(t, f.Workers(), 1, "an error is not the end of the process")
	require.Equal(t, "no", doFail(t, f, command{Do: "panic", Text: "no"}).Message)
	require.Eventually(t, func() bool { return len(f.Workers()) == 0 }, plenty, time.Millisecond, "a panic is")
	require.Equal(t, "Runtime.ExitError", doFail(t, f, command{Do: "exit"}).Type)
	require.Contains(t, f.Output(), "about to exit")
	require.NotNil(t, f.Invocations()[3].Failure())
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	f := start(t, lambdatest.FunctionConfig{Timeout: timeout})
	require.Equal(t, "Sandbox.Timedout", doFail(t, f, command{Do: "sleep", For: time.Hour}).Type)
	require.Empty(t, f.Workers(), "what takes too long is killed")
	require.NotNil(t, f.Invocations()[0].Failure())
	require.GreaterOrEqual(t, f.Invocations()[0].Took(), timeout)
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	at, asked, answer := held(t)
	f := start(t, lambdatest.FunctionConfig{Upstream: at})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, _ = f.Invoke(t.Context(), []byte(command{Do: "request", Text: "Query"}.String()))
		})
	}
	for range 3 {
		<-asked // all three are under way
	}
	close(answer)
	wg.Wait()
	require.Len(t, f.Workers(), 3, "one process for each that is under way")
	for range 10 {
		do(t, f, command{Do: "echo"})
	}
	require.Len(t, f.Workers(), 3)
}

func TestDeploy(t *testing.T) {
	t.Parallel()
	f := start(t, lambdatest.FunctionConfig{Env: map[string]string{"V": "1"}})
	first := do(t, f, command{Do: "pid"})
	require.NoError(t, f.Deploy(toy, map[string]string{"TOY_BROKEN": "1"}))
	failure := doFail(t, f, command{Do: "echo"})
	require.Equal(t, "Runtime.InitError", failure.Type)
	require.Contains(t, failure.Message, "this deployment is bad")
	require.NoError(t, f.Deploy(toy, map[string]string{"V": "2"}))
	require.JSONEq(t, `"2"`, do(t, f, command{Do: "env", Text: "V"}))
	require.NotEqual(t, first, do(t, f, command{Do: "pid"}))
}

// What a function leaves running stands still until its next invocation.
func TestFrozenBetween(t *testing.T) {
	t.Parallel()
	at, _, answer := held(t)
	f := start(t, lambdatest.FunctionConfig{Upstream: at})
	do(t, f, command{Do: "leave", Text: "Query"})
	stands(t, f.Workers()[0])
	close(answer)
	require.JSONEq(t, `"200 DynamoDB_20120810.Query"`, do(t, f, command{Do: "collect"}), "it goes on where it was stopped")
	stands(t, f.Workers()[0])
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	at, asked, answer := held(t)
	f := start(t, lambdatest.FunctionConfig{Upstream: at})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = f.Invoke(t.Context(), []byte(command{Do: "request", Text: "Query"}.String()))
	}()
	<-asked // it is in the middle of it
	w, thawed := f.Workers()[0], make(chan struct{})
	began := time.Now()
	go func() {
		defer close(thawed)
		w.Freeze(time.Second)
	}()
	stands(t, w)
	close(answer)
	<-done
	require.GreaterOrEqual(t, time.Since(began), time.Second, "it gets on when its time has passed")
	<-thawed
}

// stands waits until a process is stopped.
func stands(t *testing.T, w *lambdatest.Worker) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID()))
		return err == nil && strings.Contains(string(status), "\nState:\tT")
	}, plenty, time.Millisecond)
}

// held answers each request once answer is closed, and says when one came.
func held(t *testing.T) (at lambdatest.Upstream, asked <-chan struct{}, answer chan<- struct{}) {
	t.Helper()
	came, may := make(chan struct{}, 16), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-may:
			_, _ = w.Write([]byte(r.Header.Get("X-Amz-Target")))
		case <-t.Context().Done(): // the test has failed
		}
	}))
	t.Cleanup(server.Close)
	return lambdatest.Upstream{DynamoDB: server.URL}, came, may
}

// upstream answers everything with 200 and counts.
func upstream(t *testing.T) (lambdatest.Upstream, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = w.Write([]byte(r.Header.Get("X-Amz-Target")))
	}))
	t.Cleanup(server.Close)
	return lambdatest.Upstream{DynamoDB: server.URL, AWS: "http://127.0.0.1:1"}, &n
}

func TestFaults(t *testing.T) {
	t.Parallel()
	at, n := upstream(t)
	f := start(t, lambdatest.FunctionConfig{Upstream: at})
	request := command{Do: "request", Text: "TransactWriteItems"}
	passed := `"200 DynamoDB_20120810.TransactWriteItems"`
	require.JSONEq(t, passed, do(t, f, request))
	last := f.Invocations()[0]
	require.Equal(t, []string{"dynamodb:TransactWriteItems"}, last.Requests())
	require.Equal(t, map[string]lambdatest.Traffic{"dynamodb:TransactWriteItems": {Requests: 1, Sent: 25, Received: 36}}, f.Traffic())

	at1 := func(half lambdatest.Half, fate lambdatest.Fate) {
		f.SetFaults(func(p *lambdatest.Passage) lambdatest.Fate {
			if p.Half == half && p.N == 1 && p.Operation == "dynamodb:TransactWriteItems" {
				return fate
			}
			return lambdatest.Fate{}
		})
	}
	for _, c := range []struct {
		half   lambdatest.Half
		deed   lambdatest.Deed
		answer string
		passes int64
	}{
		{lambdatest.Before, lambdatest.Lose, "lost", 0},
		{lambdatest.After, lambdatest.Lose, "lost", 1},
		{lambdatest.Before, lambdatest.Conflict, "400 {", 0},
		{lambdatest.Before, lambdatest.Throttle, "400 {", 0},
		{lambdatest.After, lambdatest.Fail, "500 {", 1},
	} {
		at1(c.half, lambdatest.Fate{Deed: c.deed})
		before := n.Load()
		answer := do(t, f, request)
		require.True(t, strings.HasPrefix(answer, `"`+c.answer), "%s %s: %s", c.half, c.deed, answer)
		require.Equal(t, c.passes, n.Load()-before, "%s %s", c.half, c.deed)
		if c.deed == lambdatest.Conflict {
			require.Contains(t, answer, `[None, TransactionConflict]`)
		}
	}
	for half, passes := range map[lambdatest.Half]int64{lambdatest.Before: 0, lambdatest.After: 1} {
		at1(half, lambdatest.Fate{Deed: lambdatest.Kill})
		before := n.Load()
		require.Equal(t, "Runtime.ExitError", doFail(t, f, request).Type)
		require.Equal(t, passes, n.Load()-before)
		require.Empty(t, f.Workers())
	}
	for _, deed := range []lambdatest.Deed{lambdatest.Freeze, lambdatest.Delay} {
		at1(lambdatest.Before, lambdatest.Fate{Deed: deed, For: 300 * time.Millisecond})
		require.JSONEq(t, passed, do(t, f, request))
		all := f.Invocations()
		require.GreaterOrEqual(t, all[len(all)-1].Took(), 300*time.Millisecond)
	}
}
