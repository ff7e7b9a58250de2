package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/storetest"
)

// The store of the simulation keeps the contract of the port, while nothing is
// throttled and no index lags.
func TestStoreKit(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		path := filepath.Join(t.TempDir(), "data", "adjourn.db")
		db, err := sqlite.Open(context.Background(), sqlite.Config{Path: path, Owner: "simulation"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return spoiler{path: path, table: newTable(db.Store(), tableConfig{
			partitionWrites: partitionWrites, listShards: listShards,
			latency:   func(string, session.Key) time.Duration { return 0 },
			fault:     func(context.Context, string, session.Key) error { return nil },
			committed: func(session.Key, *journal.Entry) {},
		})}
	})
}

// spoiler damages what lies in the file beneath a table.
type spoiler struct {
	*table
	path string
}

var _ storetest.Saboteur = spoiler{}

// RemoveEntry takes an entry out of a journal.
func (s spoiler) RemoveEntry(ctx context.Context, key session.Key, seq int64) error {
	return s.damage(ctx, "DELETE FROM entries WHERE eid = "+sid+" << 32 | ?", key.Tenant, key.ID, seq)
}

// SpoilEntry makes an entry unreadable.
func (s spoiler) SpoilEntry(ctx context.Context, key session.Key, seq int64) error {
	return s.damage(ctx, "UPDATE entries SET payload = x'7b7d' WHERE eid = "+sid+" << 32 | ?", key.Tenant, key.ID, seq)
}

// SpoilItem makes a record unreadable.
func (s spoiler) SpoilItem(ctx context.Context, key session.Key, kind store.ItemKind, id string) error {
	if kind == store.KindHead {
		return s.damage(ctx, "UPDATE sessions SET head = '{' WHERE tenant = ? AND id = ?", key.Tenant, key.ID)
	}
	return s.damage(ctx, "UPDATE items SET payload = '{' WHERE sid = "+sid+" AND id = ?", key.Tenant, key.ID, id)
}

const sid = "(SELECT sid FROM sessions WHERE tenant = ? AND id = ?)"

// damage changes one row.
func (s spoiler) damage(ctx context.Context, statement string, args ...any) (err error) {
	db, err := sql.Open("sqlite", s.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out, err := db.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := out.RowsAffected(); n != 1 || err != nil {
		return fmt.Errorf("%d rows were damaged: %w", n, err)
	}
	return nil
}
