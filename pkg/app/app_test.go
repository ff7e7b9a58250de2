package app_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func registry() (*agent.Registry, error) {
	return agent.NewRegistry(agent.Config{Agents: []agent.Agent{{
		Name: "hello", Planner: agent.PlannerFunc(func(context.Context, agent.View) (agent.Reply, error) { return agent.Reply{Text: "hello"}, nil }),
	}}})
}

func none(string) string { return "" }

// counting counts commits on their way through.
type counting struct {
	store.Store
	commits atomic.Int64
}

func (c *counting) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	c.commits.Add(1)
	return c.Store.Commit(ctx, p)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "deep", "er", "adjourn.db")
	var entries atomic.Int64
	counter := &counting{}
	a, err := app.Open(t.Context(), app.Config{
		Registry: registry, Data: data, Env: none,
		Decorate: func(p app.Parts) app.Parts {
			counter.Store = p.Store
			p.Store = counter
			return p
		},
		OnEntry: func(session.Key, runtime.Progress) { entries.Add(1) },
	})
	require.NoError(t, err)
	require.Equal(t, data, a.Data)
	started, err := a.Runtime.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant}, Agent: "hello", Input: "hi"})
	require.NoError(t, err)
	require.NoError(t, a.Runtime.Drive(t.Context(), started.Key, a.Only(started.Key)))
	m, err := a.Runtime.Manifest(t.Context(), started.Key)
	require.NoError(t, err)
	require.Equal(t, "hello", m.FinalMessage)
	require.Positive(t, counter.commits.Load(), "the decorated store is the one that is used")
	require.Equal(t, counter.commits.Load(), entries.Load())
	require.NotNil(t, a.Queue())
	require.NoError(t, a.Close())

	a, err = app.Open(t.Context(), app.Config{Registry: registry, Data: data, Env: none, Existing: true})
	require.NoError(t, err)
	_, err = a.Runtime.Session(t.Context(), started.Key)
	require.NoError(t, err, "it is still there")
	require.NoError(t, a.Close())
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := errors.New("two agents of one name")
	for name, c := range map[string]struct {
		cfg  app.Config
		want error
	}{
		"no data":          {app.Config{Registry: registry, Data: filepath.Join(dir, "x", "a.db"), Env: none, Existing: true}, app.ErrNoData},
		"bad setting":      {app.Config{Registry: registry, Env: func(string) string { return "x" }}, app.ErrInvalidSetting},
		"bad registry":     {app.Config{Registry: func() (*agent.Registry, error) { return nil, bad }, Data: filepath.Join(dir, "a.db"), Env: none}, bad},
		"folder is a file": {app.Config{Registry: registry, Data: filepath.Join(file(t, dir), "b.db"), Env: none}, store.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := app.Open(t.Context(), c.cfg)
			require.ErrorIs(t, err, c.want)
		})
	}
	_, err := app.Open(t.Context(), app.Config{})
	require.Error(t, err)
	require.NoDirExists(t, filepath.Join(dir, "x"))
	require.NoFileExists(t, filepath.Join(dir, "a.db"))
}

func file(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}

func TestDefaultFolderIsNotCommitted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, data := range []string{filepath.Join(dir, app.DefaultData), filepath.Join(dir, "mine", "a.db")} {
		a, err := app.Open(t.Context(), app.Config{Registry: registry, Data: data, Env: none})
		require.NoError(t, err)
		require.NoError(t, a.Close())
		info, err := os.Stat(filepath.Dir(data))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "sessions are nobody else's business")
	}
	require.FileExists(t, filepath.Join(dir, ".adjourn", ".gitignore"))
	require.NoFileExists(t, filepath.Join(dir, "mine", ".gitignore"))
}

func TestReadSettings(t *testing.T) {
	t.Parallel()
	s, err := app.ReadSettings(none)
	require.NoError(t, err)
	require.Equal(t, app.Settings{Data: app.DefaultData, StepsPerInvocation: 16, Lease: 20 * time.Second, LogLevel: slog.LevelWarn}, s)

	env := map[string]string{
		"ADJOURN_DATA": "x.db", "ADJOURN_AGENT": "lab", "ADJOURN_MODEL": "openai:m", "ADJOURN_LEASE": "1m",
		"ADJOURN_STEPS_PER_INVOCATION": "7", "ADJOURN_LOG": "debug",
	}
	s, err = app.ReadSettings(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, app.Settings{Data: "x.db", Agent: "lab", Model: "openai:m", Lease: time.Minute, StepsPerInvocation: 7, LogLevel: slog.LevelDebug}, s)
	env["ADJOURN_LOG"] = "OFF"
	s, err = app.ReadSettings(func(name string) string { return env[name] })
	require.NoError(t, err)
	require.Equal(t, app.LogOff, s.LogLevel)

	for name, values := range map[string][]string{
		"ADJOURN_LEASE": {"soon", "10", "1ms", "-5s"}, "ADJOURN_STEPS_PER_INVOCATION": {"0", "-1", "many", "1.5"}, "ADJOURN_LOG": {"loud"},
	} {
		for _, value := range values {
			_, err := app.ReadSettings(func(n string) string { return map[string]string{name: value}[n] })
			require.ErrorIs(t, err, app.ErrInvalidSetting, "%s=%s", name, value)
			require.ErrorContains(t, err, name)
		}
	}
	_, err = app.ReadSettings(func(string) string { return "x" })
	require.ErrorContains(t, err, "ADJOURN_LEASE")
	require.ErrorContains(t, err, "ADJOURN_LOG", "every mistake is told at once")
}

func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := app.NewID()
		require.Regexp(t, `^[a-z2-7]{20}$`, id)
		require.NoError(t, session.Key{Tenant: session.DefaultTenant, ID: id}.Validate())
		require.False(t, seen[id])
		seen[id] = true
	}
}
