package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/row"
	"github.com/adjourn/adjourn/pkg/store"
)

// planOf is how SQLite would carry a statement out, line by line.
func planOf(t *testing.T, path, statement string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, "acme", 0, 0, 0, 50)
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

// TestInboxIsFlat: a page of the inbox looks at as many rows among 10,000 waits as among 1,000, and an
// index finds them. Kept to a kind, a tool, an agent or a person it looks at no more than a page may.
func TestInboxIsFlat(t *testing.T) {
	t.Parallel()
	const limit, tenant = 50, "acme"
	for _, n := range []int{1000, 10_000} {
		path := filepath.Join(t.TempDir(), "data.db")
		db := open(t, path)
		wait := store.WaitItem(journal.WaitRecord{State: session.WaitOpen, Agent: "lab", Wait: session.Wait{ID: "w1-1", Kind: session.WaitApproval, Tool: "deploy", Who: []string{"bob"}}}, 0)
		often, err := wait.Record()
		require.NoError(t, err)
		rare := strings.NewReplacer(`"deploy"`, `"rm"`, `"lab"`, `"clerk"`, `"approval"`, `"question"`, `"bob"`, `"ana"`).Replace(string(often))
		require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
			return w.c.Script(fmt.Sprintf(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%[1]d)
INSERT INTO sessions (sid, tenant, id, rev, moved, head) SELECT i, '%[2]s', 's'||i, 1, i, '{}' FROM n;
INSERT INTO items (sid, kind, id, rev, tenant, deadline, opened, payload)
SELECT sid, 'wait', 'w1-1', 1, tenant, 1000000+sid, sid, CASE sid %% (%[1]d/10) WHEN %[1]d/20 THEN '%[4]s' ELSE '%[3]s' END FROM sessions`, n, tenant, often, rare))
		}}))
		looked := func(p store.FindParams) (rows int, page store.Page) {
			p.Kind, p.Tenant, p.Limit = store.FindWaits, tenant, limit
			require.NoError(t, p.Prepare())
			at, err := row.ParseCursor(&p)
			require.NoError(t, err)
			most := p.Limit + 1
			if p.Filtered() {
				most = filteredRows
			}
			f := finder{p: &p}
			require.NoError(t, db.read(t.Context(), func(c *datafile.Conn) error { return f.query(c, at, most) }))
			page, err = db.Store().Find(t.Context(), p)
			require.NoError(t, err)
			return f.looked, page
		}
		rows, page := looked(store.FindParams{})
		require.Equal(t, limit, rows, "among %d", n)
		rows, page = looked(store.FindParams{Cursor: page.Cursor})
		require.Equal(t, limit, rows, "among %d, the next page", n)
		require.Len(t, page.Found, limit)
		for name, p := range map[string]store.FindParams{
			"kind": {WaitKind: session.WaitQuestion}, "tool": {Tool: "rm"}, "agent": {Agent: "clerk"}, "user": {User: "ana"},
		} {
			rows, page := looked(p)
			require.LessOrEqual(t, rows, filteredRows, name)
			require.Len(t, page.Found, 10, "%s among %d", name, n)
		}
		plan := planOf(t, path, statements[stmtWaits])
		require.Contains(t, plan, "USING INDEX", "the rows of a page are found by an index")
		require.NotContains(t, plan, "TEMP B-TREE", "and are in its order")
	}
}
