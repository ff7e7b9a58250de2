package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/queue/queuetest"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/storetest"
)

// twoStores asks two DBs of one file in turn, as two processes would: so the
// whole contract holds between them.
type twoStores struct {
	saboteur
	dbs [2]*DB
	n   atomic.Int64
}

func (s *twoStores) next() *Store { return s.dbs[s.n.Add(1)%2].Store() }

func (s *twoStores) Claim(ctx context.Context, p store.ClaimParams) (store.Item, error) {
	return s.next().Claim(ctx, p)
}

func (s *twoStores) Commit(ctx context.Context, p store.CommitParams) (store.Committed, error) {
	return s.next().Commit(ctx, p)
}

func (s *twoStores) Update(ctx context.Context, key session.Key, items ...store.Item) ([]store.Item, error) {
	return s.next().Update(ctx, key, items...)
}

func (s *twoStores) Entries(ctx context.Context, key session.Key, after int64) iter.Seq2[journal.Entry, error] {
	return s.next().Entries(ctx, key, after)
}

func (s *twoStores) Items(ctx context.Context, key session.Key, kind store.ItemKind, id string) iter.Seq2[store.Item, error] {
	return s.next().Items(ctx, key, kind, id)
}

func (s *twoStores) Find(ctx context.Context, p store.FindParams) (store.Page, error) {
	return s.next().Find(ctx, p)
}

func (s *twoStores) Delete(ctx context.Context, key session.Key) error {
	return s.next().Delete(ctx, key)
}

type twoQueues struct {
	qs [2]*Queue
	n  atomic.Int64
}

func (q *twoQueues) next() *Queue { return q.qs[q.n.Add(1)%2] }

func (q *twoQueues) Send(ctx context.Context, wakes ...journal.Wake) error {
	return q.next().Send(ctx, wakes...)
}

func (q *twoQueues) Receive(ctx context.Context, p queue.ReceiveParams) ([]queue.Delivery, error) {
	return q.next().Receive(ctx, p)
}

func (q *twoQueues) Acknowledge(ctx context.Context, ds ...queue.Delivery) error {
	return q.next().Acknowledge(ctx, ds...)
}

func (q *twoQueues) Postpone(ctx context.Context, d queue.Delivery, delay time.Duration) error {
	return q.next().Postpone(ctx, d, delay)
}

func TestTwoOnOneFile(t *testing.T) {
	t.Parallel()
	two := func(t *testing.T, max int) [2]*DB {
		path := file(t)
		cfg := Config{Path: path, MaxReceives: max}
		return [2]*DB{openConfig(t, cfg), openConfig(t, cfg)}
	}
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) store.Store {
			dbs := two(t, 0)
			return &twoStores{saboteur: saboteur{dbs[0].Store()}, dbs: dbs}
		})
	})
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
			dbs := two(t, 3)
			return queuetest.Fixture{
				Queue:       &twoQueues{qs: [2]*Queue{dbs[0].Queue(), dbs[1].Queue()}},
				DeadLetters: &twoQueues{qs: [2]*Queue{dbs[0].DeadLetters(), dbs[1].DeadLetters()}},
				MaxReceives: 3, Second: 250 * time.Millisecond,
			}
		})
	})
	t.Run("opening an empty folder at once", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				db, err := Open(context.Background(), Config{Path: path})
				if err == nil {
					err = db.Close()
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
	})
}

func TestNotOurs(t *testing.T) {
	t.Parallel()
	database := func(sql string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			runSQL(t, path, sql)
		}
	}
	for _, tt := range []struct {
		name, says string
		prepare    func(t *testing.T, path string)
	}{
		{"random bytes", "not a database", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(randomText(100_000)), 0o600))
		}},
		{"a short text", "not a database", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("shopping list: milk, eggs"), 0o600))
		}},
		{"another program's database", "another program", database("CREATE TABLE shopping (what TEXT)")},
		{"another program's application id", "another program", database("PRAGMA application_id=42; CREATE TABLE shopping (what TEXT)")},
		{"a newer version", "use a newer adjourn", func(t *testing.T, path string) {
			require.NoError(t, open(t, path).Close())
			database("PRAGMA user_version=3")(t, path)
		}},
		{"a version that never was", "it has format 0, which there never was", func(t *testing.T, path string) {
			require.NoError(t, open(t, path).Close())
			database("PRAGMA user_version=0")(t, path)
		}},
		{"a version of before the first release", "it has format 1, of before the first release, and this program reads format 2", func(t *testing.T, path string) {
			require.NoError(t, open(t, path).Close())
			database("PRAGMA user_version=1")(t, path)
		}},
		{"an empty database", "another program", database("VACUUM")},
		{"nothing in it", "it is empty (0 bytes)", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }},
		{"cut off", "it is empty (0 bytes)", func(t *testing.T, path string) {
			require.NoError(t, open(t, path).Close())
			require.NoError(t, os.Truncate(path, 0))
		}},
		{"a folder", "it is a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			tt.prepare(t, path)
			before, _ := os.ReadFile(path) //nolint:gosec // our own file
			for _, readOnly := range []bool{false, true} {
				_, err := Open(t.Context(), Config{Path: path, ReadOnly: readOnly})
				require.ErrorIs(t, err, store.ErrNotOurs)
				require.ErrorContains(t, err, tt.says)
				require.ErrorContains(t, err, path)
			}
			after, _ := os.ReadFile(path) //nolint:gosec // as above
			require.Equal(t, before, after, "it was not touched")
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	t.Run("folders and files are for their user only", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		open(t, path)
		for name, mode := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), name)
		}
	})
	t.Run("so is the file that a symlink leads to before it is there", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "real", "deep"), 0o755))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "elsewhere", "deep"), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(dir, "elsewhere", "deep"), filepath.Join(dir, "folder")))
		for name, c := range map[string]struct{ link, to, real string }{
			"absolute":        {"abs.db", filepath.Join(dir, "real", "abs.db"), "real/abs.db"},
			"relative":        {"rel.db", "real/deep/../rel.db", "real/rel.db"},
			"of a symlink":    {"two.db", "one.db", "real/one.db"},
			"through folders": {"folder/x.db", "../x.db", "elsewhere/x.db"},
			"to a new folder": {"new.db", "none/new.db", "none/new.db"},
		} {
			require.NoError(t, os.Symlink(c.to, filepath.Join(dir, c.link)), name)
			if name == "of a symlink" {
				require.NoError(t, os.Symlink("real/one.db", filepath.Join(dir, "one.db")))
			}
			db := open(t, filepath.Join(dir, c.link))
			require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
			for _, suffix := range []string{"", "-wal", "-shm"} {
				info, err := os.Lstat(filepath.Join(dir, c.real) + suffix)
				require.NoError(t, err, name)
				require.Equal(t, os.FileMode(0o600), info.Mode(), name+suffix)
			}
			info, err := os.Lstat(filepath.Join(dir, c.link))
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays a link")
			require.Len(t, receiveNow(t, open(t, filepath.Join(dir, c.real)).Queue()), 1, "it is one file under both names")
		}
	})
	t.Run("symlinks in a circle are refused", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		require.NoError(t, os.Symlink("b.db", filepath.Join(dir, "a.db")))
		require.NoError(t, os.Symlink("a.db", filepath.Join(dir, "b.db")))
		_, err := Open(t.Context(), Config{Path: filepath.Join(dir, "a.db")})
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "too many symlinks")
	})
	t.Run("the mode of a file that is there is left alone", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a.db")
		require.NoError(t, open(t, path).Close())
		require.NoError(t, os.Chmod(path, 0o640)) //nolint:gosec // that is the point
		open(t, path)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	})
	t.Run("a path with signs of its own", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a b?c=d#e%20f.db")
		require.NoError(t, open(t, path).Close())
		require.FileExists(t, path)
	})
	t.Run("no path", func(t *testing.T) {
		t.Parallel()
		_, err := Open(t.Context(), Config{})
		require.Error(t, err)
	})
	t.Run("what was written is there when it is opened again", func(t *testing.T) {
		t.Parallel()
		path := file(t)
		db := open(t, path)
		require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
		require.NoError(t, db.Close())
		require.NoError(t, db.Close(), "twice is no error")
		require.Len(t, receiveNow(t, open(t, path).Queue()), 1)
	})
	t.Run("memory is apart for each DB", func(t *testing.T) {
		t.Parallel()
		a, b := open(t, datafile.Memory), open(t, datafile.Memory)
		require.NoError(t, a.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)))
		require.Empty(t, receiveNow(t, b.Queue()))
		require.Len(t, receiveNow(t, a.Queue()), 1)
	})
	t.Run("everything fails after Close and what waits ends", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{datafile.Memory, file(t)} {
			db, err := Open(t.Context(), Config{Path: path})
			require.NoError(t, err)
			waiting := make(chan error, 1)
			go func() {
				_, err := db.Queue().Receive(t.Context(), queue.ReceiveParams{Wait: time.Hour, Visibility: time.Hour})
				waiting <- err
			}()
			require.NoError(t, db.Close())
			require.ErrorIs(t, <-waiting, queue.ErrUnavailable)
			_, err = db.Store().Find(t.Context(), store.FindParams{Kind: store.FindDue})
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorIs(t, db.Queue().Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep)), queue.ErrUnavailable)
		}
	})
}

var crash = session.Key{Tenant: session.DefaultTenant, ID: "s"}

func receiveNow(t *testing.T, q *Queue) []queue.Delivery {
	t.Helper()
	got, err := q.Receive(t.Context(), queue.ReceiveParams{Max: 64, Visibility: time.Hour})
	require.NoError(t, err)
	return got
}

// TestFailedCommit: when a transaction fails as a whole, each of its operations
// is told, those that can still be done are done, and nothing is half-written.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		pages, err := w.c.Number("PRAGMA page_count")
		if err != nil {
			return err
		}
		return w.c.Script(fmt.Sprintf("PRAGMA max_page_count=%d", pages+8))
	}}))
	errs := make(chan error, 16)
	hold := make(chan struct{})
	go func() { _ = db.do(context.Background(), &testOp{f: func(*writer) error { <-hold; return nil }}) }()
	for i := range cap(errs) {
		go func() {
			e := plain1(int64(1))
			if i%2 == 0 {
				e.Output = []byte(`"` + randomText(100_000) + `"`) // too big
			}
			key := session.Key{Tenant: "t", ID: fmt.Sprintf("s%d", i)}
			_, err := db.Store().Commit(context.Background(), store.CommitParams{
				Key: key, Entry: e, Items: []store.Item{store.ToolItem(journal.ToolRecord{Call: "c1-0"}, 0)},
				Wakes: []journal.Wake{journal.NewWake(key, 2, journal.WakeStep)},
			})
			if i%2 == 0 && err == nil {
				err = errors.New("it was too big and was taken")
			} else if i%2 == 0 && errors.Is(err, store.ErrUnavailable) && strings.Contains(err.Error(), "the disk is full") {
				err = nil
			}
			errs <- err
		}()
	}
	close(hold)
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.Len(t, receiveNow(t, db.Queue()), cap(errs)/2)
	for i := range cap(errs) {
		n := 0
		for _, err := range db.Store().Items(t.Context(), session.Key{Tenant: "t", ID: fmt.Sprintf("s%d", i)}, store.KindTool, "") {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, i%2, n)
	}
}

func plain1(seq int64) journal.Entry {
	return journal.Entry{V: journal.Format, Seq: seq, Kind: session.KindStarted, Status: session.StatusRunning}
}

func randomText(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// TestBubble: timers, delays and waits cost no wall time, and nothing is left running.
func TestBubble(t *testing.T) {
	t.Parallel()
	for _, path := range []string{datafile.Memory, file(t)} {
		synctest.Test(t, func(t *testing.T) {
			db := open(t, path)
			q := db.Queue()
			begin := time.Now()
			delay := 10 * time.Second
			if path == datafile.Memory {
				delay = journal.MaxAhead // nobody polls: it passes at once
			}
			late := journal.NewWake(crash, 1, journal.WakeStep)
			late.Delay = delay
			require.NoError(t, q.Send(t.Context(), late))
			got, err := q.Receive(t.Context(), queue.ReceiveParams{Wait: 2 * delay, Visibility: time.Minute})
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.InDelta(t, delay, time.Since(begin), float64(pollEvery))
			require.NoError(t, q.Acknowledge(t.Context(), got...))
			none, err := q.Receive(t.Context(), queue.ReceiveParams{Wait: time.Minute, Visibility: time.Minute})
			require.NoError(t, err)
			require.Empty(t, none, "the acknowledgement was carried out though nothing else was")
			require.NoError(t, db.Close())
		})
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	a, b := session.Key{Tenant: "t", ID: "a"}, session.Key{Tenant: "t", ID: "b"}
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(a, 1, journal.WakeStep)))
	got := make(chan []queue.Delivery, 1)
	go func() {
		d, _ := db.Queue().Only(b).Receive(t.Context(), queue.ReceiveParams{Max: 10, Wait: time.Hour, Visibility: time.Hour})
		got <- d
	}()
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(a, 2, journal.WakeStep)))
	// Sent by a commit, to the one that waits for it.
	c, err := db.Store().Commit(t.Context(), store.CommitParams{Key: b, Entry: plain1(1), Wakes: []journal.Wake{journal.NewWake(b, 3, journal.WakeStep)}})
	require.NoError(t, err)
	require.True(t, c.Enqueued)
	d := <-got
	require.Len(t, d, 1)
	require.Equal(t, b, d[0].Wake.Key())
	namesake := session.Key{Tenant: "u", ID: b.ID}
	require.NoError(t, db.Queue().Send(t.Context(), journal.NewWake(namesake, 4, journal.WakeStep)))
	require.Empty(t, receiveNow(t, db.Queue().Only(b)), "another tenant's session of that name")
	require.Len(t, receiveNow(t, db.Queue().Only(namesake)), 1)
	require.Len(t, receiveNow(t, db.Queue()), 2)
	require.Empty(t, receiveNow(t, db.Queue().Only(b)))
}

// TestDeletedStaysDeleted: a worker that was frozen while its session was deleted.
func TestDeletedStaysDeleted(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	s := db.Store()
	head := journal.Head{Key: crash, Status: session.StatusRunning}
	_, err := s.Commit(t.Context(), store.CommitParams{Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(head, 0)}})
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), crash))
	_, err = s.Commit(t.Context(), store.CommitParams{Key: crash, Entry: plain1(2)})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Update(t.Context(), crash, store.ToolItem(journal.ToolRecord{Call: "c1-0"}, 0))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Update(t.Context(), crash, store.HeadItem(head, 2))
	require.ErrorIs(t, err, store.ErrConflict, "not even by one who knows the tombstone")
	for _, err := range s.Entries(t.Context(), crash, 0) {
		require.NoError(t, err)
		require.Fail(t, "an entry of a deleted session")
	}
}
