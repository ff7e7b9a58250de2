package lambdafn

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// Step runs the step function: each message of the queue is one step of a
// session. Like all entry points it does not return, and ends the process, with
// every mistake in the log, when settings or agents are wrong.
func Step(registry func() (*agent.Registry, error)) { run(registry, NewStep, false) }

// Start runs the start function: the route that starts sessions.
func Start(registry func() (*agent.Registry, error)) { run(registry, NewStart, false) }

// Event runs the event function: what starts sessions without a caller, as
// EventBridge, SNS, S3 and plain invocations bring it.
func Event(registry func() (*agent.Registry, error)) { run(registry, NewEvent, false) }

// Resume runs the resume function: the routes that let a session go on.
func Resume(registry func() (*agent.Registry, error)) { run(registry, NewResume, false) }

// Submit runs the submit function: the routes that answer a session.
func Submit(registry func() (*agent.Registry, error)) { run(registry, NewSubmit, false) }

// Query runs the query function: the routes that read.
func Query(registry func() (*agent.Registry, error)) { run(registry, NewQuery, false) }

// Sweep runs the sweep function: deadlines and repair each minute, and the dead letters.
func Sweep(registry func() (*agent.Registry, error)) { run(registry, NewSweep, true) }

// run opens the engine once, outside of the handler, and serves events until
// Lambda ends the process.
func run(registry func() (*agent.Registry, error), build func(Config) (Handler, error), deadLetters bool) {
	if limit := heapLimit(os.Getenv); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	app, err := serverless.Open(context.Background(), serverless.Config{
		Registry: registry, NeedDeadLetters: deadLetters, Log: newProcessLog, CacheBytes: int(memorySize(os.Getenv) / 100 * cacheShare),
		StepBytes: int(memorySize(os.Getenv) / 100 * stepShare), ToolsAtOnce: toolsAtOnce(memorySize(os.Getenv)),
		SweepAtOnce: sweepAtOnce(memorySize(os.Getenv)),
	})
	var handler Handler
	if err == nil {
		handler, err = build(configOf(app))
	}
	if err != nil {
		NewLog(os.Stderr, 0).Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.StartWithOptions(handler)
}

// What the function's memory is for, in percent. The heap may grow to heapShare
// before the collector works harder: the smallest functions then hold sessions that
// would double in size between two collections. Sessions kept between events may
// take cacheShare. What one step brings may take stepShare in sum: while it is
// written, several copies of it exist. The rest is for the session at work, which
// is read, folded and written.
const (
	heapShare  = 80
	cacheShare = 10
	stepShare  = 3
)

// toolsAtOnce is how many tools may run side by side in so much memory, 0 where it
// is not known: each may hold a result of 16 MiB in several forms.
func toolsAtOnce(memory int64) int {
	const each = 128 << 20
	if memory == 0 {
		return 0
	}
	return int(min(max(memory/each, 1), runtime.DefaultToolsAtOnce))
}

// sweepAtOnce is how many items a sweep looks at side by side in so much memory, 0
// where it is not known. Each may be a session whose newest entry is as large as a
// step may bring, in several forms; the function that reads whole sessions has the
// same memory.
func sweepAtOnce(memory int64) int {
	const each, most = 64 << 20, 32
	return int(min(memory/each, most))
}

// heapLimit is where the collector begins to work harder, in bytes: 0 where the
// environment says it, or says nothing of the memory.
func heapLimit(env func(string) string) int64 {
	if env("GOMEMLIMIT") != "" {
		return 0
	}
	return memorySize(env) / 100 * heapShare
}

// memorySize is the function's memory in bytes, 0 where the environment does not say.
func memorySize(env func(string) string) int64 {
	megabytes, err := strconv.ParseInt(env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 32)
	if err != nil || megabytes <= 0 {
		return 0
	}
	return megabytes << 20
}

func newProcessLog(level slog.Level) *slog.Logger { return NewLog(os.Stderr, level) }

func configOf(a *serverless.App) Config {
	return Config{
		Runtime: a.Runtime, Queue: a.Queue, DeadLetters: a.DeadLetters, Now: a.Now, Log: a.Log,
		TenantClaim: a.Settings.TenantClaim, IAMTenant: a.Settings.IAMTenant, AllowUnauthenticated: a.Settings.AllowUnauthenticated,
		MaxWait:       a.Settings.MaxWait,
		EventTemplate: a.Settings.EventTemplate, EventTenant: a.Settings.EventTenant,
	}
}
