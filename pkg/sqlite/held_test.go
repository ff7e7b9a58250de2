package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// A process stopped in the middle of a transaction holds the file until it goes
// on. Whoever opens it meanwhile is told so in the time a statement waits, also
// when that process had not come further than making the file.
func TestHeldFile(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"in its first moment": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			if !first {
				db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
				require.NoError(t, err)
				require.NoError(t, db.Close())
			}
			holder, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, holder.Close()) })
			stopped, err := holder.Conn(t.Context())
			require.NoError(t, err)
			_, err = stopped.ExecContext(t.Context(), "BEGIN IMMEDIATE")
			require.NoError(t, err)

			began := time.Now()
			_, err = sqlite.Open(context.Background(), sqlite.Config{Path: path})
			t.Log(time.Since(began))
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorContains(t, err, "another process has held the data file")

			_, err = stopped.ExecContext(t.Context(), "ROLLBACK")
			require.NoError(t, err)
			require.NoError(t, stopped.Close())
			db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
			require.NoError(t, err)
			require.NoError(t, db.Close())
		})
	}
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
