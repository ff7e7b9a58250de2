package runtime_test

import (
	"context"
	"database/sql"
	"errors"
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
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
	"github.com/adjourn/adjourn/pkg/store"
)

// onDataFile is a world on a data file of its own, with one agent, and how to close the file.
func onDataFile(t *testing.T, path string) (*world, func()) {
	t.Helper()
	made := newEffects()
	registry, err := agent.NewRegistry(agent.Config{Agents: []agent.Agent{helper(made, script{
		"approve": {calls("line", `{"text":"a"}`), calls("deploy", `{"text":"1"}`), says("bye")},
	})}})
	require.NoError(t, err)
	w := &world{t: t, clock: new(clock), effects: made, number: 1, key: session.Key{Tenant: session.DefaultTenant, ID: "s1"}}
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Now: w.clock.Now, Owner: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w.store, w.queue, w.dead = db.Store(), db.Queue(), db.DeadLetters()
	w.cfg = runtime.Config{Registry: registry, Store: w.store, Queue: w.queue, DeadLetters: w.dead, Now: w.clock.Now, NewID: newID}
	w.reader = w.process().Runtime
	return w, func() { require.NoError(t, db.Close()) }
}

// decidedFile returns the bytes of a data file with a call that somebody has decided on, and that has not gone on
// since: with a finished call before it, a person who has read it and an answer that was refused.
func decidedFile(t *testing.T, answer session.Answer) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	w, closed := onDataFile(t, path)
	p := w.process()
	w.run(p, "approve")
	wait := w.open(session.WaitApproval)
	p.Viewed(t.Context(), w.key, person, []journal.WaitRecord{wait})
	forged := fill(wait.Wait, yes())
	forged.ApprovalID = "w4-1_forged"
	forged.Wait = wait.Wait.ID
	_, err := p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: forged})
	require.Error(t, err)
	_, err = p.Submit(t.Context(), runtime.SubmitParams{Key: w.key, Caller: person, Answer: fill(wait.Wait, answer), HoldResume: true})
	require.NoError(t, err)
	lines, check, err := p.VerifyAudit(t.Context(), w.key)
	require.NoError(t, err)
	require.Equal(t, session.AuditCheck{Whole: true, Entries: 4, Waits: 1, Lines: 2}, check)
	var kinds []session.AuditKind
	for _, line := range lines {
		kinds = append(kinds, line.Kind)
	}
	require.Equal(t, []session.AuditKind{session.AuditAsked, session.AuditViewed, session.AuditRefused, session.AuditAnswered}, kinds)
	closed()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	return file
}

// finishedFile returns the bytes of a data file with a session that has ended.
func finishedFile(t *testing.T) []byte {
	t.Helper()
	return laterFile(t, decidedFile(t, yes()), func(w *world) {
		require.Equal(t, map[string]int{"deploy 1": 1}, w.workOn())
		w.checkAtRest()
		require.Equal(t, session.StatusCompleted, w.session().Status)
	})
}

// takenFile returns the bytes of a data file whose worker has taken an answer in, and died then.
func takenFile(t *testing.T, answer session.Answer) []byte {
	t.Helper()
	return laterFile(t, decidedFile(t, answer), func(w *world) {
		broken := errors.New("killed")
		real := w.cfg.Store
		w.cfg.Store = &hook{Store: real, commit: func(ctx context.Context, p store.CommitParams) (store.Committed, error) {
			if p.Entry.Kind != session.KindResumed {
				return store.Committed{}, broken
			}
			return real.Commit(ctx, p)
		}}
		require.Empty(t, w.workOn())
		entries := w.journal()
		require.Equal(t, session.KindResumed, entries[len(entries)-1].Kind)
	})
}

func laterFile(t *testing.T, file []byte, goOn func(*world)) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.db")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	w, closed := onDataFile(t, path)
	goOn(w)
	closed()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	return file
}

// changedFile opens a world on a copy of a file in which something was changed with SQL.
func changedFile(t *testing.T, file []byte, change func(*sql.DB)) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.db")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	change(db)
	require.NoError(t, db.Close())
	w, _ := onDataFile(t, path)
	return w
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
	_, _ = p.Resume(w.t.Context(), runtime.ResumeParams{Key: w.key, Mode: runtime.ResumeContinue, Caller: person})
	_ = p.work()
	return w.effects.all()
}

// inItems replaces a text in the records of a kind.
func inItems(kind, old, new string) func(*testing.T, *sql.DB) {
	return func(t *testing.T, db *sql.DB) {
		t.Helper()
		result, err := db.ExecContext(t.Context(), "UPDATE items SET payload=replace(payload, ?, ?) WHERE kind=? AND instr(payload, ?)>0", old, new, kind, old)
		require.NoError(t, err)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.Positive(t, n, "there is no %q in a %s", old, kind)
	}
}

// inEntry replaces a text in an entry, which stays one that can be read.
func inEntry(seq int64, old, new string) func(*testing.T, *sql.DB) {
	return func(t *testing.T, db *sql.DB) {
		t.Helper()
		var payload []byte
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT payload FROM entries WHERE eid & 4294967295 = ?", seq).Scan(&payload))
		require.Contains(t, string(payload), old, "it is not compressed")
		_, err := db.ExecContext(t.Context(), "UPDATE entries SET payload=? WHERE eid & 4294967295 = ?", []byte(strings.ReplaceAll(string(payload), old, new)), seq)
		require.NoError(t, err)
	}
}

func inSQL(query string) func(*testing.T, *sql.DB) {
	return func(t *testing.T, db *sql.DB) {
		t.Helper()
		result, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err)
		n, err := result.RowsAffected()
		require.NoError(t, err)
		require.Positive(t, n)
	}
}

func twoChanges(changes ...func(*testing.T, *sql.DB)) func(*testing.T, *sql.DB) {
	return func(t *testing.T, db *sql.DB) {
		t.Helper()
		for _, change := range changes {
			change(t, db)
		}
	}
}

// TestVerify_finds_what_was_changed: whatever is changed in a data file by somebody who does not make the
// hashes anew is found, and nothing runs that nobody approved.
func TestVerify_finds_what_was_changed(t *testing.T) {
	t.Parallel()
	approved, rejected, finished := decidedFile(t, yes()), decidedFile(t, no()), finishedFile(t)
	for name, c := range map[string]struct {
		file   []byte
		change func(*testing.T, *sql.DB)
		// record that is named; runs says that what was approved still does.
		record string
		runs   bool
	}{
		"arguments in the newest entry":              {approved, inEntry(4, `{"text":"1"}`, `{"text":"9"}`), "entry 4", false},
		"arguments of the wait alone, in the entry":  {approved, inEntry(4, `"arguments":{"text":"1"},"digest"`, `"arguments":{"text":"9"},"digest"`), "entry 4", false},
		"arguments in entry and wait":                {approved, twoChanges(inEntry(4, `{"text":"1"}`, `{"text":"9"}`), inItems("wait", `{"text":"1"}`, `{"text":"9"}`)), "entry 4", false},
		"who may answer, in the newest entry":        {approved, inEntry(4, `"tool":"deploy"`, `"tool":"line"`), "entry 4", false},
		"an older entry":                             {approved, inEntry(1, `"approve"`, `"approvE"`), "entry 1", false},
		"a result in an entry":                       {approved, inEntry(3, `did a`, `did b`), "entry 3", false},
		"the newest entry is cut off":                {approved, inSQL("DELETE FROM entries WHERE eid & 4294967295 = 4"), "head", false},
		"arguments in the wait":                      {approved, inItems("wait", `{"text":"1"}`, `{"text":"9"}`), "wait w4-1", false},
		"the digest in the wait":                     {approved, inItems("wait", `"digest":"`, `"digest":"x`), "wait w4-1", false},
		"a no made a yes":                            {rejected, inItems("wait", `"approved":false`, `"approved":true`), "wait w4-1", false},
		"a no made a yes, without the seal":          {rejected, twoChanges(inItems("wait", `"approved":false`, `"approved":true`), inItems("wait", `,"seal":"`, `,"gone":"`)), "wait w4-1", false},
		"a no made a yes, the seal taken out":        {rejected, twoChanges(inItems("wait", `"approved":false`, `"approved":true`), inSQL(`UPDATE items SET payload=substr(payload, 1, instr(payload, ',"seal":"')-1)||'}' WHERE kind='wait'`)), "", false},
		"a no made a yes, of another revision":       {rejected, twoChanges(inItems("wait", `"approved":false`, `"approved":true`), inSQL(`UPDATE items SET rev=rev+1 WHERE kind='wait'`)), "", false},
		"a yes made a no":                            {approved, inItems("wait", `"approved":true`, `"approved":false`), "wait w4-1", false},
		"who answered":                               {approved, inItems("wait", `"who":"`+person.Who+`"`, `"who":"eve"`), "wait w4-1", false},
		"edited arguments are put in":                {approved, inItems("wait", `"approved":true,`, `"approved":true,"editedInput":{"text":"9"},`), "wait w4-1", false},
		"the answer is taken out":                    {approved, inItems("wait", `"state":"answered"`, `"state":"open"`), "wait w4-1", false},
		"the wait is taken out":                      {approved, inSQL("DELETE FROM items WHERE kind='wait'"), "wait w4-1", false},
		"who was refused":                            {approved, inItems("audit", `"who":"`+person.Who+`"`, `"who":"eve"`), "line 1 of w4-1", true},
		"the code of a refusal":                      {approved, inItems("audit", `invalid_answer`, `invalid_answeR`), "line 2 of w4-1", true},
		"the first line is taken out":                {approved, inSQL("DELETE FROM items WHERE kind='audit' AND id LIKE '%0001'"), "lines of w4-1", true},
		"the last line is taken out":                 {approved, inSQL("DELETE FROM items WHERE kind='audit' AND id LIKE '%0002'"), "lines of w4-1", true},
		"all lines are taken out":                    {approved, inSQL("DELETE FROM items WHERE kind='audit'"), "lines of w4-1", true},
		"HEAD says that it runs":                     {approved, inSQL(`UPDATE sessions SET head=replace(head, '"status":"suspended"', '"status":"running"')`), "head", true},
		"HEAD names another entry":                   {approved, inSQL(`UPDATE sessions SET head=replace(head, '"newest":{"seq":4,"hash":"', '"newest":{"seq":4,"hash":"x')`), "head", false},
		"newest entry and HEAD without its hash":     {approved, twoChanges(inEntry(4, `{"text":"1"}`, `{"text":"9"}`), inSQL(`UPDATE sessions SET head=replace(head, '"newest"', '"oldest"')`)), "head", false},
		"the result in a ledger":                     {approved, inItems("tool", `did a`, `did b`), "call c2-1", true},
		"the state of a ledger":                      {approved, inItems("tool", `"finished"`, `"memo"`), "call c2-1", true},
		"the record of a run":                        {approved, inItems("run", `"trigger":"start"`, `"trigger":"retry"`), "run 1", true},
		"the record of a run is taken out":           {approved, inSQL("DELETE FROM items WHERE kind='run'"), "run 1", true},
		"an audit line of another session is put in": {approved, inSQL("UPDATE items SET id='0000000009-01-0001', payload=replace(payload, '0000000004', '0000000009') WHERE kind='audit' AND id LIKE '%0002'"), "lines of w4-1", true},
		"an answer that was taken in":                {takenFile(t, no()), inEntry(5, `"approved":false`, `"approved":true`), "entry 5", false},
		"its wait, after it was taken":               {finished, inItems("wait", `"approved":true`, `"approved":false`), "wait w4-1", false},
		"who answered, in the entry":                 {finished, inEntry(5, `"who":"`+person.Who+`"`, `"who":"eve"`), "entry 5", false},
		"the newest entry of all":                    {finished, inEntry(7, "bye", "BYE"), "entry 7", false},
		"the last line, after its answer was taken":  {finished, inSQL("DELETE FROM items WHERE kind='audit' AND id LIKE '%0002'"), "lines of w4-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := changedFile(t, c.file, func(db *sql.DB) { c.change(t, db) })
			_, check, err := w.process().VerifyAudit(t.Context(), w.key)
			require.NoError(t, err)
			var named []string
			for _, f := range append(check.Faults, check.Unproven...) {
				named = append(named, f.Record)
			}
			if c.record != "" {
				require.False(t, check.Whole)
				require.Contains(t, named, c.record, fmt.Sprint(check.Faults))
			} else {
				require.Contains(t, named, "wait w4-1", "nothing says that it is as it was written")
			}
			want := map[string]int{}
			if c.runs {
				want["deploy 1"] = 1
			}
			did := w.workOn()
			if !c.runs {
				require.Empty(t, did)
			}
			for what, n := range did {
				require.Equal(t, want[what], n, what)
			}
		})
	}
}

// TestVerify_finds_every_byte: no byte of a session's records can be changed unnoticed, and none lets
// anything else run than what was approved.
func TestVerify_finds_every_byte(t *testing.T) {
	t.Parallel()
	files := [][]byte{decidedFile(t, yes()), finishedFile(t)}
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // which byte is all the same
		what := ""
		w := changedFile(t, files[seed%2], func(db *sql.DB) { what = flipByte(t, db, random) })
		_, check, err := w.process().VerifyAudit(t.Context(), w.key)
		if err == nil {
			require.False(t, check.Whole, what)
		} else { // so broken that the store says so
			require.Contains(t, []runtime.Code{runtime.CodeCorrupt, runtime.CodeNotOurs, runtime.CodeNewerNeeded}, codeOf(err), what+": "+err.Error())
		}
		for did, n := range w.workOn() {
			require.Equal(t, "deploy 1", did, what)
			require.Equal(t, 1, n, what)
		}
	}
}

// flipByte changes one byte of one record, and says which.
func flipByte(t *testing.T, db *sql.DB, random *rand.Rand) string {
	t.Helper()
	type row struct {
		table, column, key string
		id                 int64
		payload            []byte
	}
	var all []row
	for _, from := range []row{{table: "entries", column: "payload", key: "eid"}, {table: "items", column: "payload", key: "iid"}, {table: "sessions", column: "head", key: "sid"}} {
		rows, err := db.QueryContext(t.Context(), fmt.Sprintf("SELECT %s, CAST(%s AS BLOB) FROM %s", from.key, from.column, from.table))
		require.NoError(t, err)
		for rows.Next() {
			r := from
			require.NoError(t, rows.Scan(&r.id, &r.payload))
			all = append(all, r)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	r := all[random.IntN(len(all))]
	at := random.IntN(len(r.payload))
	was := r.payload[at]
	r.payload[at] ^= byte(1 + random.IntN(255))
	value := "?"
	if r.table != "entries" {
		value = "CAST(? AS TEXT)"
	}
	_, err := db.ExecContext(context.Background(), fmt.Sprintf("UPDATE %s SET %s=%s WHERE %s=?", r.table, r.column, value, r.key), r.payload, r.id)
	require.NoError(t, err)
	return fmt.Sprintf("%s %d, byte %d of %q was %q", r.table, r.id, at, r.payload, was)
}

// TestBack_to_what_was_changed: neither a fork nor going back goes on from a newest entry that was changed, and an
// entry before it is still there to go back to.
func TestBack_to_what_was_changed(t *testing.T) {
	t.Parallel()
	w := changedFile(t, decidedFile(t, no()), func(db *sql.DB) { inEntry(4, `{"text":"1"}`, `{"text":"9"}`)(t, db) })
	p, entries := w.process(), w.journal()
	newest, before := entries[3].Checkpoint(w.key.ID).String(), entries[2].Checkpoint(w.key.ID).String()
	for _, checkpoint := range []string{"", newest} {
		_, err := p.Fork(t.Context(), runtime.ForkParams{Origin: w.key, ID: "f", Checkpoint: checkpoint, Caller: person})
		require.Equal(t, runtime.CodeCorrupt, codeOf(err), checkpoint)
	}
	_, err := p.GoBack(t.Context(), runtime.BackParams{Key: w.key, Checkpoint: newest, Caller: person})
	require.Equal(t, runtime.CodeCorrupt, codeOf(err))
	_, err = p.Fork(t.Context(), runtime.ForkParams{Origin: w.key, ID: "f", Checkpoint: before, Caller: person})
	require.NoError(t, err)
	_, err = p.GoBack(t.Context(), runtime.BackParams{Key: w.key, Checkpoint: before, Caller: person})
	require.NoError(t, err)
}
