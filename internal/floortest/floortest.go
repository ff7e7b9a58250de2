// Package floortest measures how fast the rows of plain steps can be written at all.
//
// It writes what a plain step writes (an entry, a claim, a message, the removal
// of the message before) straight into SQLite, with the settings pkg/sqlite uses,
// by one writer that commits together what has gathered. There are no
// conditions, no encoding and no reads: pkg/sqlite and the runtime above it can
// come close to this floor and never below it.
package floortest

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
)

// Result is what was measured.
type Result struct {
	Steps   int
	Elapsed time.Duration
}

// Add adds another measurement of the same.
func (r *Result) Add(other Result) {
	r.Steps += other.Steps
	r.Elapsed += other.Elapsed
}

// PerSecond returns the steps per second of all sessions together.
func (r Result) PerSecond() float64 { return float64(r.Steps) / r.Elapsed.Seconds() }

// PerStep returns how long one session's step takes, as that session sees it.
func (r Result) PerStep(sessions int) time.Duration {
	return r.Elapsed * time.Duration(sessions) / time.Duration(max(r.Steps, 1))
}

const schema = `
CREATE TABLE entries (eid INTEGER PRIMARY KEY, kind TEXT NOT NULL, run INTEGER NOT NULL, step INTEGER NOT NULL, status TEXT NOT NULL, at TEXT NOT NULL, payload BLOB NOT NULL);
CREATE TABLE heads (sid INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, until INTEGER NOT NULL, head TEXT NOT NULL);
CREATE TABLE messages (mid INTEGER PRIMARY KEY, dead INTEGER NOT NULL, visible INTEGER NOT NULL, sent INTEGER NOT NULL, tenant TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL);
CREATE INDEX messages_visible ON messages (dead, visible)`

const (
	insertEntry = iota
	updateHead
	insertMessage
	deleteMessage
	begin
	commit
)

var statements = []string{
	insertEntry:   "INSERT INTO entries VALUES (?, 'stepped', 1, ?, 'running', '2026-01-02T03:04:05.678Z', ?)",
	updateHead:    "UPDATE heads SET owner=?, seq=?, n=1, until=? WHERE sid=?",
	insertMessage: "INSERT INTO messages VALUES (?, 0, ?, ?, 'default', ?, ?, 'step')",
	deleteMessage: "DELETE FROM messages WHERE mid=?",
	begin:         "BEGIN IMMEDIATE",
	commit:        "COMMIT",
}

// epoch is a time in nanoseconds, as large as they are.
const epoch = 1_770_000_000_000_000_000

type step struct {
	sid, seq int64
	payload  []byte
	done     chan error
}

type prepared interface {
	driver.Stmt
	driver.StmtExecContext
}

type floor struct {
	tb    testing.TB
	conn  driver.Conn
	stmts []prepared
	args  []driver.NamedValue
	mid   int64
	last  map[int64]int64 // each session's message
}

// Measure writes steps of each of so many sessions, with entries of payload
// bytes, durably, into a file in dir.
func Measure(tb testing.TB, dir string, sessions, payload, steps int) Result {
	tb.Helper()
	f := openFloor(tb, filepath.Join(dir, "floor.db"))
	f.exec("BEGIN")
	for sid := range sessions {
		f.exec("INSERT INTO heads VALUES (?, 'default', 'session', '', 0, 0, 0, ?)", int64(sid), string(make([]byte, 330)))
	}
	f.exec("COMMIT")
	work := make(chan step, sessions)
	var writing, stepping sync.WaitGroup
	writing.Go(func() { f.write(work) })
	start := time.Now()
	for sid := range sessions {
		stepping.Go(func() {
			data := make([]byte, payload)
			for i := range data {
				data[i] = byte(i*7 + sid)
			}
			done := make(chan error, 1)
			for seq := range steps {
				work <- step{int64(sid), int64(seq + 1), data, done}
				if err := <-done; err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	stepping.Wait()
	elapsed := time.Since(start)
	close(work)
	writing.Wait()
	for _, s := range f.stmts {
		require.NoError(tb, s.Close())
	}
	require.NoError(tb, f.conn.Close())
	return Result{Steps: sessions * steps, Elapsed: elapsed}
}

func openFloor(tb testing.TB, path string) *floor {
	tb.Helper()
	conn, err := new(sqlite.Driver).Open("file:" + path)
	require.NoError(tb, err)
	f := &floor{tb: tb, conn: conn, last: map[int64]int64{}}
	f.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=10000; PRAGMA cache_size=-16000")
	f.exec(schema)
	for _, text := range statements {
		s, err := conn.Prepare(text)
		require.NoError(tb, err)
		e, ok := s.(prepared)
		require.True(tb, ok)
		f.stmts = append(f.stmts, e)
	}
	return f
}

func (f *floor) exec(text string, args ...driver.Value) {
	f.tb.Helper()
	s, err := f.conn.Prepare(text)
	require.NoError(f.tb, err)
	e, ok := s.(driver.StmtExecContext)
	require.True(f.tb, ok)
	_, err = e.ExecContext(context.Background(), f.named(args))
	require.NoError(f.tb, err)
	require.NoError(f.tb, s.Close())
}

func (f *floor) named(args []driver.Value) []driver.NamedValue {
	f.args = f.args[:0]
	for i, a := range args {
		f.args = append(f.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return f.args
}

func (f *floor) run(s int, args ...driver.Value) error {
	_, err := f.stmts[s].ExecContext(context.Background(), f.named(args))
	return err
}

func (f *floor) write(work <-chan step) {
	var batch []step
	for first := range work {
		batch = append(batch[:0], first)
		runtime.Gosched()
		for more := true; more; {
			select {
			case s, ok := <-work:
				if more = ok; ok {
					batch = append(batch, s)
				}
			default:
				more = false
			}
		}
		err := f.transact(batch)
		for _, s := range batch {
			s.done <- err
		}
	}
}

func (f *floor) transact(batch []step) error {
	if err := f.run(begin); err != nil {
		return err
	}
	for _, s := range batch {
		if err := f.step(s); err != nil {
			return err
		}
	}
	return f.run(commit)
}

func (f *floor) step(s step) error {
	f.mid++
	now := epoch + f.mid
	if err := f.run(updateHead, "pid:12345:67890:4026531836:7c1c1e5e-0000-0000-0000-000000000000:ABCDEFGHIJKL/1", s.seq, now, s.sid); err != nil {
		return err
	}
	if err := f.run(insertEntry, s.sid<<32|s.seq, s.seq, s.payload); err != nil {
		return err
	}
	if err := f.run(insertMessage, f.mid, now, now, "session-of-some-length-0001", s.seq); err != nil {
		return err
	}
	before := f.last[s.sid]
	f.last[s.sid] = f.mid
	return f.run(deleteMessage, before)
}
