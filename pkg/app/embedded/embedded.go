// Package embedded wires a registry of agents to the embedded engine: one data file, no server.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// ErrNoData says that the data file does not exist and was not asked to be made.
var ErrNoData = errors.New("no data file")

// Config says what to open.
type Config struct {
	// Registry of the agents; required.
	Registry func() (*agent.Registry, error)
	// Data is the path of the data file; empty means [app.Settings.Data].
	Data string
	// Existing refuses to make a data file that is not there, with [ErrNoData].
	Existing bool
	// Server says that others than the person at this terminal may call: then agents
	// marked as Trial are offered only if Lab or [app.Settings.Lab] says so.
	Server bool
	Lab    bool
	// ToolPolicy takes the place of [app.Settings.Policy].
	ToolPolicy *session.ToolPolicy
	// ReadOnly opens the file for reading: no verb that changes something works, and
	// it needs no right to write. It implies Existing.
	ReadOnly bool
	// Wait is how long a write waits for another process that holds the file; 0 means 10 s.
	Wait time.Duration
	// OnLocked is told whom a write has been waiting for, and goes on waiting for; nil
	// means that it goes to the log.
	OnLocked func(sqlite.Holder)
	// OnCreate is told what the data file will be known by when this call makes it; see
	// [sqlite.Config].
	OnCreate func(sqlite.Identity)
	// HoldLog leaves a log that nobody known has written as it is until [App.AcceptLog]; see
	// [sqlite.Config].
	HoldLog bool
	// Env reads a variable of the environment; nil means [os.Getenv].
	Env func(string) string
	// Log of the runtime; nil means none.
	Log *slog.Logger
	// Decorate may put something around the ports; a test's door.
	Decorate func(app.Parts) app.Parts
	// Now is the clock; nil means the machine's.
	Now func() time.Time
	// OnEntry and OnDelta are told what happens while a session is worked on.
	OnEntry func(session.Key, runtime.Progress)
	OnDelta func(session.Key, llm.Event)
	// OnHalt is told each time a session is found that does no step because of a halt.
	OnHalt func(session.Key, session.Halt)
}

// App is an opened engine.
type App struct {
	Runtime  *runtime.Runtime
	Registry *agent.Registry
	Settings app.Settings
	// Data is the path of the data file.
	Data string

	parts   app.Parts
	db      *sqlite.DB
	notices *notices
}

// Open reads the settings, builds the registry and opens the data file, making
// it if need be. Wrong settings are [app.ErrInvalidSetting].
func Open(ctx context.Context, cfg Config) (*App, error) {
	if cfg.Registry == nil {
		return nil, errors.New("open: no registry given")
	}
	env := cfg.Env
	if env == nil {
		env = os.Getenv
	}
	settings, err := app.ReadSettings(env)
	if err != nil {
		return nil, err
	}
	data := cfg.Data
	if data == "" {
		data = settings.Data
	}
	build := building(cfg.Registry)
	fresh, there, err := prepare(data, cfg.Existing || cfg.ReadOnly)
	if !there || err != nil { // no file is made for a registry with mistakes
		if _, mistakes := build(); mistakes != nil || err != nil {
			return nil, cmp.Or(mistakes, err)
		}
	}
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	owner := sqlite.NewOwner()
	onLocked := cfg.OnLocked
	if onLocked == nil && cfg.Log != nil {
		onLocked = func(h sqlite.Holder) {
			cfg.Log.Warn("waiting: "+h.String(), "code", runtime.CodeStoreLocked, "pid", h.PID, "state", h.State)
		}
	}
	db, err := sqlite.Open(ctx, sqlite.Config{Path: data, Owner: owner, Now: now, ReadOnly: cfg.ReadOnly, Wait: cfg.Wait, OnLocked: onLocked, OnCreate: cfg.OnCreate, HoldLog: cfg.HoldLog, Listen: true})
	registry, mistakes := build()
	switch {
	case mistakes != nil && err == nil:
		return nil, errors.Join(mistakes, db.Close())
	case mistakes != nil || err != nil:
		return nil, cmp.Or(mistakes, err) // err names the file
	}
	registry = registry.Offered(!cfg.Server || cfg.Lab || settings.Lab)
	if fresh {
		if err := ignore(filepath.Dir(data)); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	a := &App{
		Registry: registry, Settings: settings, Data: data, db: db,
		parts: app.Parts{
			Store: db.Store(), Queue: db.Queue(), DeadLetters: db.DeadLetters(),
			Only: func(key session.Key) queue.Queue { return db.Queue().Only(key) },
		},
	}
	if cfg.Decorate != nil {
		a.parts = cfg.Decorate(a.parts)
	}
	if !cfg.ReadOnly {
		if a.parts.Store, a.notices, err = openNotices(settings.Notices, a.parts.Store, now, cfg.Log); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	a.Runtime, err = runtime.New(runtime.Config{
		Registry: registry, Store: a.parts.Store, Queue: a.parts.Queue, DeadLetters: a.parts.DeadLetters,
		ToolPolicy: cmp.Or(cfg.ToolPolicy, settings.Policy),
		Env:        agent.Env(env), OpenAtStart: true, Owner: owner, Now: now, NewID: app.NewID,
		Files: app.FilesBeside(data, settings.LabFolder, app.FilesFolder(registry), cfg.Server),
		// A signal is seen sooner than on AWS: a look costs no request.
		WatchEvery: 100 * time.Millisecond,
		Lease:      settings.Lease, StepsPerInvocation: settings.StepsPerInvocation,
		Log: cfg.Log, OnEntry: cfg.OnEntry, OnDelta: cfg.OnDelta, OnHalt: cfg.OnHalt,
		SendOnGo: true,
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return a, nil
}

// Queue brings the work of every session.
func (a *App) Queue() queue.Queue { return a.parts.Queue }

// Only brings the work of one session.
func (a *App) Only(key session.Key) queue.Queue { return a.parts.Only(key) }

// Identity tells the data file from every other; see [sqlite.Identity].
func (a *App) Identity() sqlite.Identity { return a.db.Identity() }

// GiveIdentity gives one to a data file of an earlier program; see [sqlite.DB.GiveIdentity].
func (a *App) GiveIdentity(ctx context.Context) (sqlite.Identity, error) {
	return a.db.GiveIdentity(ctx)
}

// AcceptLog says that a log that was found counts; see [sqlite.DB.AcceptLog].
func (a *App) AcceptLog() { a.db.AcceptLog() }

// Tenants returns whose sessions are in the data file, at most so many.
func (a *App) Tenants(ctx context.Context, most int) ([]string, error) {
	return a.db.Tenants(ctx, most)
}

// Close gives the data file back. Notices that this process wrote and nobody sends are tried before,
// for a short time.
func (a *App) Close() error {
	a.notices.flush()
	if err := a.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", a.Data, err)
	}
	return nil
}

// building builds a registry beside what else an opening has to do, and returns what waits for it.
func building(registry func() (*agent.Registry, error)) func() (*agent.Registry, error) {
	build := sync.OnceValues(func() (*agent.Registry, error) {
		r, err := registry()
		if err != nil {
			return nil, fmt.Errorf("registry of agents: %w", err)
		}
		return r, nil
	})
	go build() //nolint:errcheck // whoever waits for it gets the error
	return build
}

// prepare refuses a data file that is not there and has to be, and reports whether its folder is
// one of ours that will be made, and whether the file is there.
func prepare(data string, existing bool) (fresh, there bool, err error) {
	if data == app.Memory {
		return false, false, nil
	}
	_, err = os.Stat(data)
	switch {
	case err == nil:
		return false, true, nil
	case existing && errors.Is(err, fs.ErrNotExist):
		return false, false, fmt.Errorf("%w: %s", ErrNoData, data)
	case existing:
		return false, false, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	dir := filepath.Dir(data)
	_, err = os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist) && filepath.Base(dir) == filepath.Dir(app.DefaultData), false, nil
}

// ignore keeps a folder out of git: sessions hold whole conversations; nobody
// means to commit them.
func ignore(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}
