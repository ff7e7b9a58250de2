package lambdafn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app/serverless"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// Step runs the step function: each message of the queue is one step of a
// session. Like [Sweep] it does not return, and ends the process, with every
// mistake in the log, when settings or agents are wrong: the messages wait.
func Step(registry func() (*agent.Registry, error)) { run(registry, program{build: NewStep}) }

// Start runs the start function: the route that starts sessions. Like all that
// answer the API it does not return; when settings or agents are wrong, it answers
// each request with a problem of the code misconfigured, and the log has every mistake.
func Start(registry func() (*agent.Registry, error)) {
	run(registry, program{build: NewStart, refuse: refuseHTTP})
}

// Resume runs the resume function: the routes that let a session go on.
func Resume(registry func() (*agent.Registry, error)) {
	run(registry, program{build: NewResume, refuse: refuseHTTP})
}

// Submit runs the submit function: the routes that answer a session.
func Submit(registry func() (*agent.Registry, error)) {
	run(registry, program{build: NewSubmit, refuse: refuseHTTP})
}

// Query runs the query function: the routes that read.
func Query(registry func() (*agent.Registry, error)) {
	run(registry, program{build: NewQuery, refuse: refuseHTTP})
}

// Event runs the event function: what starts sessions without a caller, as
// EventBridge, SNS, S3 and plain invocations bring it. When settings or agents are
// wrong, each event fails with the mistakes as its error, so that they are kept
// with it.
func Event(registry func() (*agent.Registry, error)) {
	run(registry, program{build: NewEvent, refuse: refuseEvents})
}

// Sweep runs the sweep function: deadlines and repair each minute, and the dead letters.
func Sweep(registry func() (*agent.Registry, error)) {
	run(registry, program{build: NewSweep, deadLetters: true})
}

// Notice runs the notice function: it sends what was told to whoever is outside.
func Notice(registry func() (*agent.Registry, error)) { run(registry, program{build: NewNotice}) }

// program is what one function does.
type program struct {
	build func(Config) (Handler, error)
	// refuse makes the handler of a function that cannot work; nil ends the process.
	refuse func(error) Handler
	// deadLetters says that it works on them too.
	deadLetters bool
}

// run opens the engine once, outside of the handler, and serves events until
// Lambda ends the process.
func run(registry func() (*agent.Registry, error), p program) {
	if limit := heapLimit(os.Getenv); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	memory := memorySize(os.Getenv)
	handler, err := p.open(serverless.Config{
		Registry: registry, Log: newProcessLog, CacheBytes: int(memory / 100 * cacheShare),
		StepBytes: int(memory / 100 * stepShare), ToolsAtOnce: toolsAtOnce(memory),
		SweepAtOnce: sweepAtOnce(memory),
	})
	if err != nil {
		NewLog(os.Stderr, 0).Error("the function cannot work", "error", err.Error())
	}
	if handler == nil {
		os.Exit(1)
	}
	lambda.StartWithOptions(handler)
}

// open returns the function's handler. With an error it is the one that refuses,
// nil if there is none.
func (p program) open(cfg serverless.Config) (Handler, error) {
	cfg.NeedDeadLetters = p.deadLetters
	app, err := serverless.Open(context.Background(), cfg)
	var handler Handler
	if err == nil {
		handler, err = p.build(configOf(app))
	}
	switch {
	case err == nil:
		return handler, nil
	case p.refuse == nil:
		return nil, err
	}
	return p.refuse(err), err
}

// refused is the handler of a function that cannot work.
type refused func(ctx context.Context, raw []byte) ([]byte, error)

// Invoke refuses an event.
func (r refused) Invoke(ctx context.Context, raw []byte) ([]byte, error) { return r(ctx, raw) }

// refuseHTTP answers each request with a problem: a process that ended would be
// begun anew for each, and its callers would read of a gateway's mistake.
func refuseHTTP(error) Handler {
	return refused(func(_ context.Context, raw []byte) ([]byte, error) {
		event, err := parseHTTP(raw)
		if errors.Is(err, errNotHTTP) {
			return nil, err
		}
		return fit(problem(http.StatusInternalServerError, "misconfigured",
			"This deployment's settings are wrong, so nothing is answered; the function's log says which.", event.RequestContext.RequestID))
	})
}

// refuseEvents fails each event with the reason.
func refuseEvents(why error) Handler {
	return refused(func(context.Context, []byte) ([]byte, error) {
		return nil, fmt.Errorf("no event starts a session until the function is deployed with other settings: %w", why)
	})
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
	cfg := Config{
		Runtime: a.Runtime, Queue: a.Queue, DeadLetters: a.DeadLetters, Now: a.Now, Log: a.Log,
		APIID: a.Settings.APIID, TenantClaim: a.Settings.TenantClaim, RolesClaim: a.Settings.RolesClaim, FixedTenant: a.Settings.FixedTenant, IAMTenant: a.Settings.IAMTenant,
		AllowUnauthenticated: a.Settings.AllowUnauthenticated,
		MaxWait:              a.Settings.MaxWait,
		Links:                httpapi.LinksConfig{Keys: a.Settings.GrantKeys, URL: a.Settings.PublicURL, SignInURL: a.Settings.SignInURL},
		Slack: httpapi.SlackConfig{
			SigningSecret: a.Settings.Notices.SlackSigningSecret, People: a.Settings.Notices.SlackPeople, Tenant: a.Settings.Notices.SlackTenant, SignedIn: a.Settings.Notices.SlackSignedIn,
		},
		EventTemplate: a.Settings.EventTemplate, EventTenant: a.Settings.EventTenant,
	}
	if a.Notices != nil {
		cfg.Notices = a.Notices
	}
	return cfg
}
