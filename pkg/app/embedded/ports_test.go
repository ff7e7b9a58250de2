package embedded_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

func start(t *testing.T, a *embedded.App) (session.Key, error) {
	t.Helper()
	started, err := a.Runtime.Start(t.Context(), runtime.StartParams{Key: session.Key{Tenant: session.DefaultTenant}, Agent: "hello", Input: llm.TextParts("hi")})
	return started.Key, err
}

// A file that is opened for reading is read and not changed, and none is made.
func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "new", "a.db")
	_, err := embedded.Open(t.Context(), embedded.Config{Registry: registry, Data: data, Env: none, ReadOnly: true})
	require.ErrorIs(t, err, embedded.ErrNoData)
	require.NoDirExists(t, filepath.Dir(data))
	a, err := embedded.Open(t.Context(), embedded.Config{Registry: registry, Data: data, Env: none})
	require.NoError(t, err)
	key, err := start(t, a)
	require.NoError(t, err)
	require.NoError(t, a.Close())

	before, err := os.ReadFile(data) //nolint:gosec // our own file
	require.NoError(t, err)
	a, err = embedded.Open(t.Context(), embedded.Config{Registry: registry, Data: data, Env: none, ReadOnly: true})
	require.NoError(t, err)
	s, err := a.Runtime.Session(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, session.StatusRunning, s.Status)
	_, err = start(t, a)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "opened for reading only")
	require.NoError(t, a.Close())
	after, err := os.ReadFile(data) //nolint:gosec // as above
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// What the environment says and what the caller hands in reach the parts.
func TestOpenHandsOn(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	env := map[string]string{"ADJOURN_DATA": filepath.Join(t.TempDir(), "a.db"), "ADJOURN_LEASE": "7s"}
	a, err := embedded.Open(t.Context(), embedded.Config{
		Registry: registry, Env: func(name string) string { return env[name] }, Now: func() time.Time { return noon },
	})
	require.NoError(t, err)
	require.Equal(t, env["ADJOURN_DATA"], a.Data)
	require.Equal(t, 7*time.Second, a.Settings.Lease)
	_, err = start(t, a)
	require.NoError(t, err)
	page, err := a.Runtime.Sessions(t.Context(), runtime.SessionsParams{Tenant: session.DefaultTenant})
	require.NoError(t, err)
	require.Len(t, page.Heads, 1)
	require.Equal(t, noon, page.Heads[0].CreatedAt)
	got, err := a.Queue().Receive(t.Context(), queue.ReceiveParams{Visibility: time.Minute})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, noon, got[0].SentAt, "the queue has the same clock")
	require.NoError(t, a.Close())
}
