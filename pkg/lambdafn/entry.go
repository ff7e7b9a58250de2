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
)

// Step runs the step function: each message of the queue is one step of a
// session. Like all entry points it does not return, and ends the process, with
// every mistake in the log, when settings or agents are wrong.
func Step(registry func() (*agent.Registry, error)) { run(registry, NewStep, false) }

// Start runs the start function: POST /sessions, EventBridge, notifications of
// SNS and S3, plain invocations.
func Start(registry func() (*agent.Registry, error)) { run(registry, NewStart, false) }

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
	if limit := memoryLimit(os.Getenv); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	app, err := serverless.Open(context.Background(), serverless.Config{
		Registry: registry, NeedDeadLetters: deadLetters, Log: newProcessLog,
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

// memoryLimit is what the heap may grow to before the collector works harder, in
// bytes: most of the function's memory, 0 where the environment says otherwise.
// The smallest functions then hold sessions that would double in size between two collections.
func memoryLimit(env func(string) string) int64 {
	if env("GOMEMLIMIT") != "" {
		return 0
	}
	megabytes, err := strconv.ParseInt(env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 32)
	if err != nil || megabytes <= 0 {
		return 0
	}
	return megabytes << 20 / 100 * 80
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
