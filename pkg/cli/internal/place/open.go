package place

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/adjourn/adjourn/internal/private"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// PauseFile is written beside the data file when a session pauses: the manifest
// once more, for scripts that lost stdout.
const PauseFile = "pause.json"

// Open connects a command to the sessions. With existing, a data file that is
// not there is [embedded.ErrNoData].
func (p *Place) Open(ctx context.Context, existing bool) (*Connection, error) {
	if p.Remote() {
		return p.openServer()
	}
	a, err := p.OpenData(ctx, existing)
	if err != nil {
		return nil, err
	}
	return p.over(a)
}

// OpenReading is Open for a command that changes nothing: it waits for nobody, and
// needs no right to write.
func (p *Place) OpenReading(ctx context.Context) (*Connection, error) {
	if p.Remote() {
		return p.openServer()
	}
	a, err := p.openData(ctx, embedded.Config{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return p.over(a)
}

// over is [Place.Over]; what was opened is closed where that fails.
func (p *Place) over(a *embedded.App) (*Connection, error) {
	c, err := p.Over(a)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return c, nil
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
	cfg.OnHalt = func(_ session.Key, halt session.Halt) { p.tellHalt(halt) }
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
// if lab, or the environment, says so. A policy takes the place of that of the environment. An unknown file is asked about as by
// [Place.OpenData].
func (p *Place) Serve(ctx context.Context, lab bool, policy *session.ToolPolicy) (*embedded.App, error) {
	return p.openData(ctx, embedded.Config{Server: true, Lab: lab, ToolPolicy: policy})
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
