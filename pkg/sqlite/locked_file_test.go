package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// A transaction that does not end keeps others from writing, and from nothing else.
func TestHeldFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	holder, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, holder.Close()) })
	stopped, err := holder.Conn(t.Context())
	require.NoError(t, err)
	_, err = stopped.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)

	db, err = sqlite.Open(t.Context(), sqlite.Config{Path: path, Wait: 20 * time.Millisecond})
	require.NoError(t, err, "who opens a file writes nothing")
	_, err = db.Store().Find(t.Context(), store.FindParams{Kind: store.FindDue})
	require.NoError(t, err)
	wake := journal.NewWake(session.Key{Tenant: "t", ID: "s"}, 1, journal.WakeStep)
	err = db.Queue().Send(t.Context(), wake)
	require.ErrorIs(t, err, store.ErrLocked)
	require.ErrorIs(t, err, queue.ErrUnavailable)
	require.ErrorContains(t, err, "waited 20ms")

	patient, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Wait: 24 * time.Hour})
	require.NoError(t, err)
	require.NoError(t, patient.Queue().Acknowledge(t.Context(), queue.Delivery{Receipt: "m1.1"})) // for the writer to do
	require.NoError(t, patient.Close(), "who closes does not wait to the end")

	_, err = stopped.ExecContext(t.Context(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, stopped.Close())
	require.NoError(t, db.Queue().Send(t.Context(), wake))
	require.NoError(t, db.Close())
}

// Several processes, each with a connection of its own, make one file at once:
// none of them takes half of what another wrote for somebody else's file.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	for range 30 {
		path := filepath.Join(t.TempDir(), "a.db")
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				db, err := sqlite.Open(context.Background(), sqlite.Config{Path: path})
				if err == nil {
					err = db.Close()
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
	}
}
