// Package serverless wires a registry of agents to the engine on AWS: DynamoDB with S3, SQS.
//
// It is opened once in a process, before the first event: clients are built but
// nothing is asked, so that a cold start costs no round trip. It never links the
// embedded engine.
package serverless

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// Config says what to open.
type Config struct {
	// Registry of the agents; required.
	Registry func() (*agent.Registry, error)
	// NeedDeadLetters says that this function works on the dead letters, so
	// ADJOURN_DEAD_LETTERS_URL must be set.
	NeedDeadLetters bool
	// Env reads a variable of the environment; nil means [os.Getenv]. What the SDK
	// reads (AWS_REGION, AWS_ENDPOINT_URL, credentials) is the process's own affair.
	Env func(string) string
	// Log makes the log of the level ADJOURN_LOG says; nil means none.
	Log func(slog.Level) *slog.Logger
	// CacheBytes is about how much memory folded sessions may take between events;
	// 0 is what [runtime.Config] says.
	CacheBytes int
	// StepBytes and ToolsAtOnce bound what a step takes; 0 is what [runtime.Config] says.
	StepBytes   int
	ToolsAtOnce int
	// SweepAtOnce is how many items a sweep looks at side by side; 0 is what [runtime.Config] says.
	SweepAtOnce int
	// Decorate may put something around the ports; a test's door.
	Decorate func(app.Parts) app.Parts
	// Now is the clock; nil means the machine's.
	Now func() time.Time
	// AWS loads the SDK's configuration; nil means the process's environment and files.
	AWS func(context.Context) (aws.Config, error)
}

// App is an opened engine. It is safe for concurrent use.
type App struct {
	Runtime  *runtime.Runtime
	Registry *agent.Registry
	Settings Settings
	// Queue brings wakes; DeadLetters those that were received too often, nil if
	// the environment names no such queue.
	Queue       queue.Queue
	DeadLetters queue.Queue
	// Notices sends notices to the channels whose settings are there.
	Notices *notice.Sender
	Log     *slog.Logger
	Now     func() time.Time
}

// Open reads the settings, builds the registry and the clients. Wrong settings
// are [app.ErrInvalidSetting]; mistakes of the settings and of the agents are
// told together.
func Open(ctx context.Context, cfg Config) (*App, error) {
	if cfg.Registry == nil {
		return nil, errors.New("open: no registry given")
	}
	if cfg.Env == nil {
		cfg.Env = os.Getenv
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.AWS == nil {
		cfg.AWS = loadAWS
	}
	settings, settingsErr := ReadSettings(cfg.Env)
	if cfg.NeedDeadLetters && settings.DeadLettersURL == "" {
		settingsErr = errors.Join(settingsErr, fmt.Errorf("%w: ADJOURN_DEAD_LETTERS_URL=%q: use the URL of the SQS queue of dead letters, https://…", app.ErrInvalidSetting, ""))
	}
	registry, err := cfg.Registry()
	if err != nil {
		err = fmt.Errorf("registry of agents: %w", err)
	}
	config, awsErr := cfg.AWS(ctx)
	if err := errors.Join(settingsErr, err, awsErr); err != nil {
		return nil, err
	}
	registry = registry.Offered(settings.Lab)
	log := slog.New(slog.DiscardHandler)
	if cfg.Log != nil {
		log = cfg.Log(settings.LogLevel)
	}
	parts, err := connect(config, settings, cfg, log)
	if err != nil {
		return nil, err
	}
	if cfg.Decorate != nil {
		parts = cfg.Decorate(parts)
	}
	sender, err := sendNotices(config, settings, cfg, parts.Store, log)
	if err != nil {
		return nil, err
	}
	parts.Store = writeNotices(config, settings, parts.Store, log)
	a := &App{Notices: sender, Registry: registry, Settings: settings, Queue: parts.Queue, DeadLetters: parts.DeadLetters, Log: log, Now: cfg.Now}
	a.Runtime, err = runtime.New(runtime.Config{
		Registry: registry, Store: parts.Store, Queue: parts.Queue, DeadLetters: parts.DeadLetters,
		// A process on Lambda cannot be told from one that died: its lease lapses by time.
		ToolPolicy: settings.Policy,
		Env:        agent.Env(cfg.Env), Files: app.FilesBeside("", settings.LabFolder, app.FilesFolder(registry), true), Owner: app.NewID(), Now: cfg.Now, NewID: app.NewID,
		Lease: settings.Lease, StepsPerInvocation: settings.StepsPerInvocation, CacheBytes: cfg.CacheBytes,
		StepBytes: cfg.StepBytes, ToolsAtOnce: cfg.ToolsAtOnce, SweepAtOnce: cfg.SweepAtOnce, Log: log,
		SendOnGo: cfg.NeedDeadLetters, // the sweep's function alone may look at all that is due
		OnEntry:  func(key session.Key, e runtime.Progress) { logFailedTask(log, key, e) },
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// logFailedTask writes the line that the template's alarm TasksFailed counts: which
// session, and why as a code, for what a failure says may be somebody's text.
func logFailedTask(log *slog.Logger, key session.Key, e runtime.Progress) {
	if e.Status == session.StatusFailed {
		log.Error("task failed", "session", key.ID, "tenant", key.Tenant, "seq", e.Seq, "failure", e.Failure)
	}
}
