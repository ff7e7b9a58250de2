//go:build linux

package lambdatest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The account and region everything is in.
const (
	Account = "000000000000"
	Region  = "us-east-1"
)

// initTime is how long a process may take until it asks for its first event: more
// than Lambda's 10 s, for what has to be noticed is a process that never asks.
const initTime = time.Minute

// FunctionConfig says what a function is. Name and Binary are required.
type FunctionConfig struct {
	Name   string
	Binary string
	// Env are the function's own variables; nothing of the test's is handed on.
	Env map[string]string
	// Timeout of an invocation (10 s): the process is killed then.
	Timeout time.Duration
	// LimitMemory kills a process that takes more memory than its variable
	// AWS_LAMBDA_FUNCTION_MEMORY_SIZE says, as Lambda does.
	LimitMemory bool
	// Upstream is where requests for AWS go.
	Upstream Upstream
	// Faults may be changed later with [Function.SetFaults].
	Faults Faults
	// Log is told what the sandbox does to the process; optional.
	Log func(format string, args ...any)
}

// Function runs a binary as Lambda runs a function. Its methods are safe for concurrent use.
type Function struct {
	cfg    FunctionConfig
	dir    string
	faults atomic.Pointer[Faults]

	mu      sync.Mutex
	binary  string
	env     map[string]string
	version int
	started int
	closed  bool
	warm    []*Worker
	workers map[*Worker]bool
	history []*Invocation
	traffic map[string]Traffic
}

// Traffic is what was sent to AWS by one operation.
type Traffic struct {
	Requests int
	// Sent and Received are bytes of bodies.
	Sent, Received int64
}

// Invocation is what is known of one invocation.
type Invocation struct {
	ID       string
	Worker   int
	Cold     bool
	Began    time.Time
	Deadline time.Time

	mu       sync.Mutex
	requests []string
	took     time.Duration
	failure  *InvokeError
}

func (i *Invocation) add(op string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = append(i.requests, op)
	return len(i.requests)
}

// Requests are the operations it asked of AWS, in order.
func (i *Invocation) Requests() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.requests)
}

// Took is how long it lasted; 0 while it lasts.
func (i *Invocation) Took() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.took
}

// Failure is how it failed, nil if it did not.
func (i *Invocation) Failure() *InvokeError {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

// InvokeError says that an invocation failed.
type InvokeError struct {
	// Type is the function's own error type, or one of the sandbox:
	// Runtime.ExitError, Sandbox.Timedout, Runtime.InitError.
	Type    string
	Message string
}

func (e *InvokeError) Error() string { return e.Type + ": " + e.Message }

// reported reads what a function says of its own error.
func reported(body []byte) *InvokeError {
	var said struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(body, &said); err != nil {
		return &InvokeError{"Unknown", string(body)}
	}
	return &InvokeError{said.ErrorType, said.ErrorMessage}
}

// NewFunction returns a function. Nothing is started before its first invocation.
// Close it when the test ends.
func NewFunction(cfg FunctionConfig) (*Function, error) {
	if cfg.Name == "" || cfg.Binary == "" {
		return nil, fmt.Errorf("function %q: Name and Binary are required", cfg.Name)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	binary, err := filepath.Abs(cfg.Binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "adjourn-task-")
	if err != nil {
		return nil, err
	}
	f := &Function{
		cfg: cfg, dir: dir, binary: binary, env: maps.Clone(cfg.Env),
		workers: map[*Worker]bool{}, traffic: map[string]Traffic{},
	}
	f.SetFaults(cfg.Faults)
	return f, nil
}

// Name of the function.
func (f *Function) Name() string { return f.cfg.Name }

// ARN of the function.
func (f *Function) ARN() string {
	return "arn:aws:lambda:" + Region + ":" + Account + ":function:" + f.cfg.Name
}

// SetFaults changes what happens to requests from now on.
func (f *Function) SetFaults(faults Faults) { f.faults.Store(&faults) }

// Deploy replaces the program and its variables. Processes of the old one finish
// what they are at and get nothing more.
func (f *Function) Deploy(binary string, env map[string]string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.binary, f.env = binary, maps.Clone(env)
	f.version++
	warm := f.warm
	f.warm = nil
	f.mu.Unlock()
	for _, w := range warm {
		w.Kill()
	}
	return nil
}

// environment of a process, as the sandbox of an OS-only runtime has it.
func (f *Function) environment(env map[string]string, api, aws string) []string {
	vars := map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          api,
		"AWS_LAMBDA_FUNCTION_NAME":        f.cfg.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.cfg.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "2026/01/01/[$LATEST]" + newID(),
		"AWS_REGION":                      Region,
		"AWS_DEFAULT_REGION":              Region,
		"AWS_ACCESS_KEY_ID":               "test",
		"AWS_SECRET_ACCESS_KEY":           "test",
		"AWS_SESSION_TOKEN":               "test",
		"AWS_ENDPOINT_URL_DYNAMODB":       aws,
		"AWS_ENDPOINT_URL_SQS":            aws,
		"AWS_ENDPOINT_URL_S3":             aws,
		"LAMBDA_TASK_ROOT":                f.dir,
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"_HANDLER":                        "bootstrap",
		"LANG":                            "en_US.UTF-8",
		"TZ":                              ":UTC",
		"PATH":                            "/usr/local/bin:/usr/bin:/bin",
	}
	maps.Copy(vars, env)
	list := make([]string, 0, len(vars))
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// Invoke hands an event to a process, a warm one if there is one, and returns
// what it answers. An error is an [*InvokeError], or the end of ctx, which kills
// the process.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	record := &Invocation{ID: newRequestID(), Began: time.Now()}
	f.mu.Lock()
	f.history = append(f.history, record)
	f.mu.Unlock()
	answer, err := f.invoke(ctx, record, payload)
	record.mu.Lock()
	defer record.mu.Unlock()
	record.took = time.Since(record.Began)
	if err != nil {
		record.failure = err
		return nil, err
	}
	return answer, nil
}

func (f *Function) invoke(ctx context.Context, record *Invocation, payload []byte) ([]byte, *InvokeError) {
	w, failure := f.take(ctx, record)
	if failure != nil {
		return nil, failure
	}
	record.Worker = w.id
	record.Deadline = time.Now().Add(f.cfg.Timeout)
	inv := &invocation{record: record, payload: payload, done: make(chan outcome, 1)}
	timer := time.NewTimer(f.cfg.Timeout)
	defer timer.Stop()
	var said *outcome
	given, done := w.work, inv.done
	for {
		select {
		case given <- inv:
			given = nil
		case o := <-done:
			said, done = &o, nil
		case <-w.asked: // only then the invocation is over
			f.idle(w)
			if said == nil && len(inv.done) > 0 {
				o := <-inv.done // it came first
				said = &o
			}
			if said == nil {
				return nil, f.failed(w, "Runtime.ExitError", "RequestId: "+record.ID+" Error: the process asks for more and has not answered")
			}
			return said.payload, said.err
		case <-w.gone:
			if said == nil && len(inv.done) > 0 {
				o := <-inv.done // it had answered before it ended
				said = &o
			}
			if said == nil {
				return nil, f.failed(w, "Runtime.ExitError", "RequestId: "+record.ID+" Error: Runtime exited: "+w.cmd.ProcessState.String())
			}
			return said.payload, said.err
		case <-timer.C:
			w.Kill()
			return nil, f.failed(w, "Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", record.ID, f.cfg.Timeout.Seconds()))
		case <-ctx.Done():
			w.Kill()
			return nil, &InvokeError{"Canceled", context.Cause(ctx).Error()}
		}
	}
}

func (f *Function) failed(w *Worker, kind, message string) *InvokeError {
	f.cfg.Log("%s #%d: %s: %s", f.cfg.Name, w.id, kind, message)
	return &InvokeError{kind, message}
}

// take returns a process that has asked for work: the one that did last, or a new one.
func (f *Function) take(ctx context.Context, record *Invocation) (*Worker, *InvokeError) {
	f.mu.Lock()
	for n := len(f.warm); n > 0; n = len(f.warm) {
		w := f.warm[n-1]
		f.warm = f.warm[:n-1]
		if !w.ended() {
			f.mu.Unlock()
			return w, nil
		}
	}
	if f.closed {
		f.mu.Unlock()
		return nil, &InvokeError{"ResourceNotFoundException", f.cfg.Name + " is closed"}
	}
	f.started++
	id, version, binary, env := f.started, f.version, f.binary, maps.Clone(f.env)
	f.mu.Unlock()
	record.Cold = true
	w, err := f.start(id, version, binary, env)
	if err != nil {
		return nil, &InvokeError{"Runtime.InvalidEntrypoint", err.Error()}
	}
	f.mu.Lock()
	f.workers[w] = true
	f.mu.Unlock()
	timer := time.NewTimer(initTime)
	defer timer.Stop()
	select {
	case <-w.asked:
		return w, nil
	case <-w.gone:
		return nil, f.failed(w, "Runtime.InitError", w.cmd.ProcessState.String()+": "+strings.TrimSpace(w.output.String()))
	case <-timer.C:
		w.Kill()
		return nil, f.failed(w, "Sandbox.Timedout", "init took longer than "+initTime.String())
	case <-ctx.Done():
		w.Kill()
		return nil, &InvokeError{"Canceled", context.Cause(ctx).Error()}
	}
}

// idle takes back a process that has asked for more work.
func (f *Function) idle(w *Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || w.version != f.version {
		go w.Kill()
		return
	}
	f.warm = append(f.warm, w)
}

// count adds to the traffic of an operation.
func (f *Function) count(p *Passage, more Traffic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.traffic[p.Operation]
	f.traffic[p.Operation] = Traffic{t.Requests + more.Requests, t.Sent + more.Sent, t.Received + more.Received}
}

// Traffic returns what all processes together asked of AWS, by operation.
func (f *Function) Traffic() map[string]Traffic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.traffic)
}

// Invocations returns every invocation, the oldest first.
func (f *Function) Invocations() []*Invocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.history)
}

// Workers returns the processes that have not ended.
func (f *Function) Workers() []*Worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	var live []*Worker
	for w := range f.workers {
		if !w.ended() {
			live = append(live, w)
		}
	}
	slices.SortFunc(live, func(a, b *Worker) int { return a.id - b.id })
	return live
}

// Output returns the newest part of what each process printed.
func (f *Function) Output() string {
	f.mu.Lock()
	workers := slices.SortedFunc(maps.Keys(f.workers), func(a, b *Worker) int { return a.id - b.id })
	f.mu.Unlock()
	var b strings.Builder
	for _, w := range workers {
		if text := strings.TrimSpace(w.output.String()); text != "" {
			b.WriteString("-- " + f.cfg.Name + " #" + strconv.Itoa(w.id) + "\n" + text + "\n")
		}
	}
	return b.String()
}

// Close kills every process.
func (f *Function) Close() error {
	f.mu.Lock()
	f.closed = true
	f.warm = nil
	workers := slices.Collect(maps.Keys(f.workers))
	f.mu.Unlock()
	for _, w := range workers {
		w.Kill()
	}
	return os.RemoveAll(f.dir)
}

// newID returns 32 hexadecimal digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newRequestID returns an id in the shape of AWS's.
func newRequestID() string {
	id := newID()
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}
