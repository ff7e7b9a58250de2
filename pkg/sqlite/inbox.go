package sqlite

import (
	"database/sql/driver"

	"github.com/adjourn/adjourn/pkg/sqlite/internal/datafile"
	"github.com/adjourn/adjourn/pkg/store"
)

// waits is the SQL that reads a page of the inbox, and of the notices, which lie beside it.
func waits(index, condition string) string {
	return "SELECT deadline, opened, iid, items.rev, items.payload, sessions.id, items.id FROM items" + index + " JOIN sessions USING (sid)" +
		" WHERE items.tenant=?1 AND (deadline, opened, iid) > (?2, ?3, ?4)" + condition + " ORDER BY deadline, opened, iid LIMIT ?5"
}

// waitsOf reads the open waits that have a value in the field of an index.
func waitsOf(i datafile.Inbox) string {
	return waits(" INDEXED BY "+i.Index, " AND "+datafile.OpenWaits+" AND "+i.Field+"=?6")
}

// inboxOf chooses the statement of a page, with the value that it takes beside the others. Of several
// indexes that would do it is the one that is likely to hold the fewest; the rest is filtered row by
// row, and so is everything where the file has no such index yet. The order and the cursors are the
// same with each.
func inboxOf(c *datafile.Conn, p *store.FindParams) (datafile.Stmt, []driver.Value, error) {
	for _, by := range []struct {
		value string
		index datafile.Inbox
		stmt  datafile.Stmt
	}{
		{p.Tool, datafile.ByTool, stmtWaitsOfTool},
		{p.Agent, datafile.ByAgent, stmtWaitsOfAgent},
		{string(p.WaitKind), datafile.ByKind, stmtWaitsOfKind},
	} {
		if by.value == "" {
			continue
		}
		if has, err := c.Has(by.index); err != nil || !has {
			return stmtWaits, nil, err
		}
		return by.stmt, []driver.Value{by.value}, nil
	}
	return stmtWaits, nil, nil
}

// addInboxes gives a file of before its indexes, with the first wait that is written to it: who only
// reads changes nothing.
func (w *writer) addInboxes() error {
	if w.inboxes {
		return nil
	}
	if err := w.file.AddInboxes(); err != nil {
		return err
	}
	w.inboxes = true
	return nil
}
