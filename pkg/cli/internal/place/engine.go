package place

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"

	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/remote"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/tool"
)

// Engine is what commands do with sessions, wherever those live: in a data file
// of this machine, or behind a server. Refusals are *runtime.Error on both sides.
type Engine interface {
	Start(ctx context.Context, p runtime.StartParams) (runtime.Started, error)
	Submit(ctx context.Context, p runtime.SubmitParams) (runtime.Submitted, error)
	Resume(ctx context.Context, p runtime.ResumeParams) (runtime.Resumed, error)
	Decide(ctx context.Context, p runtime.DecideParams) (runtime.Resumed, error)
	Manifest(ctx context.Context, key session.Key) (session.Manifest, error)
	Waits(ctx context.Context, key session.Key) ([]journal.WaitRecord, error)
	Journal(ctx context.Context, key session.Key) ([]journal.Entry, error)
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
	*remote.Engine
	app *embedded.App
}

// newLocal speaks to a data file as to a server, in this process.
func newLocal(a *embedded.App, who string) (Engine, error) {
	handler, err := httpapi.New(httpapi.Config{
		Runtime: a.Runtime, InProcess: true, MaxBody: math.MaxInt64,
		Authenticate: func(*http.Request) (httpapi.Caller, error) {
			return httpapi.Caller{Tenant: session.DefaultTenant, Who: who, From: "cli"}, nil
		},
	})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	e, err := remote.New(remote.Config{Client: client.Over(handler)})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return local{Engine: e, app: a}, nil
}

func (l local) Drive(ctx context.Context, key session.Key) error {
	return l.app.Runtime.DriveAfter(ctx, key, l.app.Only(key), l.Told(key))
}
func (l local) Agents() []string                          { return l.app.Registry.Names() }
func (l local) Tool(agent, name string) (tool.Tool, bool) { return l.app.Registry.Tool(agent, name) }
func (l local) Close() error                              { return l.app.Close() }

// PauseFile is written beside the data file when a session pauses: the manifest
// once more, for scripts that lost stdout.
const PauseFile = "pause.json"

// Open opens the engine a command speaks to. With existing, a data file that is
// not there is [embedded.ErrNoData].
func (p *Place) Open(ctx context.Context, existing bool) (Engine, error) {
	if p.Remote() {
		return p.openServer()
	}
	a, err := p.OpenData(ctx, existing)
	if err != nil {
		return nil, err
	}
	return newLocal(a, p.Who)
}

// OpenReading is Open for a command that changes nothing: it waits for nobody, and
// needs no right to write.
func (p *Place) OpenReading(ctx context.Context) (Engine, error) {
	if p.Remote() {
		return p.openServer()
	}
	a, err := p.openData(ctx, embedded.Config{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return newLocal(a, p.Who)
}

// OpenData opens the embedded engine on the data file, to work on it: one that this
// user has never used is asked about, or is [known.ErrUntrusted].
func (p *Place) OpenData(ctx context.Context, existing bool) (*embedded.App, error) {
	return p.openData(ctx, embedded.Config{Existing: existing})
}

// openData opens the embedded engine. Whatever may work on the file goes through the
// question here.
func (p *Place) openData(ctx context.Context, cfg embedded.Config) (*embedded.App, error) {
	if !cfg.ReadOnly {
		private.Tidy(filepath.Join(filepath.Dir(p.DataPath()), PauseFile))
		private.Tidy(p.Scratch())
		cfg.OnCreate, cfg.HoldLog = p.remember, true
	}
	p.Screen.ShowProgress()
	cfg.Registry, cfg.Data, cfg.Env, cfg.Log, cfg.Decorate, cfg.Now = p.Registry, p.data, p.Env, p.Log(), p.Decorate, p.Now
	cfg.Wait = p.Patience
	cfg.OnLocked = func(h sqlite.Holder) { p.Screen.Talk("Waiting: %v", &h) }
	cfg.OnEntry = func(key session.Key, e runtime.Progress) {
		p.Screen.Entry(e)
		if p.Watch != nil {
			p.Watch(key, e)
		}
	}
	cfg.OnDelta = func(_ session.Key, e llm.Event) { p.Screen.Delta(e) }
	a, err := embedded.Open(ctx, cfg)
	if err != nil || cfg.ReadOnly {
		return a, err
	}
	if err := p.checkKnown(ctx, a); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Serve opens the embedded engine on the data file for a server, where others than
// the person at this terminal may call. Agents marked as Trial are offered there only
// if lab, or the environment, says so. An unknown file is asked about as by
// [Place.OpenData].
func (p *Place) Serve(ctx context.Context, lab bool) (*embedded.App, error) {
	return p.openData(ctx, embedded.Config{Server: true, Lab: lab})
}

// Log is for what goes wrong, and with ADJOURN_LOG for more.
func (p *Place) Log() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Screen.Lines(), &slog.HandlerOptions{Level: p.logLevel()}))
}

func (p *Place) logLevel() slog.Level {
	settings, err := app.ReadSettings(p.Env)
	if err != nil {
		return slog.LevelWarn // embedded.Open reports the mistake
	}
	if p.Screen.Quiet {
		return max(settings.LogLevel, slog.LevelError)
	}
	return settings.LogLevel
}
