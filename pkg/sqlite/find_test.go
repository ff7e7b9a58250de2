package sqlite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// A page of a search that keeps only some looks at so many rows and no more: who
// looks for what is rare does not read a whole tenant at once. The next page goes on
// where it ended, whether or not anything was found.
func TestFind_looks_at_so_many_rows_for_a_page(t *testing.T) {
	t.Parallel()
	const tenant = "acme"
	db := open(t, datafile.Memory)
	record := func(item store.Item) string {
		text, err := item.Record()
		require.NoError(t, err)
		return string(text)
	}
	head := store.HeadItem(journal.Head{Key: session.Key{Tenant: tenant, ID: "any"}, Agent: "lab", Status: session.StatusRunning}, 0)
	wait := store.WaitItem(journal.WaitRecord{State: session.WaitOpen, Wait: session.Wait{ID: "w1-1", Kind: session.WaitApproval, Who: []string{"lab"}}}, 0)
	// The last in both lists is the one looked for: of the sessions it is the last that a
	// page looks at, of the waits one too far.
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		return w.c.Script(fmt.Sprintf(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<=%[1]d)
INSERT INTO sessions (sid, tenant, id, rev, moved, head)
SELECT i, '%[2]s', 's'||i, 1, nullif(i, %[1]d+1), CASE i WHEN 1 THEN replace('%[3]s', '"lab"', '"rare"') ELSE '%[3]s' END FROM n`, filteredRows, tenant, record(head)))
	}}))
	require.NoError(t, db.do(t.Context(), &testOp{f: func(w *writer) error {
		return w.c.Script(fmt.Sprintf(`
INSERT INTO items (sid, kind, id, rev, tenant, deadline, opened, payload)
SELECT sid, 'wait', 'w1-1', 1, tenant, 1000000-sid, sid, CASE sid WHEN 1 THEN replace('%[1]s', '"lab"', '"rare"') ELSE '%[1]s' END FROM sessions`, record(wait)))
	}}))
	for _, c := range []struct {
		p     store.FindParams
		found [2]int // on the first page and on the second
	}{
		{store.FindParams{Kind: store.FindSessions, Agent: "rare"}, [2]int{1, 0}},
		{store.FindParams{Kind: store.FindWaits, User: "rare"}, [2]int{0, 1}},
	} {
		p := c.p
		p.Tenant, p.Limit = tenant, 1
		for i, want := range c.found {
			page, err := db.Store().Find(t.Context(), p)
			require.NoError(t, err)
			require.Len(t, page.Found, want)
			for _, found := range page.Found {
				require.Equal(t, "s1", found.Key.ID)
			}
			require.Equal(t, i == 0, page.Cursor != "", "%s: nobody has looked whether there is another", p.Kind)
			p.Cursor = page.Cursor
		}
	}
}
