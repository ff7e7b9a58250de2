//go:build linux

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestPowerLoss: after each kind of write the file is copied as the disk has it, and
// nothing that was acknowledged is missing. It runs in a process of its own, because
// SQLite has one way to files.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	c := start(t, "power", filepath.Join(t.TempDir(), "data", "a.db"), nil)
	require.Equal(t, "nothing lost", c.line(t))
	require.NoError(t, c.Wait())
}

// acknowledged is what has been promised about a file.
type acknowledged struct {
	entries  int64
	items    map[store.ItemKind]map[string]int64 // revisions
	messages map[int64]bool                      // by seq: whether it has to be there
	deleted  []session.Key
}

// loseEverything makes the promises and breaks the power after each.
func loseEverything(path string) error {
	ctx := context.Background()
	made, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil { // it is synced, name and all
		return err
	}
	d, err := installDisk(filepath.Dir(path))
	if err != nil {
		return err
	}
	db, err := Open(ctx, Config{Path: path})
	if err != nil {
		return err
	}
	a := &acknowledged{items: map[store.ItemKind]map[string]int64{}, messages: map[int64]bool{}}
	s, q := db.Store(), db.Queue()
	seq, wake := int64(0), int64(1000)
	for round := range 6 {
		if round == 1 { // not before: the first write of all must be durable as it comes
			// The log is taken into the file every few transactions.
			if err := db.do(ctx, &testOp{f: func(w *writer) error { return w.c.Script("PRAGMA wal_autocheckpoint=40") }}); err != nil {
				return err
			}
		}
		for _, w := range []struct {
			name string
			do   func() error
		}{
			{"commit", func() error {
				seq++
				e := plainEntry(seq)
				if round%3 == 0 {
					e.Output = []byte(`"` + randomText(20_000) + `"`)
				}
				p := store.CommitParams{Key: crashKey, Entry: e, Wakes: []journal.Wake{journal.NewWake(crashKey, seq, journal.WakeStep)}}
				p.Items = append(p.Items, store.ToolItem(journal.ToolRecord{Call: fmt.Sprintf("c%d-0", seq), State: journal.ToolStarted}, 0))
				if seq == 1 {
					p.Items = append(p.Items, store.HeadItem(plainHead(crashKey), 0))
					a.has(store.KindHead, "", 1)
				}
				_, err := s.Commit(ctx, p)
				a.entries, a.messages[seq] = seq, true
				a.has(store.KindTool, fmt.Sprintf("c%d-0", seq), 1)
				return err
			}},
			{"update", func() error {
				call := fmt.Sprintf("c%d-0", seq)
				_, err := s.Update(ctx, crashKey, store.ToolItem(journal.ToolRecord{Call: call, State: journal.ToolFinished}, 1))
				a.has(store.KindTool, call, 2)
				return err
			}},
			{"claim", func() error { // no fsync: a lease may be lost, and what was claimed with it is still there
				_, err := s.Claim(ctx, store.ClaimParams{
					Key: crashKey, Mode: store.ClaimTake, Owner: "w", Seq: seq + 1, Now: time.Now(), Until: time.Now().Add(time.Minute),
				})
				return err
			}},
			{"send", func() error {
				wake++
				a.messages[wake] = true
				return q.Send(ctx, journal.NewWake(crashKey, wake, journal.WakeStep))
			}},
			{"receive", func() error { // no fsync: it may be received again
				got, err := q.Receive(ctx, queue.ReceiveParams{Visibility: time.Minute})
				if err != nil || len(got) == 0 {
					return err
				}
				if round%2 == 0 {
					return q.Postpone(ctx, got[0], time.Second)
				}
				a.messages[got[0].Wake.Seq] = false // from here on it may be gone
				return q.Acknowledge(ctx, got...)
			}},
			{"delete", func() error {
				key := session.Key{Tenant: "t", ID: fmt.Sprintf("gone%d", round)}
				if _, err := s.Commit(ctx, store.CommitParams{Key: key, Entry: plainEntry(1), Items: []store.Item{store.HeadItem(plainHead(key), 0)}}); err != nil {
					return err
				}
				a.deleted = append(a.deleted, key)
				return s.Delete(ctx, key)
			}},
		} {
			if err := w.do(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			for i, keep := range []func() bool{lostAll, keptSome} {
				if err := a.after(ctx, d, keep); err != nil {
					return fmt.Errorf("power lost after %s of round %d, way %d: %w", w.name, round, i, err)
				}
			}
		}
	}
	fmt.Println("nothing lost")
	return db.Close()
}

func (a *acknowledged) has(kind store.ItemKind, id string, rev int64) {
	if a.items[kind] == nil {
		a.items[kind] = map[string]int64{}
	}
	a.items[kind][id] = rev
}

// after opens what the disk has and holds it to what was promised.
func (a *acknowledged) after(ctx context.Context, d *disk, keep func() bool) (err error) {
	dir, err := os.MkdirTemp("", "power")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := d.copyTo(dir, keep); err != nil {
		return err
	}
	// Of another owner's: what this process received is not void because it is dead.
	db, err := Open(ctx, Config{Path: filepath.Join(dir, "a.db"), Owner: "after"})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	entries := int64(0)
	for e, err := range db.Store().Entries(ctx, crashKey, 0) {
		if err != nil {
			return err
		}
		entries = e.Seq
	}
	if entries != a.entries {
		return fmt.Errorf("%d entries of %d", entries, a.entries)
	}
	for kind, items := range a.items {
		for id, rev := range items {
			found := int64(0)
			for item, err := range db.Store().Items(ctx, crashKey, kind, id) {
				if err != nil {
					return err
				}
				found = item.Rev
			}
			if found != rev {
				return fmt.Errorf("%s %s has revision %d, not %d", kind, id, found, rev)
			}
		}
	}
	for _, key := range a.deleted {
		_, err := db.Store().Commit(ctx, store.CommitParams{Key: key, Entry: plainEntry(2)})
		if err == nil {
			return fmt.Errorf("%s is back", key)
		}
	}
	return a.messagesIn(ctx, db)
}

func (a *acknowledged) messagesIn(ctx context.Context, db *DB) error {
	there := map[int64]bool{}
	err := db.read(ctx, func(c *datafile.Conn) error {
		return c.Query(stmtVisible, func(values row.Values) bool {
			there[values.Int(5)] = true
			return true
		}, boolInt(false), int64(math.MaxInt64), int64(math.MaxInt64))
	})
	for seq, must := range a.messages {
		if must && !there[seq] {
			return fmt.Errorf("message %d is lost", seq)
		}
	}
	return err
}
