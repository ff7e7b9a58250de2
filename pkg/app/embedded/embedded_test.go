package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/llm/openai"
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
	a, err := embedded.Open(t.Context(), embedded.Config{
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
	started, err := a.Runtime.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant}, Agent: "hello", Input: llm.TextParts("hi")})
	require.NoError(t, err)
	require.NoError(t, a.Runtime.Drive(t.Context(), started.Key, a.Only(started.Key)))
	m, err := a.Runtime.View(t.Context(), started.Key)
	require.NoError(t, err)
	require.Equal(t, "hello", m.Text)
	require.Positive(t, counter.commits.Load(), "the decorated store is the one that is used")
	require.Equal(t, counter.commits.Load(), entries.Load())
	require.NotNil(t, a.Queue())
	require.NoError(t, a.Close())

	a, err = embedded.Open(t.Context(), embedded.Config{Registry: registry, Data: data, Env: none, Existing: true})
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
		cfg  embedded.Config
		want error
	}{
		"no data":          {embedded.Config{Registry: registry, Data: filepath.Join(dir, "x", "a.db"), Env: none, Existing: true}, embedded.ErrNoData},
		"bad setting":      {embedded.Config{Registry: registry, Env: func(string) string { return "x" }}, app.ErrInvalidSetting},
		"bad registry":     {embedded.Config{Registry: func() (*agent.Registry, error) { return nil, bad }, Data: filepath.Join(dir, "a.db"), Env: none}, bad},
		"folder is a file": {embedded.Config{Registry: registry, Data: filepath.Join(file(t, dir), "b.db"), Env: none}, store.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := embedded.Open(t.Context(), c.cfg)
			require.ErrorIs(t, err, c.want)
		})
	}
	_, err := embedded.Open(t.Context(), embedded.Config{})
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
		a, err := embedded.Open(t.Context(), embedded.Config{Registry: registry, Data: data, Env: none})
		require.NoError(t, err)
		require.NoError(t, a.Close())
		info, err := os.Stat(filepath.Dir(data))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "sessions are nobody else's business")
	}
	require.FileExists(t, filepath.Join(dir, ".adjourn", ".gitignore"))
	require.NoFileExists(t, filepath.Join(dir, "mine", ".gitignore"))
}

// TestStart_model_does_not_open: nothing is stored, so the same id starts once the key is there.
func TestStart_model_does_not_open(t *testing.T) {
	t.Parallel()
	key := ""
	a, err := embedded.Open(t.Context(), embedded.Config{
		Data: filepath.Join(t.TempDir(), "adjourn.db"),
		Env: func(name string) string {
			return map[string]string{agent.ModelVariable: "openai:gpt-5-mini", "OPENAI_API_KEY": key}[name]
		},
		Registry: func() (*agent.Registry, error) {
			return agent.NewRegistry(agent.Config{
				Models: agent.Models{"openai": openai.Open},
				Agents: []agent.Agent{{Name: "hello", Offline: agent.Replies(agent.Reply{Text: "hello"})}},
			})
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	params := runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant, ID: "burnt"}, Agent: "hello", Input: llm.TextParts("hi")}
	_, err = a.Runtime.Start(t.Context(), params)
	require.ErrorContains(t, err, "OPENAI_API_KEY is not set")
	require.Equal(t, runtime.CodeInvalidModel, runtime.AsError(err).Code)
	_, err = a.Runtime.Session(t.Context(), params.Key)
	require.Equal(t, runtime.CodeSessionNotFound, runtime.AsError(err).Code)

	key = "sk-test"
	_, err = a.Runtime.Start(t.Context(), params)
	require.NoError(t, err)
}
