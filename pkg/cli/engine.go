package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/tool"
)

// engine is what commands do with sessions, wherever those live: in a data file
// of this machine, or behind a server. Refusals are *runtime.Error on both sides.
type engine interface {
	Start(ctx context.Context, p runtime.StartParams) (runtime.Started, error)
	Submit(ctx context.Context, p runtime.SubmitParams) (runtime.Submitted, error)
	Resume(ctx context.Context, p runtime.ResumeParams) (runtime.Resumed, error)
	Decide(ctx context.Context, p runtime.DecideParams) (runtime.Resumed, error)
	Manifest(ctx context.Context, key session.Key) (session.Manifest, error)
	Waits(ctx context.Context, key session.Key) ([]session.WaitRecord, error)
	Journal(ctx context.Context, key session.Key) ([]session.Entry, error)
	Sessions(ctx context.Context, p runtime.SessionsParams) (runtime.SessionsPage, error)
	Inbox(ctx context.Context, p runtime.InboxParams) (runtime.InboxPage, error)
	// Drive stays with a session until it rests, or until ctx ends.
	Drive(ctx context.Context, key session.Key) error
	// Agents names the agents there are; nil where this program cannot know.
	Agents() []string
	// Tool returns the definition of an agent's tool, where this program has it.
	Tool(agent, name string) (tool.Tool, bool)
	Close() error
}

// local is the engine on a data file; whoever drives a session works on it.
type local struct {
	*runtime.Runtime
	app *embedded.App
}

func (l local) Drive(ctx context.Context, key session.Key) error {
	return l.Runtime.Drive(ctx, key, l.app.Only(key))
}

func (l local) Agents() []string                          { return agentNames(l.app.Registry) }
func (l local) Tool(agent, name string) (tool.Tool, bool) { return l.app.Registry.Tool(agent, name) }
func (l local) Close() error                              { return l.app.Close() }

// open opens the engine a command speaks to. With existing, a data file that is
// not there is [embedded.ErrNoData].
func (c *cli) open(ctx context.Context, existing bool) (engine, error) {
	if c.remote() {
		return c.openServer()
	}
	a, err := c.openData(ctx, existing)
	if err != nil {
		return nil, err
	}
	return local{Runtime: a.Runtime, app: a}, nil
}

// openData opens the embedded engine on the data file.
func (c *cli) openData(ctx context.Context, existing bool) (*embedded.App, error) {
	c.progress = newProgress(c)
	return embedded.Open(ctx, embedded.Config{
		Registry: c.Registry, Data: c.where.data, Existing: existing, Env: c.Env, Log: c.log(), Decorate: c.Decorate, Now: c.Now,
		OnEntry: func(key session.Key, p runtime.Progress) {
			c.progress.entry(p)
			if c.watch != nil {
				c.watch(key, p)
			}
		},
		OnDelta: func(_ session.Key, e llm.Event) { c.progress.delta(e) },
	})
}

// look opens the engine for a command that only lists: where there is no data
// file there is nothing to list, and none is made.
func (c *cli) look(ctx context.Context, list func(engine) error) error {
	e, err := c.open(ctx, true)
	if errors.Is(err, embedded.ErrNoData) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.close(e)
	return list(e)
}

// close gives the engine back; work that is done stays done.
func (c *cli) close(e interface{ Close() error }) {
	if err := e.Close(); err != nil {
		c.complain("%v", err)
	}
}

// log is for what goes wrong, and with ADJOURN_LOG for more.
func (c *cli) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(lineWriter{c}, &slog.HandlerOptions{Level: c.logLevel()}))
}

func (c *cli) logLevel() slog.Level {
	settings, err := app.ReadSettings(c.Env)
	if err != nil {
		return slog.LevelWarn // embedded.Open reports the mistake
	}
	if c.quiet {
		return max(settings.LogLevel, slog.LevelError)
	}
	return settings.LogLevel
}
