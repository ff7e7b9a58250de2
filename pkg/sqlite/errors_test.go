package sqlite

import (
	"database/sql"
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

// What a caller gets wrong is refused before anything is written, with words
// that say what.
func TestStore_refuses(t *testing.T) {
	t.Parallel()
	db := open(t, datafile.Memory)
	head := journal.Head{Key: crash, Status: session.StatusRunning}
	claim := func(change func(p *store.ClaimParams)) func() error {
		return func() error {
			p := store.ClaimParams{Key: crash, Mode: store.ClaimTake, Owner: "o", Seq: 2, Now: time.Now(), Until: time.Now().Add(time.Minute)}
			change(&p)
			_, err := db.Store().Claim(t.Context(), p)
			return err
		}
	}
	commit := func(change func(p *store.CommitParams)) func() error {
		return func() error {
			p := store.CommitParams{Key: crash, Entry: plain1(1), Items: []store.Item{store.HeadItem(head, 0)}}
			change(&p)
			_, err := db.Store().Commit(t.Context(), p)
			return err
		}
	}
	update := func(item store.Item) func() error {
		return func() error {
			_, err := db.Store().Update(t.Context(), crash, item)
			return err
		}
	}
	other := head
	other.Key.ID = "another"
	for name, c := range map[string]struct {
		do   func() error
		says string
	}{
		"claim without a mode":        {claim(func(p *store.ClaimParams) { p.Mode = "" }), `claim default/s: unknown claim mode ""`},
		"claim without an owner":      {claim(func(p *store.ClaimParams) { p.Owner = "" }), "no owner"},
		"claim of entry 0":            {claim(func(p *store.ClaimParams) { p.Seq = 0 }), "entry 0"},
		"claim without a session":     {claim(func(p *store.ClaimParams) { p.Key.ID = "" }), "claim"},
		"claim of an odd session":     {claim(func(p *store.ClaimParams) { p.Key.ID = "a b" }), "claim"},
		"commit of another version":   {commit(func(p *store.CommitParams) { p.Entry.V = 9 }), "entry 1 has version 9"},
		"commit of entry 0":           {commit(func(p *store.CommitParams) { p.Entry.Seq = 0 }), "entry 0: out of range"},
		"commit of too far an entry":  {commit(func(p *store.CommitParams) { p.Entry.Seq = 1 << seqBits }), "out of range"},
		"commit without a session":    {commit(func(p *store.CommitParams) { p.Key.ID = "" }), "commit"},
		"commit of another's head":    {commit(func(p *store.CommitParams) { p.Items[0] = store.HeadItem(other, 0) }), "it is that of session default/another"},
		"commit of an item twice":     {commit(func(p *store.CommitParams) { p.Items = append(p.Items, p.Items[0]) }), "is there twice"},
		"commit with a wake of none":  {commit(func(p *store.CommitParams) { p.Wakes = []journal.Wake{{}} }), "wake: "},
		"update of an unknown kind":   {update(store.Item{Kind: "smell", ID: "x"}), `unknown kind of item "smell"`},
		"update of nothing":           {update(store.Item{Kind: store.KindWait, ID: "w1-0"}), "wait w1-0: the item is empty"},
		"update of a nameless item":   {update(store.Item{Kind: store.KindTool, Tool: new(journal.ToolRecord)}), "the item has no id"},
		"update of a negative rev":    {update(store.Item{Kind: store.KindTool, ID: "c1-0", Rev: -1, Tool: new(journal.ToolRecord)}), "revision -1"},
		"update of a head with an id": {update(store.Item{Kind: store.KindHead, ID: "x", Head: &head}), "it has no id"},
		"find of an unknown kind": {func() error {
			_, err := db.Store().Find(t.Context(), store.FindParams{Kind: "smell", Tenant: "t"})
			return err
		}, `unknown kind of search "smell"`},
		"delete without a session": {func() error { return db.Store().Delete(t.Context(), session.Key{Tenant: "t"}) }, "delete"},
	} {
		err := c.do()
		require.ErrorContains(t, err, c.says, name)
		require.NotErrorIs(t, err, store.ErrUnavailable, name)
	}
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		for _, table := range []string{"sessions", "entries", "items", "messages"} {
			n, err := w.c.Number("SELECT count(*) FROM " + table)
			require.NoError(t, err)
			require.Zero(t, n, table)
		}
		return nil
	}}))
}

func TestQueue_refuses(t *testing.T) {
	t.Parallel()
	q := open(t, datafile.Memory).Queue()
	for name, p := range map[string]queue.ReceiveParams{
		"too many": {Max: 65, Visibility: time.Second}, "less than none": {Max: -1, Visibility: time.Second},
		"no visibility": {}, "visibility in the past": {Visibility: -time.Second},
	} {
		_, err := q.Receive(t.Context(), p)
		require.ErrorContains(t, err, "receive: ", name)
	}
	require.Error(t, q.Send(t.Context(), journal.NewWake(crash, 1, journal.WakeStep), journal.Wake{}))
	require.Empty(t, receiveNow(t, q), "all or nothing")
	for _, receipt := range []string{"", "m", "m1", "x1.1", "m1.", "m.1", "m1.1.1", "m!.1", "m1.!"} {
		d := queue.Delivery{Receipt: receipt}
		require.ErrorIs(t, q.Acknowledge(t.Context(), d), row.ErrReceipt, receipt)
		require.ErrorIs(t, q.Postpone(t.Context(), d, 0), row.ErrReceipt, receipt)
	}
	require.NoError(t, q.Acknowledge(t.Context()), "none is none")
	require.NoError(t, q.Send(t.Context()), "none is none")
}

// A person may look at the journal with any SQLite program, also beside a
// process that works on it.
func TestJournalCanBeRead(t *testing.T) {
	t.Parallel()
	path := file(t)
	db := open(t, path)
	for seq := range int64(2) {
		e := plain1(seq + 1)
		e.At, e.Run, e.Step = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1, seq
		_, err := db.Store().Commit(t.Context(), store.CommitParams{Key: crash, Entry: e})
		require.NoError(t, err)
	}
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	var tenant, id, kind, status, at string
	var seq, run, step, bytes int
	require.NoError(t, other.QueryRowContext(t.Context(), "SELECT * FROM journal ORDER BY seq DESC").
		Scan(&tenant, &id, &seq, &kind, &run, &step, &status, &at, &bytes))
	require.Equal(t, []any{"default", "s", 2, "started", 1, 1, "running", "2026-01-02T03:04:05.000Z"}, []any{tenant, id, seq, kind, run, step, status, at})
	require.Positive(t, bytes)
}
