package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue/queuetest"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) store.Store { return saboteur{open(t, datafile.Memory).Store()} })
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) store.Store { return saboteur{open(t, file(t)).Store()} })
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "file"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
				path := datafile.Memory
				if name == "file" {
					path = file(t)
				}
				db := openConfig(t, Config{Path: path, MaxReceives: 3})
				return queuetest.Fixture{Queue: db.Queue(), DeadLetters: db.DeadLetters(), MaxReceives: 3, Second: 250 * time.Millisecond}
			})
		})
	}
}

// file returns the path of a file in a folder that does not exist yet.
func file(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "adjourn.db")
}

func open(t testing.TB, path string) *DB {
	t.Helper()
	return openConfig(t, Config{Path: path})
}

func openConfig(t testing.TB, cfg Config) *DB {
	t.Helper()
	db, err := Open(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// runSQL changes a file as another program would, and makes it if there is none.
func runSQL(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// saboteur does to a journal what the port cannot.
type saboteur struct{ *Store }

var (
	_ storetest.Saboteur = saboteur{}
	_ storetest.Queued   = saboteur{}
)

func (s saboteur) RemoveEntry(ctx context.Context, key session.Key, seq int64) error {
	return s.damage(ctx, key, "DELETE FROM entries WHERE eid=%d", seq)
}

func (s saboteur) SpoilEntry(ctx context.Context, key session.Key, seq int64) error {
	return s.damage(ctx, key, "UPDATE entries SET payload=x'7b7d' WHERE eid=%d", seq)
}

func (s saboteur) SpoilItem(ctx context.Context, key session.Key, kind store.ItemKind, id string) error {
	if kind == store.KindHead {
		return s.damage(ctx, key, "UPDATE sessions SET head='{' WHERE sid<<32=%d", 0)
	}
	return s.damage(ctx, key, "UPDATE items SET payload='{' WHERE sid<<32=%d AND id='"+id+"'", 0)
}

// Queued returns what is in the queue.
func (s saboteur) Queued(ctx context.Context) (wakes []journal.Wake, err error) {
	err = s.db.do(ctx, &testOp{f: func(w *writer) error {
		return w.c.Query(stmtVisible, func(values row.Values) bool {
			wakes = append(wakes, journal.Wake{V: int(values.Int(7)), Tenant: values.Text(3), ID: values.Text(4), Seq: values.Int(5), Kind: journal.WakeKind(values.Text(6))})
			return true
		}, int64(0), int64(math.MaxInt64), int64(1000))
	}})
	return wakes, err
}

// damage runs a statement that names an entry's number.
func (s saboteur) damage(ctx context.Context, key session.Key, sql string, seq int64) error {
	return s.db.do(ctx, &testOp{f: func(w *writer) error {
		sid, err := w.sid(key)
		if err != nil {
			return err
		}
		return w.c.Script(fmt.Sprintf(sql, sid<<seqBits|seq))
	}})
}

// testOp runs a function on the writer, inside a transaction.
type testOp struct {
	job
	f func(w *writer) error
}

func (o *testOp) run(w *writer) error { return o.f(w) }

var crashKey = session.Key{Tenant: session.DefaultTenant, ID: "crash"}

func plainEntry(seq int64) journal.Entry {
	e := journal.Entry{
		V: journal.Format, Seq: seq, Kind: session.KindStepped, At: time.Now().UTC(), Status: session.StatusRunning,
		Attempt: session.Attempt{ID: "a" + strconv.FormatInt(seq, 10)},
	}
	if seq == 1 {
		e.Kind = session.KindStarted
	}
	return e
}

func plainHead(key session.Key) journal.Head {
	now := time.Now()
	return journal.Head{Key: key, Status: session.StatusRunning, Agent: "lab", StatusSeq: 1, CreatedAt: now, UpdatedAt: now}
}
