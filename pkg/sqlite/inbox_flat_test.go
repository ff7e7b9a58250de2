package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	driversqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	inboxTenant = "acme"
	inboxLimit  = 50
)

// withoutInboxes makes a file one of an earlier program.
const withoutInboxes = "DROP INDEX items_by_tool; DROP INDEX items_by_agent; DROP INDEX items_by_kind"

// planOf is how SQLite would carry a statement out, line by line.
func planOf(t *testing.T, path, statement string, more ...any) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, append([]any{inboxTenant, 0, 0, 0, inboxLimit}, more...)...)
	require.NoError(t, err)
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		lines = append(lines, detail)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, errors.Join(rows.Close(), db.Close()))
	return strings.Join(lines, "\n")
}

// stepsOf counts what SQLite does for a page: how many operations of its machine it carries out, how many
// rows it reads on without an index, and how often it sorts.
func stepsOf(t *testing.T, path, statement string, more ...driver.Value) (operations, scanned, sorts, found int) {
	t.Helper()
	raw, err := new(driversqlite.Driver).Open(path)
	require.NoError(t, err)
	prepared, err := raw.Prepare(statement)
	require.NoError(t, err)
	var args []driver.NamedValue
	for i, v := range append([]driver.Value{inboxTenant, int64(0), int64(0), int64(0), int64(inboxLimit)}, more...) {
		args = append(args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	rows, err := prepared.(driver.StmtQueryContext).QueryContext(context.Background(), args)
	require.NoError(t, err)
	for values := make([]driver.Value, len(rows.Columns())); err == nil; found++ {
		err = rows.Next(values)
	}
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, rows.Close())
	handle := reflect.Indirect(reflect.ValueOf(prepared)).FieldByName("pstmt")
	require.Equal(t, reflect.Uintptr, handle.Kind(), "the driver shows no statement")
	tls := libc.NewTLS()
	defer tls.Close()
	status := func(of int32) int { return int(sqlite3.Xsqlite3_stmt_status(tls, uintptr(handle.Uint()), of, 0)) }
	operations, scanned, sorts = status(sqlite3.SQLITE_STMTSTATUS_VM_STEP), status(sqlite3.SQLITE_STMTSTATUS_FULLSCAN_STEP), status(sqlite3.SQLITE_STMTSTATUS_SORT)
	require.Positive(t, operations)
	require.NoError(t, errors.Join(prepared.Close(), raw.Close()))
	return operations, scanned, sorts, found - 1
}

// inboxOfMany fills a file with n open waits of one tenant. Of each ten-th of them one is of a rare tool,
// agent and kind and for a rare person; "half" is a tool that every other wait has.
func inboxOfMany(t *testing.T, db *DB, n int) {
	t.Helper()
	wait := store.WaitItem(journal.WaitRecord{State: session.WaitOpen, Agent: "lab", Wait: session.Wait{ID: "w1-1", Kind: session.WaitApproval, Tool: "deploy", Who: []string{"bob"}}}, 0)
	often, err := wait.Record()
	require.NoError(t, err)
	rare := strings.NewReplacer(`"deploy"`, `"rm"`, `"lab"`, `"clerk"`, `"approval"`, `"question"`, `"bob"`, `"ana"`).Replace(string(often))
	half := strings.Replace(string(often), `"deploy"`, `"half"`, 1)
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		return w.c.Script(fmt.Sprintf(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%[1]d)
INSERT INTO sessions (sid, tenant, id, rev, moved, head) SELECT i, '%[2]s', 's'||i, 1, i, '{}' FROM n;
INSERT INTO items (sid, kind, id, rev, tenant, deadline, opened, payload)
SELECT sid, 'wait', 'w1-1', 1, tenant, 1000000+sid, sid,
	CASE WHEN sid %% (%[1]d/10) = %[1]d/20 THEN '%[4]s' WHEN sid %% 2 THEN '%[5]s' ELSE '%[3]s' END FROM sessions`, n, inboxTenant, often, rare, half))
	}}))
}

// looked returns a page, and how many rows were looked at for it.
func looked(t *testing.T, db *DB, p store.FindParams) (int, store.Page) {
	t.Helper()
	p.Kind, p.Tenant, p.Limit = store.FindWaits, inboxTenant, inboxLimit
	require.NoError(t, p.Prepare())
	at, err := row.ParseCursor(&p)
	require.NoError(t, err)
	most := p.Limit + 1
	if p.Filtered() {
		most = filteredRows
	}
	f := finder{p: &p}
	require.NoError(t, db.read(t.Context(), func(c *datafile.Conn) error { return f.query(c, at, most) }))
	page, err := db.Store().Find(t.Context(), p)
	require.NoError(t, err)
	return f.looked, page
}

// flatPages are the searches of the inbox that an index serves, with the one it is.
var flatPages = map[string]struct {
	p     store.FindParams
	stmt  datafile.Stmt
	index string
	value string
}{
	"tool":  {store.FindParams{Tool: "rm"}, stmtWaitsOfTool, "items_by_tool", "rm"},
	"agent": {store.FindParams{Agent: "clerk"}, stmtWaitsOfAgent, "items_by_agent", "clerk"},
	"kind":  {store.FindParams{WaitKind: session.WaitQuestion}, stmtWaitsOfKind, "items_by_kind", string(session.WaitQuestion)},
}

// TestInboxIsFlat: a page of the inbox looks at as many rows among 10,000 waits as among 1,000, whole and kept
// to a tool, an agent or a kind, and an index finds them in their order. With several of these filters one
// index serves, and the others are looked for among its rows. Kept to a person it looks at no more than a page
// may.
func TestInboxIsFlat(t *testing.T) {
	t.Parallel()
	operations := map[string][]int{}
	for _, n := range []int{1000, 10_000} {
		path := filepath.Join(t.TempDir(), "data.db")
		db := open(t, path)
		inboxOfMany(t, db, n)
		rows, page := looked(t, db, store.FindParams{})
		require.Equal(t, inboxLimit, rows, "among %d", n)
		rows, page = looked(t, db, store.FindParams{Cursor: page.Cursor})
		require.Equal(t, inboxLimit, rows, "among %d, the next page", n)
		require.Len(t, page.Found, inboxLimit)
		for name, c := range flatPages {
			rows, page := looked(t, db, c.p)
			require.Equal(t, 10, rows, "%s among %d", name, n)
			require.Len(t, page.Found, 10, "%s among %d", name, n)
			require.Empty(t, page.Cursor, name)
			for i, found := range page.Found {
				require.Equal(t, fmt.Sprintf("s%d", n/20+i*n/10), found.Key.ID, "the soonest deadline first")
			}
			plan := planOf(t, path, statements[c.stmt], c.value)
			require.Contains(t, plan, "SEARCH items USING INDEX "+c.index+" (tenant=? AND <expr>=? AND (deadline,opened)>(?,?))", name)
			require.NotContains(t, plan, "TEMP B-TREE", name)
			steps, scanned, sorts, found := stepsOf(t, path, statements[c.stmt], c.value)
			require.Equal(t, [3]int{0, 0, 10}, [3]int{scanned, sorts, found}, name)
			operations[name] = append(operations[name], steps)
		}
		for name, p := range map[string]store.FindParams{
			"tool and kind":   {Tool: "rm", WaitKind: session.WaitQuestion},
			"agent and kind":  {Agent: "clerk", WaitKind: session.WaitQuestion},
			"tool and agent":  {Tool: "rm", Agent: "clerk"},
			"all of them":     {Tool: "rm", Agent: "clerk", WaitKind: session.WaitQuestion},
			"tool and person": {Tool: "rm", User: "ana"},
		} {
			rows, page := looked(t, db, p)
			require.Equal(t, 10, rows, "%s among %d", name, n)
			require.Len(t, page.Found, 10, "%s among %d", name, n)
		}
		for name, p := range map[string]store.FindParams{
			"user":                             {User: "ana"},
			"a tool that is of the other half": {Tool: "half", WaitKind: session.WaitQuestion},
		} {
			rows, _ := looked(t, db, p)
			require.LessOrEqual(t, rows, filteredRows, name)
		}
		rows, page = looked(t, db, store.FindParams{Tool: "half", WaitKind: session.WaitQuestion})
		require.LessOrEqual(t, rows, n/2, "no wait of another tool is looked at")
		require.Empty(t, page.Found)
		plan := planOf(t, path, statements[stmtWaits])
		require.Contains(t, plan, "USING INDEX", "the rows of a page are found by an index")
		require.NotContains(t, plan, "TEMP B-TREE", "and are in its order")
		steps, scanned, sorts, found := stepsOf(t, path, statements[stmtWaits])
		require.Equal(t, [3]int{0, 0, inboxLimit}, [3]int{scanned, sorts, found})
		operations["whole"] = append(operations["whole"], steps)
	}
	for name, of := range operations {
		t.Logf("%-6s %d operations of SQLite; among ten times as many %d", name, of[0], of[1])
		require.Equal(t, of[0], of[1], name)
	}
}

// TestInbox_of_a_file_of_before: a data file that an earlier program made has no index for a tool, an agent or
// a kind. It is read as it is, by who may not write too. The first wait that is written gives it the indexes,
// and a cursor of before goes on.
func TestInbox_of_a_file_of_before(t *testing.T) {
	t.Parallel()
	const n = 10_000
	path := filepath.Join(t.TempDir(), "data.db")
	db := open(t, path)
	inboxOfMany(t, db, n)
	want := map[string][]store.Found{}
	for name, c := range flatPages {
		_, page := looked(t, db, c.p)
		want[name] = page.Found
	}
	_, half := looked(t, db, store.FindParams{Tool: "half"})
	_, second := looked(t, db, store.FindParams{Tool: "half", Cursor: half.Cursor})
	require.NoError(t, db.Close())
	runSQL(t, path, withoutInboxes)

	reading, err := Open(t.Context(), Config{Path: path, ReadOnly: true})
	require.NoError(t, err)
	old, err := Open(t.Context(), Config{Path: path})
	require.NoError(t, err)
	for name, c := range flatPages {
		for _, db := range []*DB{reading, old} {
			rows, page := looked(t, db, c.p)
			require.Equal(t, n, rows, "row by row")
			require.Equal(t, want[name], page.Found)
		}
	}
	_, first := looked(t, old, store.FindParams{Tool: "half"})
	require.Equal(t, half.Found, first.Found)

	added := store.WaitItem(journal.WaitRecord{State: session.WaitOpen, Agent: "clerk", Wait: session.Wait{ID: "w2-1", Kind: session.WaitQuestion, Tool: "rm"}}, 0)
	_, err = old.Store().Update(t.Context(), session.Key{Tenant: inboxTenant, ID: "s1"}, added)
	require.NoError(t, err)
	for name, c := range flatPages {
		for _, db := range []*DB{reading, old} {
			rows, page := looked(t, db, c.p)
			require.Equal(t, 11, rows, "by the index, which the open file has now")
			require.Equal(t, want[name], page.Found[:10])
			require.Equal(t, "w2-1", page.Found[10].Item.ID, "without a deadline")
		}
	}
	rows, page := looked(t, old, store.FindParams{Tool: "half", Cursor: first.Cursor})
	require.Equal(t, inboxLimit, rows)
	require.Equal(t, second.Found, page.Found)
	require.NoError(t, errors.Join(old.Close(), reading.Close()))

	// A program of before writes rows and knows no index.
	runSQL(t, path, "UPDATE items SET tenant=NULL, deadline=NULL, opened=NULL WHERE id='w2-1';"+
		" UPDATE items SET payload=replace(payload, '\"rm\"', '\"half\"') WHERE sid=500;"+
		" INSERT INTO items (sid, kind, id, rev, tenant, deadline, opened, payload) SELECT sid, kind, 'w3-1', rev, tenant, 1, opened, payload FROM items WHERE sid=1500")
	again := open(t, path)
	rows, page = looked(t, again, store.FindParams{Tool: "rm"})
	require.Equal(t, 10, rows)
	require.Equal(t, "w3-1", page.Found[0].Item.ID)
	require.Equal(t, want["tool"][1:], page.Found[1:])
	runSQL(t, path, "PRAGMA integrity_check")
}

// TestInbox_with_damaged_records: a record that is no JSON is in no index of a field, and keeps nobody from
// writing or reading the others.
func TestInbox_with_damaged_records(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data.db")
	db := open(t, path)
	inboxOfMany(t, db, 1000)
	require.NoError(t, db.Close())
	runSQL(t, path, withoutInboxes+"; UPDATE items SET payload='{' WHERE sid=50; UPDATE items SET payload=x'ff00' WHERE sid=150;"+
		" UPDATE items SET payload=replace(payload, '\"tool\":\"rm\"', '\"tool\":\"rm\",\"tool\":\"other\"') WHERE sid=250")
	db = open(t, path)
	item := store.WaitItem(journal.WaitRecord{State: session.WaitOpen, Wait: session.Wait{ID: "w2-1", Kind: session.WaitApproval}}, 0)
	_, err := db.Store().Update(t.Context(), session.Key{Tenant: inboxTenant, ID: "s1"}, item)
	require.NoError(t, err)
	runSQL(t, path, "UPDATE items SET payload='[]' WHERE sid=350; UPDATE items SET payload='{' WHERE sid=450")
	rows, page := looked(t, db, store.FindParams{Tool: "rm"})
	require.Equal(t, 6, rows, "one of them says its tool twice")
	require.Len(t, page.Found, 5)
	_, page = looked(t, db, store.FindParams{})
	require.Len(t, page.Found, inboxLimit)
}

// TestInbox_deeply_nested: a wait whose arguments are nested as deeply as they may be is found by each filter: no
// model hides what it asks for from who keeps the inbox to a tool.
func TestInbox_deeply_nested(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "data.db"))
	deep := json.RawMessage(strings.Repeat("[", journal.MaxNesting) + strings.Repeat("]", journal.MaxNesting))
	require.NoError(t, journal.CheckValue(deep))
	inboxOfMany(t, db, 10)
	item := store.WaitItem(journal.WaitRecord{State: session.WaitOpen, Agent: "other", Wait: session.Wait{ID: "w2-1", Kind: session.WaitClientTool, Tool: "deep", Arguments: deep}}, 0)
	_, err := db.Store().Update(t.Context(), session.Key{Tenant: inboxTenant, ID: "s1"}, item)
	require.NoError(t, err)
	for name, p := range map[string]store.FindParams{"tool": {Tool: "deep"}, "agent": {Agent: "other"}, "kind": {WaitKind: session.WaitClientTool}} {
		_, page := looked(t, db, p)
		require.Len(t, page.Found, 1, name)
	}
}
