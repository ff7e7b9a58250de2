// Package lambdafn turns the events of AWS Lambda into calls of the runtime.
//
// Each function has a handler that is a plain value over a runtime, for tests, and
// an entry point for its main: Start, Step, Resume, Submit, Query, Event, Sweep,
// Notice.
// Handlers take and return bytes: an event that cannot be decoded reaches the handler,
// which decides what becomes of it, and does not fail inside the Lambda library. They are safe
// for concurrent use and keep nothing of one event for the next.
package lambdafn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// Handler handles the events of one function, as [github.com/aws/aws-lambda-go/lambda.Handler]
// does. An error makes the invocation a failed one.
type Handler interface {
	Invoke(ctx context.Context, event []byte) ([]byte, error)
}

// Config is what handlers stand on. Runtime and Now are required.
type Config struct {
	Runtime *runtime.Runtime
	// Queue is where the step function's messages are put off; DeadLetters where
	// the sweep's are.
	Queue       queue.Queue
	DeadLetters queue.Queue
	// Notices are sent by the notice function, which requires it.
	Notices NoticeSender
	Now     func() time.Time
	// Log of the handlers; nil means none. Bodies, inputs and results are not logged.
	Log *slog.Logger

	// APIID is the API whose requests are answered, as requestContext.apiId says it;
	// those of any other are refused. The functions behind an API require it.
	APIID string
	// TenantClaim of a JWT holds the tenant. FixedTenant, where it is set, is that of
	// every caller with a token, whatever the token says. IAMTenant is that of
	// callers IAM let in; where it is set, they alone are let in.
	TenantClaim string
	// RolesClaim of a JWT holds the roles of its bearer; empty gives nobody any.
	RolesClaim  string
	FixedTenant string
	IAMTenant   string
	// AllowUnauthenticated lets callers in that nobody has verified, as the default tenant.
	AllowUnauthenticated bool

	// Links is what links to approvals are made with; without keys there are none.
	Links httpapi.LinksConfig

	// Slack is what requests of Slack are taken with, by the submit function; without a secret there are none.
	Slack httpapi.SlackConfig

	// MaxWait is how long a request may wait for its session, in whole seconds; 0
	// lets none wait. The gateway gives up after 30 s.
	MaxWait time.Duration

	// EventTemplate makes a start of an event (see [ParseTemplate]); empty takes
	// plain invocations only. EventTenant is whose sessions events start.
	EventTemplate string
	EventTenant   string
}

// check refuses what has no runtime or no clock.
func (c Config) check() (Config, error) {
	c, err := c.checkClock()
	if c.Runtime == nil {
		err = errors.Join(errors.New("lambdafn: Runtime is required"), err)
	}
	return c, err
}

func (c Config) checkClock() (Config, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		return c, errors.New("lambdafn: Now is required")
	}
	return c, nil
}

// Lambda kills the sandbox at the deadline of ctx, whatever is under way. What is
// worked on ends earlier by a margin, in which outcomes are committed and
// messages put off.
const (
	workMargin    = 10 * time.Second
	requestMargin = 3 * time.Second
)

// soften returns a context that ends before the deadline of ctx, by margin or by
// a third of what is left, whichever is less, with [runtime.ErrOutOfTime] as its cause.
func (c Config) soften(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	margin = min(margin, max(deadline.Sub(c.Now())/3, 0))
	return context.WithDeadlineCause(ctx, deadline.Add(-margin), runtime.ErrOutOfTime)
}
