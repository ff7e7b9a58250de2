package runtime_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// stock is what one session left behind in an engine, where a test changes it as somebody could who can
// write there.
type stock interface {
	// world works on it until done is called.
	world(t *testing.T) (w *world, done func())
	// copy is another one with the same content.
	copy(t *testing.T) stock
	// all returns the records of the session.
	all(t *testing.T) []raw
	// put writes a record as it is, and drop removes it.
	put(t *testing.T, r raw)
	drop(t *testing.T, r raw)
}

// raw is a record as it is stored.
type raw struct {
	kind string // "entry", or that of the item
	id   string // of an item; of an entry its number
	rev  int64  // of an item
	text []byte
	at   any // where it lies
}

// change changes something in a stock.
type change func(*testing.T, stock)

// some changes the records that a condition holds for, of which there is one at least.
func some(which func(raw) bool, what string, do func(*testing.T, stock, raw)) change {
	return func(t *testing.T, s stock) {
		t.Helper()
		n := 0
		for _, r := range s.all(t) {
			if which(r) {
				do(t, s, r)
				n++
			}
		}
		require.Positive(t, n, "there is no %s", what)
	}
}

// inItems replaces a text in the records of a kind.
func inItems(kind, old, new string) change {
	return some(func(r raw) bool { return r.kind == kind && bytes.Contains(r.text, []byte(old)) }, fmt.Sprintf("%q in a %s", old, kind),
		func(t *testing.T, s stock, r raw) {
			r.text = bytes.ReplaceAll(r.text, []byte(old), []byte(new))
			s.put(t, r)
		})
}

// inEntry replaces a text in an entry, which stays one that can be read.
func inEntry(seq int, old, new string) change {
	return some(func(r raw) bool {
		return r.kind == "entry" && r.id == fmt.Sprint(seq) && bytes.Contains(r.text, []byte(old))
	}, fmt.Sprintf("%q in entry %d", old, seq), func(t *testing.T, s stock, r raw) {
		r.text = bytes.ReplaceAll(r.text, []byte(old), []byte(new))
		s.put(t, r)
	})
}

// without removes the records of a kind whose id ends so.
func without(kind, end string) change {
	return some(func(r raw) bool { return r.kind == kind && strings.HasSuffix(r.id, end) }, kind, func(t *testing.T, s stock, r raw) { s.drop(t, r) })
}

// unsealed cuts the seal off the records of a kind.
func unsealed(kind string) change {
	return some(func(r raw) bool { return r.kind == kind }, kind, func(t *testing.T, s stock, r raw) {
		text, _, found := bytes.Cut(r.text, []byte(`,"seal":"`))
		require.True(t, found)
		r.text = append(bytes.Clone(text), '}')
		s.put(t, r)
	})
}

// revised gives the records of a kind another revision.
func revised(kind string) change {
	return some(func(r raw) bool { return r.kind == kind }, kind, func(t *testing.T, s stock, r raw) {
		r.rev++
		s.put(t, r)
	})
}

// moved gives the audit lines whose id ends so the place of another wait.
func moved(end, id, from, to string) change {
	return some(func(r raw) bool { return r.kind == "audit" && strings.HasSuffix(r.id, end) }, "line", func(t *testing.T, s stock, r raw) {
		s.drop(t, r)
		r.id, r.text = id, bytes.ReplaceAll(r.text, []byte(from), []byte(to))
		s.put(t, r)
	})
}

func changes(all ...change) change {
	return func(t *testing.T, s stock) {
		t.Helper()
		for _, c := range all {
			c(t, s)
		}
	}
}

// flipByte changes one byte of one record, and says which.
func flipByte(t *testing.T, s stock, random *rand.Rand) string {
	t.Helper()
	all := s.all(t)
	r := all[random.IntN(len(all))]
	at := random.IntN(len(r.text))
	r.text = bytes.Clone(r.text)
	was := r.text[at]
	r.text[at] ^= byte(1 + random.IntN(255))
	s.put(t, r)
	return fmt.Sprintf("%s %s, byte %d of %q was %q", r.kind, r.id, at, r.text, was)
}

// onEngine is a world with one agent, on a store and the queues of a data file.
func onEngine(t *testing.T, now *clock, db *sqlite.DB, s store.Store) *world {
	t.Helper()
	made := newEffects()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, script{
		"approve": {calls("line", `{"text":"a"}`), calls("deploy", `{"text":"1"}`), says("bye")},
	})}})
	require.NoError(t, err)
	w := &world{t: t, clock: now, effects: made, number: 1, key: session.Key{Tenant: session.DefaultTenant, ID: "s1"}}
	w.store, w.queue, w.dead = s, db.Queue(), db.DeadLetters()
	w.cfg = runtime.Config{Registry: registry, Store: w.store, Queue: w.queue, DeadLetters: w.dead, Now: w.clock.Now, NewID: newID}
	w.reader = w.process().Runtime
	return w
}

// dataFile is a stock in a data file.
type dataFile struct{ path string }

func newDataFile(t *testing.T) stock {
	t.Helper()
	return dataFile{filepath.Join(t.TempDir(), "a.db")}
}

func (f dataFile) world(t *testing.T) (*world, func()) {
	t.Helper()
	now := new(clock)
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: f.path, Now: now.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return onEngine(t, now, db, db.Store()), func() { require.NoError(t, db.Close()) }
}

func (f dataFile) copy(t *testing.T) stock {
	t.Helper()
	file, err := os.ReadFile(f.path)
	require.NoError(t, err)
	next := dataFile{filepath.Join(t.TempDir(), "b.db")}
	require.NoError(t, os.WriteFile(next.path, file, 0o600))
	return next
}

// with lends the file to SQL.
func (f dataFile) with(t *testing.T, do func(context.Context, *sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path)
	require.NoError(t, err)
	require.NoError(t, do(t.Context(), db))
	require.NoError(t, db.Close())
}

// ofS1 is the number of the session in a file.
const ofS1 = "(SELECT sid FROM sessions WHERE id='s1')"

func (f dataFile) all(t *testing.T) (all []raw) {
	t.Helper()
	f.with(t, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT 'entry', eid & 4294967295, 0, CAST(payload AS BLOB), eid FROM entries WHERE eid>>32="+ofS1+
			" UNION ALL SELECT kind, id, rev, CAST(payload AS BLOB), iid FROM items WHERE sid="+ofS1+
			" UNION ALL SELECT 'head', id, rev, CAST(head AS BLOB), sid FROM sessions WHERE sid="+ofS1)
		if err != nil {
			return err
		}
		for rows.Next() {
			var r raw
			var at int64
			if err := rows.Scan(&r.kind, &r.id, &r.rev, &r.text, &at); err != nil {
				return err
			}
			r.at = at
			all = append(all, r)
		}
		require.NoError(t, rows.Close())
		return rows.Err()
	})
	return all
}

func (f dataFile) put(t *testing.T, r raw) {
	t.Helper()
	f.with(t, func(ctx context.Context, db *sql.DB) error {
		var err error
		switch r.kind {
		case "entry":
			_, err = db.ExecContext(ctx, "UPDATE entries SET payload=? WHERE eid=?", r.text, r.at)
		case "head":
			_, err = db.ExecContext(ctx, "UPDATE sessions SET head=CAST(? AS TEXT), rev=? WHERE sid=?", r.text, r.rev, r.at)
		default:
			_, err = db.ExecContext(ctx, "INSERT INTO items (iid, sid, kind, id, rev, payload) SELECT ?4, "+ofS1+", ?5, ?1, ?2, CAST(?3 AS TEXT)"+
				" WHERE true ON CONFLICT (iid) DO UPDATE SET id=?1, rev=?2, payload=CAST(?3 AS TEXT)", r.id, r.rev, r.text, r.at, r.kind)
		}
		return err
	})
}

func (f dataFile) drop(t *testing.T, r raw) {
	t.Helper()
	f.with(t, func(ctx context.Context, db *sql.DB) error {
		from := "items WHERE iid=?"
		if r.kind == "entry" {
			from = "entries WHERE eid=?"
		}
		_, err := db.ExecContext(ctx, "DELETE FROM "+from, r.at)
		return err
	})
}

// workOn has a worker go on with the session, as far as it does, and returns what the tools did.
func (w *world) workOn() map[string]int {
	w.t.Helper()
	p := w.process()
	_, err := p.Resume(w.t.Context(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Caller: person})
	if err != nil {
		require.Contains(w.t, []runtime.Code{runtime.CodeCorrupt, runtime.CodeStillWaiting, runtime.CodeAlreadyRunning, runtime.CodeNotResumable, runtime.CodeSessionNotFound, runtime.CodeNotOurs}, codeOf(err), err.Error())
	}
	_ = p.work() // it may well refuse
	w.clock.advance(time.Hour)
	_, _ = p.Sweep(w.t.Context())
	_, _ = p.Resume(w.t.Context(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Caller: person})
	_ = p.work()
	return w.effects.all()
}
